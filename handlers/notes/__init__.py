"""Dialect `notes` (seed 001): typed memories in Markdown files that people edit too; the index follows the files."""

import msgspec
from msgspec import Struct

from handlers.notes import sync
from handlers.notes.admin import memory_lint, memory_sync, undone
from handlers.notes.memories import memory_forget, memory_list_types, memory_remember, remember_texts
from handlers.notes.projects import SETTINGS
from handlers.notes.recall import memory_recall
from kernel.errors import Fault
from kernel.tools import Dialect, Hints, Hooks, Precheck, Reply, Tool, exclusive, read


def reply(tool: Tool, result: Struct) -> Reply:
    """The result as JSON."""
    body = msgspec.json.encode(result)
    return Reply(body, "application/json", None, body)


def fail(fault: Fault) -> Reply:
    """The bare message, as the original's tools throw it."""
    return Reply(fault.message.encode(), "text/plain; charset=utf-8", fault.code)


DIALECT = Dialect(
    name="notes",
    about="Typed memories in Markdown files that people edit too: remember, recall by words or meaning, forget.",
    tools=(
        read(memory_list_types, Hints("List memory types"), permission="read"),
        exclusive(memory_remember, Hints("Remember"), permission="write", hooks=Hooks(texts=remember_texts)),
        read(
            memory_recall,
            Hints("Recall"),
            permission="read",
            hooks=Hooks(precheck=Precheck(sync.check, sync.write, sync.texts)),
        ),
        exclusive(memory_forget, Hints("Forget", destructive=True), permission="write"),
        read(
            memory_sync,
            Hints("Sync"),
            permission="read",
            hooks=Hooks(precheck=Precheck(sync.check_all, sync.write, sync.texts)),
            long=True,
        ),
        read(
            memory_lint,
            Hints("Lint"),
            permission="read",
            hooks=Hooks(precheck=Precheck(sync.check, sync.write, sync.texts)),
        ),
    ),
    reply=reply,
    fail=fail,
    sources=sync.sources,
    settings=SETTINGS,
    after_undo=undone,
)
