"""Letta: agent files, with their memory blocks, passages and messages."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from handlers.importers.json_files import elements_of
from handlers.importers.records import Item, LeftOut, Values, filled, list_in, mapping_in, tags_of, text_of, time_in
from kernel.core.lazy_regex import regex
from kernel.memories.import_records import Record

SYSTEM = "letta"
_PASSAGES = ("passages", "archival_memory")
_SAID = {"user", "assistant"}
_PRIORITY = 5
_WORD = regex(r"[\w-]+", 0)  # the parts of a label that a path keeps


def read_file(path: Path) -> Iterator[Item]:
    """Yield the blocks, passages and messages of an agent file, in today's form or the older form of a single agent."""
    owners: dict[str, str] = {}
    counts = Counter[tuple[str, str]]()
    for row in _rows(path, "agents"):
        name = text_of(row, "name") or text_of(row, "id") or "agent"
        owners |= {str(number): name for number in _list(row, "block_ids")}
    single = next((text_of({"name": e.value}, "name") for e in elements_of(path) if e.member == "name"), "") or "agent"
    for element in elements_of(path):
        row = mapping_in(element.value)
        if element.member in {"blocks", "core_memory"}:
            yield _block(row, owners.get(text_of(row, "id"), single), path.name, counts)
        elif element.member in _PASSAGES:
            yield _passage(row, path.name)
        elif element.member == "agents":
            name = text_of(row, "name") or text_of(row, "id") or "agent"
            for message in map(mapping_in, _list(row, "messages")):
                yield _message(message, name, path.name)
        elif element.member == "messages":
            yield _message(row, single, path.name)


def _rows(path: Path, member: str) -> Iterator[Values]:
    return (mapping_in(element.value) for element in elements_of(path) if element.member == member)


def _list(row: Values, name: str) -> Sequence[Any]:
    return list_in(row.get(name))


def _block(row: Values, agent: str, name: str, counts: Counter[tuple[str, str]]) -> Item:
    """Return a block at a path of agent and label; agents of one name each keep theirs, by a number."""
    label = "-".join(_WORD.findall(text_of(row, "label"))) or "block"
    counts[agent, label] += 1
    label += f"-{counts[agent, label]}" if counts[agent, label] > 1 else ""
    origin = filled({"system": SYSTEM, "id": text_of(row, "id"), "file": name})
    return Record("paths", "memory block", label, text_of(row, "value"), place=f"agents/{agent}", origin=origin)


def _passage(row: Values, name: str) -> Item:
    text = text_of(row, "text", "content")
    return Record(
        "brain",
        "memory",
        f"{SYSTEM}:{text_of(row, 'id') or text}",
        text,
        tags=tags_of(row.get("tags")),
        created_at=time_in(row, "created_at"),
        origin=filled({"system": SYSTEM, "id": text_of(row, "id"), "file": name}),
        details={"metadata": mapping_in(row.get("metadata"))},
    )


def _message(row: Values, agent: str, name: str) -> Item:
    role = text_of(row, "role")
    if role not in _SAID:
        return LeftOut(f"a message of {role or 'nobody'}"[:60])
    parts = row.get("content")
    texts = [part if isinstance(part, str) else text_of(mapping_in(part), "text") for part in _list(row, "content")]
    text = parts if isinstance(parts, str) else text_of(row, "text") or "\n\n".join(filter(None, texts))
    return Record(
        "sessions",
        "memory",
        f"{SYSTEM}:{text_of(row, 'id') or text}",
        text,
        place=f"{SYSTEM}:{agent}",
        category=role,
        created_at=time_in(row, "created_at"),
        origin=filled({"system": SYSTEM, "id": text_of(row, "id"), "file": name}),
        details={"priority": _PRIORITY},
    )
