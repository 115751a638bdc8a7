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
from kernel.tools import Dialect, Hints, Reply, Tool, exclusive, read, write


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
    write(hierarchy.memory_org, Hints("Organizations"), reads=hierarchy.ORG_READS),
    write(hierarchy.memory_project, Hints("Projects"), reads=hierarchy.PROJECT_READS),
    write(hierarchy.memory_session, Hints("Sessions"), reads=hierarchy.SESSION_READS),
    write(memory_tool, Hints("Tools"), reads=entry_requests.READS, texts=entries.texts),
    write(memory_guideline, Hints("Guidelines"), reads=entry_requests.READS, texts=entries.texts),
    write(memory_knowledge, Hints("Knowledge"), reads=entry_requests.READS, texts=entries.texts),
    write(tags.memory_tag, Hints("Tags"), reads=tags.READS),
    write(relations.memory_relation, Hints("Relations", destructive=True), reads=relations.READS),
    write(locks.memory_file_lock, Hints("File locks", destructive=True), reads=locks.READS),
    read(query.memory_query, Hints("Query")),
    write(conflicts.memory_conflict, Hints("Conflicts"), reads=conflicts.READS),
    read(admin.memory_health, Hints("Health")),
    exclusive(admin.memory_init, Hints("Initialization", destructive=True), reads=admin.READS, long=True),
    read(export_import.memory_export, Hints("Export"), audited=True),
    exclusive(export_import.memory_import, Hints("Import", destructive=True), long=True),
)
DIALECT = Dialect(
    name="scopes",
    about="Tools, guidelines and knowledge with versions, in global, org, project and session scopes.",
    tools=TOOLS,
    reply=reply,
    fail=fail,
    misread=errors.misread,
    sources=entries.sources,
    imports=(import_agent_memory.IMPORT, export_import.IMPORT),
)
