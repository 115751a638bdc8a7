"""claude-mem: its database, and the JSON of its export."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from handlers.importers import json_files
from handlers.importers.importing import Read
from handlers.importers.records import (
    Item,
    LeftOut,
    Values,
    clean_line,
    filled,
    headed,
    mapping_in,
    tags_of,
    text_of,
    texts_in,
    time_in,
)
from handlers.importers.sqlite_files import has_tables, open_tables
from kernel.engines.foreign_file import ExternalDatabase
from kernel.memories.import_records import Record, Source

SYSTEM = "claude-mem"
_NEEDED: Mapping[str, tuple[str, ...]] = {
    "observations": ("id",),
    "session_summaries": ("id",),
    "user_prompts": (),
    "sdk_sessions": (),
}
_KINDS = {"observations": "observation", "session_summaries": "summary", "summaries": "summary"}
_PROMPTS = {"user_prompts", "prompts"}
_PRIORITIES = {"decision": 1, "bugfix": 2, "discovery": 2}
_SENSITIVE = ("security_", "sensitive")
_KEPT = (
    "files_read",
    "files_modified",
    "files_edited",
    "prompt_number",
    "discovery_tokens",
    "content_hash",
    "agent_type",
    "agent_id",
    "merged_into_project",
    "relevance_count",
)
_PARTS = ("request", "investigated", "learned", "completed", "next_steps", "notes")


def is_database(path: Path) -> bool:
    """Return whether a file is a database of claude-mem."""
    return path.is_file() and has_tables(path, "sdk_sessions", "observations")


def open_database(given: Source, stack: ExitStack) -> Read:
    """Return the observations and summaries of the database."""
    source = open_tables(given, stack, _NEEDED, "observations")
    return partial(_from_database, source, given.path.name)


def _from_database(source: ExternalDatabase, name: str) -> Iterator[Item]:
    platforms = {
        str(row.get("memory_session_id")): str(row.get("platform_source") or "") for row in source.rows("sdk_sessions")
    }
    for table in ("observations", "session_summaries", "user_prompts"):
        for row in source.rows(table, "id"):
            yield _item(table, row, name, platforms)


def read_json(path: Path) -> Iterator[Item]:
    """Yield the observations and summaries of an export."""
    for element in json_files.elements_of(path):
        if element.member in {*_KINDS, *_PROMPTS}:
            yield _item(element.member, mapping_in(element.value), path.name, {})


def _item(table: str, row: Values, name: str, platforms: Mapping[str, str]) -> Item:
    if table in _PROMPTS:
        return LeftOut("a prompt, not a memory")
    kind = _KINDS[table]
    is_summary = kind == "summary"
    category = kind if is_summary else text_of(row, "type") or kind
    if category.startswith(_SENSITIVE):
        return LeftOut(f"of the type {clean_line(category, 40)}")
    session = text_of(row, "memory_session_id", "content_session_id")
    title = text_of(row, "request") if is_summary else text_of(row, "title")
    metadata = filled({key: _kept(row, key) for key in _KEPT})
    return Record(
        "sessions",
        "memory",
        f"{SYSTEM}:{kind}:{row.get('id')}:{session}:{row.get('created_at_epoch') or row.get('created_at')}",
        _summary_text(row) if is_summary else _observation_text(row),
        place=f"{SYSTEM}:{session or 'unknown'}",
        title=clean_line(title, 200),
        category=category,
        tags=tags_of(row.get("concepts"), [text_of(row, "project"), platforms.get(session, "")]),
        created_at=time_in(row, "created_at_epoch", "created_at"),
        origin=filled({"system": SYSTEM, "table": kind, "id": row.get("id"), "file": name}),
        details={
            "priority": _PRIORITIES.get(category, 3),
            "metadata": {**mapping_in(row.get("metadata")), **metadata},
        },
    )


def _observation_text(row: Values) -> str:
    facts = [f"- {fact}" for fact in texts_in(row.get("facts"))]
    parts = [text_of(row, "title"), text_of(row, "subtitle"), text_of(row, "narrative", "text"), "\n".join(facts)]
    return "\n\n".join(part.strip() for part in parts if part.strip())


def _summary_text(row: Values) -> str:
    return headed({name.replace("_", " ").capitalize(): text_of(row, name) for name in _PARTS})


def _kept(row: Values, key: str) -> object:
    value = row.get(key)
    return texts_in(value) if key.startswith("files_") else value if isinstance(value, str | int | float) else None
