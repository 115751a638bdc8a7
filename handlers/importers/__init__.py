"""Importers of other programs' memories, each chosen by the content of a file or folder; see docs/importing.md."""

from handlers.importers.table import IMPORTS

__all__ = ["IMPORTS"]
