"""Importers of other programs' memories, each chosen by the content of a file or folder; see docs/importing.md.

The first that fits wins, so the particular forms come before the common forms.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

from handlers.importers import agent_memories, chats, cogx, editor_chats, letta, markdown_folders, messages, rules
from handlers.importers.agent_stores import EXPORTS, GRAPHITI, LANGGRAPH
from handlers.importers.archives import has_files, head_of, inner, is_zip, unpack_zip
from handlers.importers.archives import unpacked as unpacked_file
from handlers.importers.importing import Open, Read, preview, run
from handlers.importers.programs import (
    CLAUDE_MEM,
    ENGRAM,
    MEM0,
    MEMORY_SERVICE,
    PROGRAMS,
    is_database,
    is_sqlite,
    newest,
    open_database,
    open_export,
)
from handlers.importers.records import Item
from kernel.core.errors import Fault
from kernel.memories.import_records import Import, Source
from kernel.memories.json_rows import without_blanks

_HEAD_BYTES = 1 << 16
_LOOKED_AT_BYTES = 4096  # of each file of an archive
_OF_FOLDERS = ("*.md", "*.markdown", "*.mdc", ".*rules", "*.zip")
_OF_TEXT = {"obsidian", "basic-memory", "okf", "rules", "claude-code", "codex"}
_TEXTS = re.compile(rb'"(?!\s*[{\[])|\{\s*"[^"\\]{1,200}"\s*:\s*\[\s*"')  # on lines, or by their categories
_Form = tuple[Callable[[Path], bool], Open]
"""One form in which the data of a program comes: how it is known, and how it is opened."""


def _import(
    kind: str, about: str, dialect: str, *forms: _Form, is_export: bool = False, is_apart: bool = False
) -> Import:
    """Return an import in the first form that a source has, of sources that hold all that a program has if it
    `is_export`, and all of a part of it if it `is_apart`.

    A source that is named and has none of them takes the first form if it is a database, else the last.
    """

    def matches(path: Path) -> bool:
        return any(is_of_form(path) for is_of_form, _ in forms)

    def open_(source: Source, stack: ExitStack) -> Read:
        _, own = forms[0 if is_sqlite(source.path) else -1]
        return next((opens for is_of_form, opens in forms if is_of_form(source.path)), own)(source, stack)

    scope = {"is_export": is_export, "is_apart": is_apart}
    return Import(kind, about, partial(run, open_, **scope), partial(preview, open_, **scope), matches, dialect)


def _program(system: str, about: str, dialect: str, *members: str) -> Import:
    program = PROGRAMS[system]
    database = (partial(is_database, program), partial(open_database, program))
    export, files = partial(open_export, program.export), program.export.files
    archive = (partial(has_files, names=(*files, *(f".{system}/{name}" for name in files))), export)
    texts = [(_is_of_texts, export)] if program.export.text else []
    return _import(system, about, dialect, database, archive, *texts, (_has_members(*members), export), is_export=True)


def unpacked(source: Source, kind: str | None) -> Source:
    """Return a source without the packing around it: an archive, or the text around JSON."""
    is_text = kind in _OF_TEXT or (kind is None and rules.is_rules(source.path))
    return unpacked_file(source, is_text=is_text)


def _rows(system: str, about: str, *signs: tuple[str, ...]) -> Import:
    """Return an import of JSON in which all members of any of the signs stand."""
    export = partial(open_export, EXPORTS[system])
    forms = [(partial(_has_all, names), export) for names in signs]
    return _import(system, about, "brain", *forms, is_export=True)


def _folder(kind: str, about: str, dialect: str, matches: Callable[[Path], bool], opens: Open) -> Import:
    return _import(
        kind, about, dialect, (matches, opens), (partial(_is_in_archive, matches), partial(_open_folder, opens))
    )


def _is_in_archive(matches: Callable[[Path], bool], path: Path) -> bool:
    if not is_zip(path) or not has_files(path, _OF_FOLDERS):
        return False
    with TemporaryDirectory() as copy:
        try:
            unpack_zip(path, Path(copy), _LOOKED_AT_BYTES)
        except Fault:
            return False
        return matches(inner(Path(copy)))


def _open_folder(opens: Open, source: Source, stack: ExitStack) -> Read:
    """Open a folder, or the copy of one in a ZIP archive, which belongs to the folder of its name beside it."""
    if not is_zip(source.path):
        return opens(source, stack)
    copy = Path(stack.enter_context(TemporaryDirectory(dir=source.copies)))
    left = unpack_zip(source.path, copy)
    root = str(source.path.resolve().with_suffix(""))
    read = opens(source._replace(path=inner(copy), root=root), stack)
    return lambda: chain(left, read())


def _open_chats(system: str, source: Source, stack: ExitStack) -> Read:
    return newest(chats.open_export(system, source, stack))


def _file(read: Callable[[Path], Iterator[Item]]) -> Open:
    return lambda source, _stack: partial(read, source.path)


def _has_members(*names: str) -> Callable[[Path], bool]:
    marks = [mark for name in names for mark in (f'"{name}"'.encode(), f'\\"{name}\\"'.encode())]  # also in a text
    return lambda path: (
        path.is_file()
        and (head := without_blanks(head_of(path, _HEAD_BYTES, unpacked=True))).startswith((b"{", b"[", b'"{', b'"['))
        and any(mark in head for mark in marks)
    )


def _is_of_texts(path: Path) -> bool:
    """Return whether a file begins with a list of texts, a text on a line, or a category with a list of texts."""
    head = without_blanks(head_of(path, _HEAD_BYTES, unpacked=True))
    return bool(_TEXTS.match(head)) or (head.startswith(b"[") and without_blanks(head[1:]).startswith(b'"'))


def _has_all(names: tuple[str, ...], path: Path) -> bool:
    return all(_has_members(name)(path) for name in names)


IMPORTS = (
    _import(
        editor_chats.GEMINI,
        "a session of Gemini CLI, or a folder of sessions",
        "sessions",
        (editor_chats.is_gemini, editor_chats.open_gemini),
        is_apart=True,
    ),
    _import(
        "claude-code",
        "the auto memory of Claude Code, its folder, a session, or a folder of sessions",
        "brain",
        (agent_memories.is_claude_code, agent_memories.open_claude_code),
    ),
    _import(
        "codex",
        "the folder with the memories of Codex, a session, or a folder of sessions",
        "brain",
        (agent_memories.is_codex, agent_memories.open_codex),
    ),
    _program(CLAUDE_MEM, "claude-mem.db, or the JSON of its export", "sessions", "totalObservations"),
    _program(
        MEMORY_SERVICE, "its SQLite database, or the JSON of its export", "brain", "export_metadata", "exporter_version"
    ),
    _program(ENGRAM, "engram.db, or the JSON of its export", "sessions", "topic_key", "normalized_hash", "sync_id"),
    _import(
        "cogx",
        "a folder or archive of the exchange format of cognee",
        "brain",
        (cogx.is_archive, cogx.open_archive),
        is_export=True,
    ),
    _import(
        "chatgpt",
        "the ZIP archive that ChatGPT exports, or its conversations.json",
        "sessions",
        (chats.is_chatgpt, partial(_open_chats, chats.CHATGPT)),
        is_export=True,
    ),
    _import(
        "claude",
        "the ZIP archive that Claude exports, or its conversations.json",
        "sessions",
        (chats.is_claude, partial(_open_chats, chats.CLAUDE)),
        is_export=True,
    ),
    _import(
        editor_chats.COPILOT,
        "a chat of Copilot that VS Code exports",
        "sessions",
        (editor_chats.is_copilot, editor_chats.open_copilot),
        is_apart=True,
    ),
    _import(
        "letta",
        "an agent file (.af), or a list of memory blocks",
        "paths",
        (letta.is_of_blocks, _file(letta.read_file)),
        (_has_members("core_memory", "block_ids", "agents"), _file(letta.read_file)),
        is_export=True,
    ),
    _rows(
        LANGGRAPH,
        "items of a store of LangGraph or LangMem as JSON",
        ("namespace", "key", "value"),
        ("prefix", "key", "value"),
    ),
    _rows(
        GRAPHITI,
        "facts, nodes and episodes of Graphiti or Zep as JSON",
        ("fact", "valid_at"),
        ("fact", "source_node_uuid"),
        ("fact", "facts", "uuid"),
        ("uuid", "labels", "summary"),
    ),
    _import(
        messages.MESSAGES,
        "conversations as messages with a role and a content",
        "sessions",
        (messages.is_messages, messages.open_messages),
        is_apart=True,
    ),
    _program(
        MEM0,
        "the JSON of mem0, or its history.db",
        "brain",
        *("memory", "results", "memories", "items", "content", "text", "data", "new_memory"),
    ),
    _folder(
        "okf",
        "a bundle of the Open Knowledge Format",
        "brain",
        markdown_folders.is_okf,
        partial(markdown_folders.open_folder, "okf"),
    ),
    _folder(
        "basic-memory",
        "a folder of basic-memory",
        "brain",
        markdown_folders.is_basic_memory,
        partial(markdown_folders.open_folder, "basic-memory"),
    ),
    _folder(
        "obsidian",
        "a vault of Obsidian, or any folder of Markdown files",
        "brain",
        markdown_folders.is_obsidian,
        partial(markdown_folders.open_folder, "obsidian"),
    ),
    _folder(
        "rules",
        "CLAUDE.md, AGENTS.md, .cursor/rules and the like, or their project",
        "scopes",
        rules.is_rules,
        rules.open_rules,
    ),
)
