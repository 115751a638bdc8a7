"""A judged collection in a folder: `docs.jsonl` and `queries.jsonl` with ids, scopes, times and relevance."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec

T = TypeVar("T")


class Doc(msgspec.Struct):
    """One text; texts are ordered by `time` if all have one in ISO 8601, else by position in the file."""

    id: str
    text: str
    scope: str = ""
    time: str = ""


class Query(msgspec.Struct):
    """One query within a scope; `relevant` are the ids of the texts that answer it."""

    id: str
    text: str
    relevant: list[str]
    scope: str = ""
    category: str | None = None


class Collection(NamedTuple):
    """Texts in order of time, and the questions that have an answer among them.

    Equal texts of a scope are merged; `relevant` of a query then names the first of them.
    """

    name: str
    docs: list[Doc]
    queries: list[Query]

    @property
    def scopes(self) -> dict[str, list[Doc]]:
        """The texts of each scope, in order."""
        found: dict[str, list[Doc]] = {}
        for doc in self.docs:
            found.setdefault(doc.scope, []).append(doc)
        return found


def read(folder: Path, most: int = 0) -> Collection:
    """Read the collection in `folder`, or `most` queries spread evenly over it."""
    docs = _rows(folder / "docs.jsonl", Doc)
    if all(_iso(doc.time) for doc in docs):
        docs.sort(key=lambda doc: doc.time)
    firsts: dict[tuple[str, str], str] = {}
    same = {doc.id: firsts.setdefault((doc.scope, doc.text), doc.id) for doc in docs}
    queries = _rows(folder / "queries.jsonl", Query)
    for query in queries:
        query.relevant = sorted({same[key] for key in query.relevant if key in same})
    queries = [query for query in queries if query.relevant and query.text.strip()]
    step = max(1, len(queries) // most) if most else 1
    kept = [doc for doc in docs if same[doc.id] == doc.id and doc.text.strip()]
    return Collection(folder.resolve().name, kept, queries[::step][: most or None])


def _rows(path: Path, kind: type[T]) -> list[T]:
    decoder = msgspec.json.Decoder(kind)
    return [decoder.decode(line) for line in path.read_bytes().splitlines() if line.strip()]


def _iso(time: str) -> bool:
    return len(time) >= len("2026-01-01") and time[:4].isdigit() and time[4] == "-"


def scope_names(scopes: Sequence[str]) -> dict[str, str]:
    """A name of letters and digits for each scope, for tools that accept no others."""
    return {scope: f"s{number}" for number, scope in enumerate(scopes)}
