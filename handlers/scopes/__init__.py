"""Dialect `scopes` (seed 000): versioned tools, guidelines and knowledge in nested scopes, fifteen bundled tools."""

from typing import Any

import msgspec

from handlers.scopes import (
    agent_memory,
    asks,
    conflicts,
    entries,
    faults,
    locks,
    places,
    query,
    relations,
    tags,
    transfer,
    upkeep,
)
from handlers.scopes.bundles import memory_guideline, memory_knowledge, memory_tool
from kernel.errors import Fault
from kernel.tools import Dialect, Hints, Reply, Tool, exclusive, read, write


def reply(tool: Tool, result: Any) -> Reply:
    """The result as JSON: indented by two for those who read the text, compact as structured content."""
    compact = msgspec.json.encode(result)
    return Reply(msgspec.json.format(compact, indent=2), "application/json", None, compact)


def fail(fault: Fault) -> Reply:
    """The contract's error: error, code, and context where there is any."""
    said: dict[str, Any] = {"error": fault.message, "code": fault.label or faults.LABELS.get(fault.code, "E5000")}
    if fault.context:
        said["context"] = fault.context
    return Reply(msgspec.json.format(msgspec.json.encode(said), indent=2), "application/json", fault.code)


TOOLS: tuple[Tool, ...] = (
    write(places.memory_org, Hints("Organizations"), reads=places.ORG_READS),
    write(places.memory_project, Hints("Projects"), reads=places.PROJECT_READS),
    write(places.memory_session, Hints("Sessions"), reads=places.SESSION_READS),
    write(memory_tool, Hints("Tools"), reads=asks.READS, texts=entries.texts),
    write(memory_guideline, Hints("Guidelines"), reads=asks.READS, texts=entries.texts),
    write(memory_knowledge, Hints("Knowledge"), reads=asks.READS, texts=entries.texts),
    write(tags.memory_tag, Hints("Tags"), reads=tags.READS),
    write(relations.memory_relation, Hints("Relations", destructive=True), reads=relations.READS),
    write(locks.memory_file_lock, Hints("File locks", destructive=True), reads=locks.READS),
    read(query.memory_query, Hints("Query")),
    write(conflicts.memory_conflict, Hints("Conflicts"), reads=conflicts.READS),
    read(upkeep.memory_health, Hints("Health")),
    exclusive(upkeep.memory_init, Hints("Initialization", destructive=True), reads=upkeep.READS, long=True),
    read(transfer.memory_export, Hints("Export"), audited=True),
    exclusive(transfer.memory_import, Hints("Import", destructive=True), long=True),
)
DIALECT = Dialect(
    name="scopes",
    about="Tools, guidelines and knowledge with versions, in global, org, project and session scopes.",
    tools=TOOLS,
    reply=reply,
    fail=fail,
    misread=faults.misread,
    sources=entries.sources,
    imports=(agent_memory.IMPORT, transfer.IMPORT),
)
