"""Dialect `scopes` (seed 000): versioned tools, guidelines and knowledge in nested scopes, fifteen bundled tools."""

from typing import Any

import msgspec

from handlers.scopes import (
    admin,
    conflicts,
    curation,
    entries,
    entry_tools,
    errors,
    export_import,
    hierarchy,
    locks,
    query,
    relations,
    tags,
)
from kernel.calls.dialect import Dialect, Exchange, Files, Memories, Outside
from kernel.calls.tools import Reply, Tool, json_reply, lazily
from kernel.core.errors import Fault
from kernel.memories.import_records import Import
from kernel.store.history import Past


def fail(fault: Fault) -> Reply:
    """Return the contract's error object: error, code, and any context; a rolled back result as it is."""
    if fault.label == errors.ROLLED_BACK:
        return json_reply(None, fault.context["result"])
    body: dict[str, Any] = {"error": fault.message, "code": fault.label or errors.LABELS.get(fault.code, "E5000")}
    if fault.context:
        body["context"] = fault.context
    return Reply(msgspec.json.encode(body), "application/json", fault.code)


TOOLS: tuple[Tool, ...] = (
    *hierarchy.TOOLS,
    *entry_tools.TOOLS,
    *tags.TOOLS,
    *relations.TOOLS,
    *locks.TOOLS,
    *query.TOOLS,
    *conflicts.TOOLS,
    *admin.TOOLS,
    *export_import.TOOLS,
)

DIALECT = Dialect(
    name="scopes",
    about="Tools, guidelines and knowledge with versions, in global, org, project and session scopes.",
    guide="Call memory_query first. memory_guideline holds standing rules, memory_knowledge facts and decisions"
    " with their source, memory_tool how tools are used. Update an entry instead of adding another.",
    tools=TOOLS,
    reply=json_reply,
    fail=fail,
    argument_fault=errors.argument_fault,
    memories=Memories(
        places=("project:ID", "global", "org:ID", "session:ID"),
        sources=entries.sources,
        sources_of=entries.sources_of,
        curate=curation.curate,
        erase=curation.erase,
        compose=curation.compose,
        brief=curation.brief,
        past=Past(entries.past_sources, keeps_scope=True),
        tagged=tags.tagged,
        expired=entries.expired,
        take=lazily("handlers.scopes.intake:take"),
    ),
    files=Files(outside={"scopes_predefined_tag": Outside()}),
    exchange=Exchange(
        imports=(
            Import(
                "agent-memory",
                "the database of agent-memory 0.2 to 0.9 (memory.db)",
                lazily("handlers.scopes.import_agent_memory:import_database"),
            ),
            export_import.IMPORT,
        )
    ),
)
