"""The places that memories name, what clients have seen of them, and which memories they have shown to a session."""

from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

import msgspec

from kernel.core.lazy_regex import regex
from kernel.core.times import later
from kernel.search.documents import Document, doc_ids, documents
from kernel.store.transaction import Tx

_SHOWN_KEPT = timedelta(days=365)
_EXPIRED_ROWS = 64  # deleted in one transaction


class Met(NamedTuple):
    """A place that a memory names, with its digest of when a client met it first, its state, and the project."""

    doc: int
    path: str
    name: str
    line: int
    digest: str = ""
    state: str = ""
    project: str = ""


Place = tuple[str, str, int, str, str, str]  # the same without the document


class Stale(NamedTuple):
    """A place in a project that is not as it was when a document named it."""

    project: str
    doc: int
    path: str
    name: str
    line: int
    state: str

    @property
    def words(self) -> str:
        return f"{self.state}: {' '.join(filter(None, (self.path, self.name or str(self.line or ''))))}"


class Shown(NamedTuple):
    """The memories that a hook added to a session, each as its id and the time of its last change."""

    session: str
    at: str
    tool: str
    memories: list[tuple[str, str]]


MOST = 16  # of a text
_MOST_CHARS = 8000  # of a text that are looked at
_MOST_PATH = 300
_TOKEN = regex(r"[\w@.+~/\\:#-]+(?:\(\))?")
_SCRIPTS = {"npm": "package.json", "pnpm": "package.json", "yarn": "package.json", "bun": "package.json"}
_RUNNERS = {**_SCRIPTS, "uv": "pyproject.toml"}  # before `run NAME`
# Names without an extension, and extensions by which a name without a folder counts as that of a file.
_FILES = frozenset(("Makefile", "Dockerfile", "Containerfile", "Justfile", "Procfile", "Gemfile", "LICENSE"))
_EXTENSIONS = frozenset(
    (
        "adoc astro bash bat bzl c cc cfg cjs clj cmake conf cpp cs css csv cts cxx dart ex exs fs go gradle graphql "
        "h hh hpp hs html ini ipynb java jl js json jsonc jsx kt kts less lock lua m md mdx mjs mk ml mod mts nix php "
        "pl properties proto ps1 py pyi r rb rs rst sass scala scss sh sql sum svelte swift tf toml ts tsx txt vue "
        "xml yaml yml zig"
    ).split()
)
_COMMIT_CHARS = range(7, 41)
_HEX, _DIGITS = frozenset("0123456789abcdef"), frozenset("0123456789")


class Citation(NamedTuple):
    """A place that a text names: a file by its path with slashes, and in it a symbol, a number or a line; a line is 0
    for none. A commit has no path.
    """

    path: str
    name: str = ""
    line: int = 0


class _Token(NamedTuple):
    start: int
    text: str


def marks(tx: Tx, memories: Iterable[Document], mark: str, *, plain: bool = False) -> dict[int, str]:
    """Return for each document that names places the mark that a client replaces by two words."""
    sides = ("", "") if plain else (" (", ")")
    return {
        row[0]: f"{mark}{b64encode(msgspec.json.encode((*sides, *row))).decode()}{mark}" for row in cited(tx, memories)
    }


def cited(tx: Tx, memories: Iterable[Document]) -> list[tuple[int, float, list[Place]]]:
    """Return the documents that name places, with the times of their last changes, and all that is known of these."""
    places_of = {memory: places for memory in memories if (places := citations_of(memory.text))}
    docs = [memory.doc for memory in places_of]
    rows = tx.all("kernel.witness.of_documents", Met, docs=docs) if docs else []
    by_place = {(row.doc, Citation(row.path, row.name, row.line)): row for row in rows}
    return [
        (
            memory.doc,
            datetime.fromisoformat(memory.updated_at).timestamp(),
            [by_place.get((memory.doc, place), Met(0, *place))[1:] for place in places],
        )
        for memory, places in places_of.items()
    ]


def stale_in(tx: Tx, project: str | None) -> list[Stale]:
    return tx.all("kernel.witness.stale", Stale, project=project)


def in_project(tx: Tx, project: str) -> list[Document]:
    return [*documents(tx, tx.all("kernel.witness.in_project", int, project=project)).values()]


def keep(tx: Tx, project: str, places: Sequence[tuple[int, str, str, int, str, str]]) -> int:
    """Keeps the states in which a client saw the places that documents name, and returns their number."""
    by_id = documents(tx, [*{row[0] for row in places}])
    citations = {doc: {*citations_of(memory.text)} for doc, memory in by_id.items()}
    rows = [
        (*row, project, tx.now) for row in places if row[0] in citations and Citation(*row[1:4]) in citations[row[0]]
    ]
    tx.run("kernel.witness.sweep")
    tx.run("kernel.witness.keep", rows=rows)
    return len(rows)


def confirm(tx: Tx, keys: Sequence[tuple[str, str]]) -> None:
    """Takes the places that memories name as they are now, from when a client meets them next."""
    tx.run("kernel.witness.confirm", docs=doc_ids(tx, keys))


def sweep(tx: Tx) -> None:
    """Deletes the states of places that only deleted memories name."""
    tx.run("kernel.witness.sweep")


def record_shown(tx: Tx, session: str, tool: str, ids: Sequence[str]) -> None:
    """Records the memories that a hook has added to a session, in the state they are in."""
    keys = [(space, key) for space, _, key in (id_.partition("/") for id_ in ids)]
    memories = documents(tx, doc_ids(tx, keys)).values()
    tx.run("kernel.witness.expire_shown", before=later(tx.now, -_SHOWN_KEPT), limit=_EXPIRED_ROWS)
    versions = [(f"{memory.space}/{memory.key}", memory.updated_at) for memory in memories]
    tx.run("kernel.witness.add_shown", session=session, now=tx.now, tool=tool, memories=versions)


def shown_in(tx: Tx, sessions: Sequence[str]) -> list[Shown]:
    return tx.all("kernel.witness.shown", _shown, sessions=sessions)


def _shown(session: str, at: str, tool: str, memories: str) -> Shown:
    return Shown(session, at, tool, msgspec.json.decode(memories, type=list[tuple[str, str]]))


def citations_of(text: str) -> list[Citation]:
    """Return the places that a text names, in their order, at most so many."""
    places: dict[Citation, None] = {}
    for line in text[:_MOST_CHARS].splitlines():
        if len(places) >= MOST:
            break
        tokens = [_Token(match.start(), match[0].rstrip(".:-/\\")) for match in _TOKEN.finditer(line)]
        places |= dict.fromkeys(_of_line(tokens))
    return [*places][:MOST]


def _of_line(tokens: Sequence[_Token]) -> Iterator[Citation]:
    paths = [(token.start, place) for token in tokens if (place := _path(token.text))][:MOST]
    citations: dict[int, list[Citation]] = {at: [] for at, _ in paths}
    words = [token.text.lower() for token in tokens]
    for number, token in enumerate(tokens):
        before, first = words[number - 1 : number], words[max(0, number - 2) : max(0, number - 1)]
        if before == ["run"] and first and first[0] in _RUNNERS:
            yield Citation(_RUNNERS[first[0]], token.text)
        elif before == ["make"] and not token.text.startswith("-"):
            yield Citation("Makefile", token.text)
        elif _is_commit(token.text):
            yield Citation("", token.text)
        elif paths and (name := _symbol(token.text, before)):
            at, place = min(paths, key=lambda pair: abs(pair[0] - token.start))
            citations[at].append(Citation(place.path, name))
    for at, place in paths:
        yield from citations[at] if citations[at] and not (place.name or place.line) else [place]


def _symbol(token: str, before: Sequence[str]) -> str:
    """Return a token as the name of a symbol or a port in the file beside it; empty if it is neither."""
    name = token.removesuffix("()")
    parts = name.split(".")
    if not all(part.isidentifier() for part in parts):
        is_port = before in (["port"], ["ports"]) and 2 <= len(token) <= 5 and _DIGITS.issuperset(token)
        return token if is_port else ""
    is_member = len(parts) == 2 and parts[0][0].isupper() and parts[1] not in _EXTENSIONS
    return name if name != token or is_member else ""


def _path(token: str) -> Citation | None:
    """Return a token as a file, with the line or the symbol behind its path; None if it names none."""
    if len(token) > _MOST_PATH or "//" in token or token.endswith("()"):
        return None
    drive, rest = (token[:2], token[2:]) if token[1:3] in (":\\", ":/") else ("", token)
    path, _, behind = rest.replace("#L", ":").replace("::", ":").partition(":")
    path = drive + path.replace("\\", "/").removeprefix("./")
    folders, _, file = path.rpartition("/")
    stem, _, extension = file.rpartition(".")
    is_plain = extension.isalnum() and not extension[0].isdigit() and len(extension) <= 10
    is_file = file in _FILES or (is_plain and (bool(folders) or (bool(stem) and extension.lower() in _EXTENSIONS)))
    if not is_file or ".." in folders.split("/"):
        return None
    first = behind.partition(":")[0].partition("-")[0]
    if first.isascii() and first.isdigit():
        return Citation(path, "", int(first[:7]))
    name = behind.replace(":", ".")
    return Citation(path, name if all(part.isidentifier() for part in name.split(".")) else "")


def _is_commit(token: str) -> bool:
    return len(token) in _COMMIT_CHARS and _HEX.issuperset(token) and not (token.isdigit() or token.isalpha())
