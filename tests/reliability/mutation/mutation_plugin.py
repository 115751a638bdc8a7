"""A plugin of pytest that imports one module with a mistake in it: MUTANT=kernel.security.auth:17."""

import importlib.abc
import importlib.machinery
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from types import CodeType, ModuleType

from tests.reliability.mutation.mutants import mutated

ROOT = Path(__file__).resolve().parents[3]


class _Loader(importlib.machinery.SourceFileLoader):
    def __init__(self, name: str, path: str, number: int) -> None:
        super().__init__(name, path)
        self._number = number

    def get_code(self, fullname: str) -> CodeType:
        return compile(mutated(Path(self.path).read_text(encoding="utf-8"), self._number), self.path, "exec")


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, module: str, number: int) -> None:
        self._module, self._number = module, number

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self._module:
            return None
        file = ROOT.joinpath(*fullname.split(".")).with_suffix(".py")
        loader = _Loader(fullname, str(file), self._number)
        return importlib.machinery.ModuleSpec(fullname, loader, origin=str(file))


_name, _, _which = os.environ.get("MUTANT", "").partition(":")
if _which:
    sys.meta_path.insert(0, _Finder(_name, int(_which)))
