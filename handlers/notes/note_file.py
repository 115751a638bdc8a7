"""What the file of a memory says: its title, type, tags, times and content, however it came to be."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from handlers.notes import front_matter
from handlers.notes.files import File
from handlers.notes.front_matter import Page
from handlers.notes.memory_types import FALLBACK
from handlers.notes.slug import kebab, title_of
from kernel.text import utc_time, yaml_block, yaml_flow

_NEW = Page("", (), "", "\n")
_EARLIEST, _LATEST = -62_135_596_800, 253_402_300_799


class Said(NamedTuple):
    """A memory as its file has it; times are ISO 8601 in UTC where the file gives times at all."""

    title: str
    memory_type: str
    tags: tuple[str, ...]
    created: str
    modified: str
    content: str


def decoded(data: bytes) -> str:
    """The text of a file; bytes that are no UTF-8 stay what they are on the way back."""
    return data.decode("utf-8", "surrogateescape")


def encoded(text: str) -> bytes:
    """The bytes of a text that `decoded` gave."""
    return text.encode("utf-8", "surrogateescape")


def stored(data: bytes) -> str:
    """The text of a file as it is stored and answered, a mark in place of what is no UTF-8."""
    return data.decode("utf-8", "replace")


def read(path: str, file: File) -> Said:
    """What a file says that was just read."""
    return said(path, stored(file.data), file.stamp.modified)


def said(path: str, text: str, modified_ns: int) -> Said:
    """What the file at `path` below `.mnemonics` says; what it leaves open its path and its own time answer."""
    page, own = front_matter.parse(text), _iso(modified_ns)
    return Said(
        _text(page, "title") or title_of(path) or path,
        kebab(_text(page, "memory_type")) or kebab(path.partition("/")[0] if "/" in path else "") or FALLBACK,
        tuple(front_matter.listed(front_matter.value(page, "tags"))),
        time(page, "created") or time(page, "modified") or own,
        time(page, "modified") or own,
        front_matter.content(page),
    )


def time(page: Page, key: str) -> str:
    """The time the front matter gives, ISO 8601 in UTC; an empty text where that is none."""
    return utc_time(_text(page, key)) or ""


def indexed(memory: Said) -> str:
    """What a memory is found by."""
    return indexed_as(memory.title, memory.tags, memory.content)


def indexed_as(title: str, tags: Sequence[str], content: str) -> str:
    """What a memory of this title, these tags and this content is found by."""
    return "\n".join(part for part in (title, ", ".join(tags), content) if part)


def new(path: str, memory: Said) -> str:
    """The text of a new file: front matter as the contract has it, with the title where the path does not tell it."""
    return front_matter.written(_NEW, _lines(memory._asdict()) | title_line(path, memory.title), memory.content)


def changed(text: str, path: str, before: Said, memory: Said) -> str:
    """The text of a file with its type, its tags if they differ, its time and its content changed, and the rest kept.

    What only the file's own path and time told, it says itself where that will tell something else: at another path.
    """
    page = front_matter.parse(text)
    fields: dict[str, object] = {"memory_type": memory.memory_type}
    if memory.tags != before.tags:
        fields["tags"] = memory.tags
    if front_matter.value(page, "created") is None:
        fields["created"] = before.created
    fields["modified"] = memory.modified
    named = {} if front_matter.value(page, "title") is not None else title_line(path, memory.title)
    return front_matter.written(page, _lines(fields) | named, memory.content)


def title_line(path: str, title: str) -> dict[str, str]:
    """The line for a title that is not what the name of the file says."""
    return {} if title_of(path) == title else {"title": _line("title", title)}


def _lines(fields: Mapping[str, object]) -> dict[str, str]:
    lines: dict[str, str] = {}
    for key, value in fields.items():
        if isinstance(value, tuple):
            lines[key] = f"{key}: {yaml_flow(map(str, value))}"  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
        elif key == "memory_type":
            lines[key] = _line(key, str(value))
        elif key in {"created", "modified"}:
            lines[key] = f"{key}: {value}"
    return lines


def _line(key: str, value: str) -> str:
    return yaml_block([(key, value)]).rstrip("\n")


def _text(page: Page, key: str) -> str:
    value = front_matter.value(page, key)
    return value.strip() if isinstance(value, str) else ""


def _iso(nanoseconds: int) -> str:
    seconds = min(max(nanoseconds / 1e9, _EARLIEST), _LATEST)
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
