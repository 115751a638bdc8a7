"""Dialect `scopes` (seed 000): versioned tools, guidelines and knowledge in nested scopes, fifteen bundled tools."""

from collections.abc import Sequence
from typing import Any

import msgspec

from handlers.scopes import (
    admin,
    briefing,
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
from kernel.calls.tools import Reply, Tool
from kernel.core.errors import Fault
from kernel.core.text import json_bytes
from kernel.memories.import_records import Import, Imported, Record, Source
from kernel.store.history import Past
from kernel.store.long_work import Steps
from kernel.store.transaction import Tx


def reply(tool: Tool, result: Any) -> Reply:
    """Return the result as compact JSON, which is also the structured content."""
    return _result(result)


def _result(result: Any) -> Reply:
    body = json_bytes(result)
    return Reply(body, "application/json", None, body)


def fail(fault: Fault) -> Reply:
    """Return the contract's error object: error, code, and any context; a rolled back result as it is."""
    if fault.label == errors.ROLLED_BACK:
        return _result(fault.context["result"])
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


def _import_agent_memory(source: Source) -> Steps[Imported]:
    from handlers.scopes.import_agent_memory import import_database  # for the command only

    return import_database(source)


def _take(tx: Tx, records: Sequence[Record]) -> Sequence[int | str]:
    from handlers.scopes.intake import take  # for the command only, so that a server starts without it

    return take(tx, records)


DIALECT = Dialect(
    name="scopes",
    about="Tools, guidelines and knowledge with versions, in global, org, project and session scopes.",
    guide="Call memory_query first. memory_guideline holds standing rules, memory_knowledge facts and decisions"
    " with their source, memory_tool how tools are used. Update an entry instead of adding another.",
    tools=TOOLS,
    reply=reply,
    fail=fail,
    argument_fault=errors.argument_fault,
    memories=Memories(
        places="project:ID",
        sources=entries.sources,
        sources_of=entries.sources_of,
        curate=curation.curate,
        erase=curation.erase,
        compose=curation.compose,
        brief=briefing.brief,
        past=Past(entries.past_sources, keeps_scope=True),
        tagged=tags.tagged,
        expired=entries.expired,
        take=_take,
    ),
    files=Files(outside={"scopes_predefined_tag": Outside()}),
    exchange=Exchange(
        imports=(
            Import("agent-memory", "the database of agent-memory 0.2 to 0.9 (memory.db)", _import_agent_memory),
            export_import.IMPORT,
        )
    ),
)
