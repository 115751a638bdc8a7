"""The format of a memory file: title, type, tags, times and content, written by this server or by hand."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from handlers.notes import front_matter
from handlers.notes.files import File
from handlers.notes.front_matter import Page
from handlers.notes.memory_types import FALLBACK
from handlers.notes.slug import kebab, title_of
from kernel.core.text import yaml_block, yaml_flow
from kernel.core.times import iso, utc_time
from kernel.store.history import PastSource, PastText
from kernel.store.transaction import Tx

_EMPTY_PAGE = Page("", (), "", "\n")
# The years 1 to 9999 of `datetime`; file systems allow others.
_MIN_SECONDS, _MAX_SECONDS = -62_135_596_800, 253_402_300_799


class ParsedMemory(NamedTuple):
    """A memory as parsed from its file; times are ISO 8601 in UTC."""

    title: str
    memory_type: str
    tags: tuple[str, ...]
    created: str
    modified: str
    content: str


def decode_exact(data: bytes) -> str:
    """Return the text of a file; `encode_exact` restores bytes that are not UTF-8."""
    return data.decode("utf-8", "surrogateescape")


def encode_exact(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def decode_lossy(data: bytes) -> str:
    """Return the text of a file as stored and returned, with U+FFFD for bytes that are not UTF-8."""
    return data.decode("utf-8", "replace")


def parse_file(path: str, file: File) -> ParsedMemory:
    return parse_memory(path, decode_lossy(file.data), file.stamp.modified)


def parse_memory(path: str, text: str, modified_ns: int) -> ParsedMemory:
    return memory_of(path, front_matter.parse(text), modified_ns)


def memory_of(path: str, page: Page, modified_ns: int) -> ParsedMemory:
    """Return the memory in the file at `path` below `.mnemonics`; its path and time replace missing front matter."""
    own = iso_time(modified_ns)
    return ParsedMemory(
        _text(page, "title") or title_of(path) or path,
        kebab(_text(page, "memory_type")) or kebab(path.partition("/")[0] if "/" in path else "") or FALLBACK,
        tuple(front_matter.to_list(front_matter.value(page, "tags"))),
        time_of(page, "created") or time_of(page, "modified") or own,
        time_of(page, "modified") or own,
        front_matter.content(page),
    )


def time_of(page: Page, key: str) -> str:
    """Return a time of the front matter in ISO 8601, UTC; empty if it is missing or invalid."""
    return utc_time(_text(page, key)) or ""


def index_text(memory: ParsedMemory) -> str:
    return index_text_of(memory.title, memory.tags, memory.content)


def index_text_of(title: str, tags: Sequence[str], content: str) -> str:
    return "\n".join(part for part in (title, ", ".join(tags), content) if part)


def past_sources(_tx: Tx, texts: Sequence[PastText]) -> list[PastSource | None]:
    memories = [parse_memory(text.key, text.text, 0) for text in texts]
    return [PastSource(memory.memory_type, index_text(memory)) for memory in memories]


def new_text(path: str, memory: ParsedMemory) -> str:
    lines = _lines(memory, has_tags=True, created=memory.created) | title_line(path, memory.title)
    return front_matter.render(_EMPTY_PAGE, lines, memory.content)


def updated_text(text: str, path: str, before: ParsedMemory, memory: ParsedMemory) -> str:
    """Return the text of a file with type, time, content and, if they differ, tags replaced; other lines are kept.

    A title or creation time that so far followed from the path or the file's time is written out if it would change.
    """
    page = front_matter.parse(text)
    created = before.created if front_matter.value(page, "created") is None else ""
    lines = _lines(memory, has_tags=memory.tags != before.tags, created=created)
    title = {} if front_matter.value(page, "title") is not None else title_line(path, memory.title)
    return front_matter.render(page, lines | title, memory.content)


def title_line(path: str, title: str) -> dict[str, str]:
    """Return the front matter line for a title that differs from that of the file name."""
    return {} if title_of(path) == title else {"title": _line("title", title)}


def _lines(memory: ParsedMemory, *, has_tags: bool, created: str) -> dict[str, str]:
    tags = {"tags": f"tags: {yaml_flow(memory.tags)}"} if has_tags else {}
    times = {"created": f"created: {created}"} if created else {}
    kind = {"memory_type": _line("memory_type", memory.memory_type)}
    return {**kind, **tags, **times, "modified": f"modified: {memory.modified}"}


def _line(key: str, value: str) -> str:
    return yaml_block([(key, value)]).rstrip("\n")


def _text(page: Page, key: str) -> str:
    value = front_matter.value(page, key)
    return value.strip() if isinstance(value, str) else ""


def iso_time(nanoseconds: int) -> str:
    seconds = min(max(nanoseconds / 1e9, _MIN_SECONDS), _MAX_SECONDS)
    return iso(datetime.fromtimestamp(seconds, UTC))
