"""The export to a bundle of the Open Knowledge Format 0.2: a Markdown file for each memory, in folders by space and
scope.

A text has marks such as `⟨U+001B⟩` for control characters and overrides of the reading order, so that `cat` is safe;
the JSON lines of `quipu export jsonl` keep them.

Names are lower-case letters, digits and dashes, and end in a digest if that loses something: no two are the same on
a file system that ignores case, and none means something to Windows.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import groupby
from pathlib import Path
from typing import IO, Any, NamedTuple

from kernel.calls.dialect import Concept, Dialect, filled
from kernel.core.text import harmless, json_text, normalized, one_line, yaml_block
from kernel.memories.curation import MOST_LINKS, Neighbour
from kernel.operations.index_check import slices, sources_of
from kernel.search.documents import Document
from kernel.store.transaction import Tx

OKF_VERSION = "0.2"
_TITLE_CHARS = 80
_MOST_TITLE = 1000
_NAME_CHARS = 60
_MOST_HEAD = 16_000  # characters of a summary or of points in the front matter; importers read 64 KiB of it
_SLICE_ROWS = 200
_DIGEST_CHARS = 16  # 64 bits: of 100,000 memories without a Latin letter, two of 32 bits would be the same
_RESERVED = {"con", "prn", "aux", "nul", "index", "log", *(f"{name}{n}" for name in ("com", "lpt") for n in range(10))}


class Written(NamedTuple):
    """How many memories were written, and how many were left out because they are in quarantine."""

    concepts: int
    quarantined: int


class _Day(NamedTuple):
    day: str
    dialect: str
    operation: str
    times: int


def write_bundle(tx: Tx, root: Path, version: str, dialects: Sequence[Dialect]) -> Written:
    """Write a bundle into an empty folder; the pages are read from the rows of the dialects, in slices."""
    concepts = left_out = 0
    with _new(root / "index.md") as top:
        top.write(f"---\nokf_version: '{OKF_VERSION}'\n---\n\n# Memories\n\n")
        for folder, group in groupby(_pages(tx, dialects), lambda page: (page[0].space, page[0].scope)):
            count = 0
            with ExitStack() as stack:
                folder_index: IO[str] | None = None
                for memory, concept in group:
                    if memory.flag:
                        left_out += 1
                        continue
                    if folder_index is None:
                        folder_index = stack.enter_context(_folder(root, *folder))
                    folder_index.write(_written(root / folder_of(*folder), memory, concept, version))
                    count += 1
            if count:
                place = folder_of(*folder)
                top.write(f"- [{_label(' '.join(part for part in folder if part))}]({place}/index.md) - {count}\n")
            concepts += count
    _write_log(tx, root)
    return Written(concepts, left_out)


def folder_of(space: str, scope: str) -> str:
    return "/".join(safe_name(part) for part in (*space.split(":"), scope) if part)


def safe_name(name: str, *, always: str = "") -> str:
    """Return a name for every file system; with a digest of it, or of `always`, unless it is safe as it is."""
    plain = normalized("NFKD", name).encode("ascii", "ignore").decode().lower()
    safe = "-".join("".join(letter if letter.isalnum() else " " for letter in plain).split())[:_NAME_CHARS].strip("-")
    if safe == name and safe not in _RESERVED and not always:
        return safe
    digest = hashlib.sha256((always or name).encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST_CHARS]
    return f"{safe or 'memory'}-{digest}"


def _folder(root: Path, space: str, scope: str) -> IO[str]:
    place = root / folder_of(space, scope)
    place.mkdir(parents=True, exist_ok=True)
    file = _new(place / "index.md")
    file.write(f"# {_label(f'{space} {scope}'.strip())}\n\n")
    return file


def _pages(tx: Tx, dialects: Sequence[Dialect]) -> Iterator[tuple[Document, Concept]]:
    """Yield the memories in the order of their folders; a memory without a row is as the index holds it."""
    for memories in slices(tx.each("kernel.okf_export.memories", Document), _SLICE_ROWS):
        keys = [(memory.space, memory.key) for memory in memories]
        links = {key: _links(tx, dialects, *key) for key in keys}
        ends = {(link.space, link.key) for own in links.values() for link in own if link.outgoing}
        concepts: dict[tuple[str, str], Concept] = {}
        for source in sources_of(tx, dialects, [*dict.fromkeys([*keys, *sorted(ends)])]):
            concept = source.concept
            body = "\n".join(part for part in (concept.body, *concept.texts.values()) if part)
            concepts[source.space, source.key] = concept._replace(body=body or ("" if concept.summary else source.text))
        for memory, key in zip(memories, keys, strict=True):
            concept = concepts.get(key) or Concept(body=memory.text)
            told = [f"{link.relation} [[{_name(link, concepts)}]]" for link in links[key] if link.outgoing]
            more = ["and more"] if len(links[key]) == MOST_LINKS else []
            yield memory, concept._replace(fields={**concept.fields, "links": [*told, *more]})


def _links(tx: Tx, dialects: Sequence[Dialect], space: str, key: str) -> Sequence[Neighbour]:
    curate = next(dialect.memories.curate for dialect in dialects if dialect.name == space.partition(":")[0])
    curation = curate(tx, space, key) if curate else None
    return curation.links if curation else ()


def _name(link: Neighbour, concepts: Mapping[tuple[str, str], Concept]) -> str:
    concept = concepts.get((link.space, link.key))
    return _title(concept) if concept else link.key


def _title(concept: Concept) -> str:
    return one_line(concept.title or concept.body, _MOST_TITLE if concept.title else _TITLE_CHARS)


def _written(folder: Path, memory: Document, concept: Concept, version: str) -> str:
    """Writes the file of one memory; its line in the index of the folder."""
    title = _title(concept) or memory.key
    name = f"{safe_name(title, always=f'{memory.space}/{memory.key}')}.md"
    identity = f"{memory.space}/{memory.key}"
    beside, body = _beside(concept)
    head = {
        "type": memory.space.replace(":", " "),
        "title": title,
        **beside,
        "created": memory.created_at,
        "modified": memory.updated_at,
        "generated": {"by": f"quipu/{version} {memory.actor or memory.tool}", "at": memory.updated_at},
        "sources": [{"id": identity, "resource": f"quipu:{identity}"}],
        "tool": f"{memory.dialect} {memory.tool}",
    }
    if memory.scope:
        head["scope"] = memory.scope
    with _new(folder / name) as file:
        file.write(f"---\n{yaml_block(head)}---\n\n{harmless(body)}\n")
    return f"- [{_label(title)}]({name})\n"


def _beside(concept: Concept) -> tuple[Mapping[str, Any], str]:
    """Return the front matter besides title and origin, and the body, with the parts too long for the front matter."""
    summary, points, body = concept.summary, [*concept.points], concept.body
    fields = concept.columns()
    if len(json_text(fields)) > _MOST_HEAD:
        points += [f"{name}: {value if isinstance(value, str) else json_text(value)}" for name, value in fields.items()]
        fields = {}
    if sum(map(len, points)) > _MOST_HEAD:
        points, body = [], "\n".join([body, "", *(f"- {point}" for point in points)])
    if len(summary) > _MOST_HEAD:
        summary, body = "", f"{summary}\n\n{body}".strip()
    return filled({"description": summary, "tags": [*concept.tags], "key_points": points, **fields}), body


def _write_log(tx: Tx, root: Path) -> None:
    with _new(root / "log.md") as file:
        file.write("# Log\n")
        for day, rows in groupby(tx.each("kernel.okf_export.days", _Day), lambda row: row.day):
            file.write(f"\n## {day}\n\n")
            for row in rows:
                file.write(f"- {row.dialect}: {row.times} {_label(row.operation)}\n")


def _label(text: str) -> str:
    line = harmless(one_line(text, _TITLE_CHARS))
    return "".join(f"\\{letter}" if letter in "\\[]<>`*_#!|" else letter for letter in line)


def _new(path: Path) -> IO[str]:
    return path.open("x", encoding="utf-8", errors="backslashreplace", newline="\n")
