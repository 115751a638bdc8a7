"""The types of the imports and exports that a dialect declares."""

import base64
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from msgspec import Struct

from kernel.store.long_work import Steps
from kernel.store.transaction import Tx

_NONE: Mapping[str, Any] = MappingProxyType({})
_ID_BYTES = 13  # of a digest: 21 characters in base 32, as in the ids of the originals


class Record(NamedTuple):
    """One memory of another program, for the dialect that has its shape.

    `key` is stable: it names the record in the program it comes from, and a record whose key is there is not added
    again. `place` is a database, a session or a project. Times are those of the source, empty if it has none.
    `origin` becomes the `from` of the metadata; `details` has the fields of this kind of record only.
    """

    dialect: str
    kind: str
    key: str
    text: str
    place: str = ""
    title: str = ""
    category: str = ""
    tags: tuple[str, ...] = ()
    created_at: str = ""
    updated_at: str = ""
    origin: Mapping[str, Any] = _NONE
    details: Mapping[str, Any] = _NONE


Take = Callable[[Tx, Sequence[Record]], list[bool]]
"""Adds the records that are not there yet, and returns of each whether it is new; a read adds nothing."""


class Ahead(Struct):
    """The work of an import before a slice, without a transaction: it reads the next records, and returns their texts.

    The import sets it if it can; texts embedded by then are not embedded while others wait.
    """

    prepare: Callable[[], Sequence[str]] | None = None


class Source(NamedTuple):
    """The source of an import: a file or folder, its password, the settings of the dialects, and a folder for copies.

    `take` is how each dialect takes records, by its name. Records get the place `into`, if there is one.
    """

    path: Path
    password: str | None
    settings: Mapping[str, Any]
    copies: Path
    take: Mapping[str, Take] = _NONE
    ahead: Ahead = Ahead()
    into: str = ""


class Imported(NamedTuple):
    """The result of an import: rows by kind, and remarks for the user, one line each."""

    counts: Mapping[str, int]
    remarks: Sequence[str] = ()


class Import(NamedTuple):
    """`quipu import KIND PATH`: imports the data of the program that a dialect reproduces.

    `steps(source)` checks the source before its first step and leaves a sound store after each. It may be cut off after
    any of them: another import of the same source goes on, and adds nothing twice. `preview(tx, source)` is its outcome
    in advance; without a preview, the import is tried on a copy. `matches(path)` is whether a file or folder looks like
    this kind, and `dialect` the dialect that the audit names, for an import that no dialect declares. `trial(source)`
    is tried on a copy after `preview`, for refusals that only a write finds.
    """

    kind: str
    about: str
    steps: Callable[[Source], Steps[Imported]]
    preview: Callable[[Tx, Source], Imported] | None = None
    matches: Callable[[Path], bool] | None = None
    dialect: str = ""
    trial: Callable[[Source], Steps[Imported]] | None = None


class Export(NamedTuple):
    """`quipu export KIND FILE`: the data of a dialect in the file of the program that it reproduces, line by line."""

    kind: str
    about: str
    lines: Callable[[Tx], Iterator[bytes]]


def stable_id(prefix: str, *parts: str) -> str:
    """Return an id that depends on nothing but these texts, in the form of the other ids of its kind."""
    digest = hashlib.sha256("\0".join(parts).encode()).digest()[:_ID_BYTES]
    return f"{prefix}_{base64.b32encode(digest).decode().lower().rstrip('=')}"
