"""Dialect `scopes` (seed 000): versioned tools, guidelines and knowledge in nested scopes, fifteen bundled tools."""

from typing import Any

import msgspec

from handlers.scopes import (
    admin,
    conflicts,
    entries,
    entry_requests,
    errors,
    export_import,
    hierarchy,
    import_agent_memory,
    locks,
    query,
    relations,
    tags,
)
from handlers.scopes.entry_tools import memory_guideline, memory_knowledge, memory_tool
from kernel.errors import Fault
from kernel.tools import Dialect, Hints, Hooks, Reply, Tool, exclusive, read, write


def reply(tool: Tool, result: Any) -> Reply:
    """The result as JSON: indented by two for those who read the text, compact as structured content."""
    compact = msgspec.json.encode(result)
    return Reply(msgspec.json.format(compact, indent=2), "application/json", None, compact)


def fail(fault: Fault) -> Reply:
    """The contract's error: error, code, and context where there is any."""
    said: dict[str, Any] = {"error": fault.message, "code": fault.label or errors.LABELS.get(fault.code, "E5000")}
    if fault.context:
        said["context"] = fault.context
    return Reply(msgspec.json.format(msgspec.json.encode(said), indent=2), "application/json", fault.code)


TOOLS: tuple[Tool, ...] = (
    write(
        hierarchy.memory_org,
        Hints("Organizations"),
        permission={"create": "write", "list": "read"},
        read_arms=hierarchy.ORG_READ_ARMS,
    ),
    write(
        hierarchy.memory_project,
        Hints("Projects"),
        permission={"create": "write", "list": "read", "get": "read", "update": "write"},
        read_arms=hierarchy.PROJECT_READ_ARMS,
    ),
    write(
        hierarchy.memory_session,
        Hints("Sessions"),
        permission={"start": "write", "end": "write", "list": "read"},
        read_arms=hierarchy.SESSION_READ_ARMS,
    ),
    write(
        memory_tool,
        Hints("Tools"),
        permission={
            "add": "write",
            "update": "write",
            "get": "read",
            "list": "read",
            "history": "read",
            "deactivate": "write",
        },
        hooks=Hooks(texts=entries.texts_to_embed),
        read_arms=entry_requests.READ_ARMS,
    ),
    write(
        memory_guideline,
        Hints("Guidelines"),
        permission={
            "add": "write",
            "update": "write",
            "get": "read",
            "list": "read",
            "history": "read",
            "deactivate": "write",
        },
        hooks=Hooks(texts=entries.texts_to_embed),
        read_arms=entry_requests.READ_ARMS,
    ),
    write(
        memory_knowledge,
        Hints("Knowledge"),
        permission={
            "add": "write",
            "update": "write",
            "get": "read",
            "list": "read",
            "history": "read",
            "deactivate": "write",
        },
        hooks=Hooks(texts=entries.texts_to_embed),
        read_arms=entry_requests.READ_ARMS,
    ),
    write(
        tags.memory_tag,
        Hints("Tags"),
        permission={"create": "write", "list": "read", "attach": "write", "detach": "write", "for_entry": "read"},
        read_arms=tags.READ_ARMS,
    ),
    write(
        relations.memory_relation,
        Hints("Relations", destructive=True),
        permission={"create": "write", "list": "read", "delete": "write"},
        read_arms=relations.READ_ARMS,
    ),
    write(
        locks.memory_file_lock,
        Hints("File locks", destructive=True),
        permission={"checkout": "write", "checkin": "write", "status": "read", "list": "read", "force_unlock": "admin"},
        read_arms=locks.READ_ARMS,
    ),
    read(query.memory_query, Hints("Query"), permission={"search": "read", "context": "read"}),
    write(
        conflicts.memory_conflict,
        Hints("Conflicts"),
        permission={"list": "read", "resolve": "write"},
        read_arms=conflicts.READ_ARMS,
    ),
    read(admin.memory_health, Hints("Health"), permission="read"),
    exclusive(
        admin.memory_init,
        Hints("Initialization", destructive=True),
        permission={"init": "read", "status": "read", "reset": "admin"},
        read_arms=admin.READ_ARMS,
        long=True,
    ),
    read(export_import.memory_export, Hints("Export"), permission={"export": "read"}, audited=True),
    exclusive(
        export_import.memory_import, Hints("Import", destructive=True), permission={"import": "admin"}, long=True
    ),
)
DIALECT = Dialect(
    name="scopes",
    about="Tools, guidelines and knowledge with versions, in global, org, project and session scopes.",
    tools=TOOLS,
    reply=reply,
    fail=fail,
    argument_fault=errors.argument_fault,
    sources=entries.sources,
    imports=(import_agent_memory.IMPORT, export_import.IMPORT),
)
