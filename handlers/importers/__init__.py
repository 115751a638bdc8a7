"""Importers of other programs' memories, each found by what a file or folder holds; see docs/importing.md."""

from handlers.importers.table import IMPORTS

__all__ = ["IMPORTS"]
