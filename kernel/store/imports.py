"""The types of the imports that a dialect declares."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from kernel.store.slices import Steps


class Source(NamedTuple):
    """What is imported: a file or folder, its password, the settings of the dialects, and a folder for copies."""

    path: Path
    password: str | None
    settings: Mapping[str, Any]
    copies: Path


class Imported(NamedTuple):
    """The result of an import: rows by kind, and remarks for the user, one line each."""

    counts: Mapping[str, int]
    remarks: Sequence[str] = ()


class Import(NamedTuple):
    """`quipu import KIND PATH`: imports the data of the program that a dialect reproduces.

    `steps(source)` checks the source before its first step and leaves a sound store after each. It may be cut off
    after any of them: another import of the same source goes on, and adds nothing twice.
    """

    kind: str
    about: str
    steps: Callable[[Source], Steps[Imported]]
