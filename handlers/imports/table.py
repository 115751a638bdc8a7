"""The table of importers: how each source is known, opened, and named in the audit.

The first that fits a file or folder wins, so what is particular comes before what is common.
"""

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import NamedTuple

from handlers.imports import (
    agent_memories,
    chats,
    claude_mem,
    cogx,
    engram,
    letta,
    markdown_folders,
    mcp_memory_service,
    mem0,
    rules,
)
from handlers.imports.archives import head_of
from handlers.imports.importing import Open, Read, preview, run
from handlers.imports.sqlite_files import is_sqlite
from kernel.store.imports import Import, Source

_HEAD_BYTES = 1 << 16


class _Form(NamedTuple):
    """One form in which the data of a program comes: how it is known, and how it is opened."""

    matches: Callable[[Path], bool]
    open: Open


class _Program(NamedTuple):
    kind: str
    about: str
    dialect: str
    forms: tuple[_Form, ...]


def _has_members(*names: str) -> Callable[[Path], bool]:
    """Whether a file is JSON that begins as a document with one of these members does."""
    marks = [f'"{name}"'.encode() for name in names]
    return lambda path: (
        path.is_file()
        and (head := head_of(path, _HEAD_BYTES).lstrip(b"\xef\xbb\xbf \t\r\n")).startswith((b"{", b"["))
        and any(mark in head for mark in marks)
    )


_PROGRAMS = (
    _Program(
        "claude-code",
        "the auto memory of Claude Code, its folder, or one of its sessions",
        "brain",
        (_Form(agent_memories.is_claude_code, agent_memories.open_claude_code),),
    ),
    _Program(
        "codex",
        "the folder with the memories of Codex",
        "brain",
        (_Form(agent_memories.is_codex, agent_memories.open_codex),),
    ),
    _Program(
        "claude-mem",
        "claude-mem.db, or the JSON of its export",
        "sessions",
        (
            _Form(claude_mem.is_database, claude_mem.open_database),
            _Form(_has_members("totalObservations"), claude_mem.open_json),
        ),
    ),
    _Program(
        "mcp-memory-service",
        "its SQLite database, or the JSON of its export",
        "brain",
        (
            _Form(mcp_memory_service.is_database, mcp_memory_service.open_database),
            _Form(_has_members("export_metadata", "exporter_version"), mcp_memory_service.open_json),
        ),
    ),
    _Program(
        "engram",
        "engram.db, or the JSON of its export",
        "sessions",
        (
            _Form(engram.is_database, engram.open_database),
            _Form(_has_members("topic_key", "normalized_hash"), engram.open_json),
        ),
    ),
    _Program(
        "cogx",
        "a folder or archive of the exchange format of cognee",
        "brain",
        (_Form(cogx.is_archive, cogx.open_archive),),
    ),
    _Program(
        "chatgpt",
        "the ZIP archive that ChatGPT exports, or its conversations.json",
        "sessions",
        (_Form(chats.is_chatgpt, partial(chats.open_export, chats.CHATGPT)),),
    ),
    _Program(
        "claude",
        "the ZIP archive that Claude exports, or its conversations.json",
        "sessions",
        (_Form(chats.is_claude, partial(chats.open_export, chats.CLAUDE)),),
    ),
    _Program(
        "letta",
        "an agent file (.af)",
        "paths",
        (_Form(_has_members("core_memory", "block_ids", "agents"), letta.open_file),),
    ),
    _Program(
        "mem0",
        "the JSON of mem0, or its history.db",
        "brain",
        (
            _Form(mem0.is_database, mem0.open_database),
            _Form(_has_members("memory", "results", "memories", "items", "content", "text", "data"), mem0.open_json),
        ),
    ),
    _Program(
        "okf",
        "a bundle of the Open Knowledge Format",
        "brain",
        (_Form(markdown_folders.is_okf, partial(markdown_folders.open_folder, "okf")),),
    ),
    _Program(
        "basic-memory",
        "a folder of basic-memory",
        "brain",
        (_Form(markdown_folders.is_basic_memory, partial(markdown_folders.open_folder, "basic-memory")),),
    ),
    _Program(
        "obsidian",
        "a vault of Obsidian, or any folder of Markdown files",
        "brain",
        (_Form(markdown_folders.is_obsidian, partial(markdown_folders.open_folder, "obsidian")),),
    ),
    _Program(
        "rules",
        "CLAUDE.md, AGENTS.md, .cursor/rules and the like, or their project",
        "scopes",
        (_Form(rules.is_rules, rules.open_rules),),
    ),
)


def _matches(program: _Program, path: Path) -> bool:
    return any(form.matches(path) for form in program.forms)


def _opener(program: _Program) -> Open:
    """Opens a source in the form that it has; of a named one that has none, a database is the first form."""

    def open_(given: Source, stack: ExitStack) -> Read:
        own = program.forms[0 if is_sqlite(given.path) else -1]
        form = next((form for form in program.forms if form.matches(given.path)), own)
        return form.open(given, stack)

    return open_


def _import(program: _Program) -> Import:
    opener = _opener(program)
    return Import(
        program.kind,
        program.about,
        partial(run, opener),
        partial(preview, opener),
        partial(_matches, program),
        program.dialect,
    )


IMPORTS = tuple(map(_import, _PROGRAMS))
