"""agent-memory beside the dialect `scopes`."""

from functools import partial

from handlers import scopes
from tests.originals.comparison import withheld
from tests.originals.originals import Original, Rule
from tests.originals.scopes_calls import LINKS, LOCKS, SCOPES
from tests.originals.scopes_entries import ENTRIES, STRAYS
from tests.originals.scopes_queries import ADMINISTRATION, END, QUERIES

KINDS = "memory_tool, memory_guideline, memory_knowledge"
RESULTS = "results[]* || tools[]* || guidelines[]* || knowledge[]*"
INVALID = "Validation error*"
NO_CHANGE = "behaviour: update without a change"
RULES = (
    Rule("behaviour: structured content", at="structured", original="none", ours="the same"),
    Rule("every tool: behaviour: times", kind="value", original="<time without zone>", ours="<time>"),
    Rule("behaviour: meta of lists", at="meta.hasMore || meta.totalCount", kind="added"),
    Rule("every tool: behaviour: error", at="context || context.field || context.*", kind="added"),
    Rule("every tool: behaviour: error", at="code", original="E5001 || E1000"),
    Rule("every tool: behaviour: error", at="error", ours=f"{INVALID} || * not found: * || * already exists: *"),
    Rule("every tool: behaviour: unknown arguments", at="outcome", ours="*has no such parameter*"),
    Rule("every tool: behaviour: values", at="outcome", ours="*expected string*"),
    Rule("every tool: behaviour: values", at="outcome", ours="*invalid enum value*"),
    Rule("behaviour: unknown ids in filters", "*list*", "outcome", ours="* not found: *"),
    Rule("memory_project: behaviour: get by name", '*"get", "name": "Site"}', "outcome", ours="*"),
    Rule("every tool: behaviour: unknown tool", "no_such_tool*"),
    Rule("every tool: behaviour: error", at="error", ours="* is required || * is required for non-global scope"),
    Rule("every tool: behaviour: error", at="context.suggestion", kind="missing || value"),
    Rule("every tool: behaviour: error", at="context.resource", original="Guideline", ours="guideline"),
    Rule("every tool: behaviour: values", at="outcome", ours="*expected integer*"),
    Rule("every tool: behaviour: values", at="outcome", ours="*expected number*"),
    Rule(f"{KINDS}: behaviour: get", '*"get", *three*', "outcome", original="*not found*"),
    Rule(
        f"{KINDS}, memory_tag: behaviour: unknown id", '*"history"* || *"for_entry"*', "outcome", ours="* not found: *"
    ),
    Rule("memory_import: behaviour: changeReason", 'memory_tool*"imported"*', "tool.currentVersion.changeReason"),
    Rule("behaviour: validUntil", "memory_*", "*validUntil", kind="value", ours="<time>"),
    Rule("behaviour: predefined tags", at="tag.description || tags[].description", kind="value"),
    Rule("every tool: behaviour: ids", at="tags[].id", original="<id>", ours="tag_*"),
    Rule("behaviour: order of lists", '*"for_entry"*', "tags[]", "order"),
    Rule("memory_query: behaviour: score of a search", '*"search": "*', "results[].score", "value"),
    Rule("memory_query: behaviour: strength", '*"search": "*', "results[].strength", "added"),
    Rule("behaviour: end", at="outcome", ours="*was ended before*"),
    Rule(NO_CHANGE, at="outcome", ours="*or another field to change*"),
    Rule(NO_CHANGE, "memory_*", "*ersion.versionNum", original="4", ours="2"),
    Rule(NO_CHANGE, "memory_*", "*ersion.createdBy", original="null", ours="bob"),
    Rule(NO_CHANGE, "memory_*", "*ersion.changeReason", original="null", ours="clearer"),
    Rule(NO_CHANGE, '*"history"* || memory_export*', "*versions[]", "length"),
    Rule(NO_CHANGE, "memory_conflict*", "conflicts[] || meta.returnedCount"),
    Rule("behaviour: detach", at="outcome", original="*tagId is required*"),
    Rule("parameter fencing_token", "memory_file_lock*", "lock.fencingToken || locks[].fencingToken", "added"),
    Rule("memory_query: behaviour: result", at=RESULTS, kind="missing || order"),
    Rule("memory_query: behaviour: compact", at="*[].tags[]*"),
    Rule("behaviour: force_unlock", at="forceUnlocks", kind="added"),
    Rule("behaviour: checkout", at="outcome", original="*is already locked by agent one*"),
    Rule("behaviour: file_path", "*a..b*", "outcome"),
    Rule("behaviour: expires_in", '*"expires_in": -5*', "outcome"),
    Rule("memory_query: behaviour: tags, includeInactive, limit", '*{"exclude": *', "results[] || meta.*"),
    Rule("memory_query: behaviour: meta", at="meta.totalCount || meta.truncated", kind="value"),
    Rule(
        "memory_query: behaviour: tags, includeInactive, limit",
        '*"context"*',
        "guidelines[] || knowledge[] || meta.returnedCount",
    ),
    Rule("memory_query: behaviour: tags, includeInactive, limit", '*"includeInactive"*', "results[]* || meta.*"),
    Rule("memory_conflict: behaviour: resolve", at="conflict.resolvedBy || conflicts[].resolvedBy"),
    Rule(
        "memory_conflict: behaviour: list",
        'memory_conflict {"action": "list"} (2)',
        "conflicts[] || meta.returnedCount",
    ),
    Rule("behaviour: order of lists", "memory_conflict*", "conflicts[].*"),
    Rule("memory_health: behaviour: values", at="cache* || status || database.error || tables.*"),
    Rule("memory_init: behaviour: answers", 'memory_init*"status"* || memory_init*"init"*'),
    Rule("memory_init: behaviour: answers", '*"reset"}*', "outcome || success || code"),
    Rule("memory_init: behaviour: reset", '*"confirm": true*'),
    Rule("memory_export: behaviour: document", at="content: *", kind="added || order"),
    Rule("memory_export: behaviour: filters", at="content: entries.knowledge[]", kind="length", original="[]"),
    Rule("memory_export: behaviour: filters", "*", "metadata.entryCount"),
    Rule("memory_export: behaviour: filters", "memory_export*", "outcome", ours="* not found: *"),
    Rule("memory_export: behaviour: formats", '*"markdown"* || *"yaml"*', "content"),
    Rule(
        "memory_import: behaviour: update, replace", at="updated || skipped || details.*.updated || details.*.skipped"
    ),
    Rule("memory_import: behaviour: match", '*"scopeMapping"*', "created || details.*.created"),
    Rule("memory_import: behaviour: match", 'memory_tool*"imported"*"project"*', "tool.*"),
    Rule("memory_import: behaviour: error", "*", "outcome", ours="*Nothing was imported*"),
    Rule("memory_import: behaviour: scopeMapping", "*", "outcome", ours="*is no scope of the document*"),
    Rule("memory_import: values format", "*", "errors[].* || success || errors[]"),
    Rule("memory_project: behaviour: name", "*", "outcome", ours="* already exists: *"),
    Rule(f"{KINDS}: behaviour: name", "*", "outcome", ours="* already exists: *"),
    Rule(f"{KINDS}: behaviour: name", "*", "outcome", original="*UNIQUE constraint failed*"),
    Rule("behaviour: scopeId", "*", "outcome", ours="*Project not found: *"),
    Rule("memory_tag: behaviour: name", "*PYTHON*"),
    Rule("behaviour: ends", "*", "outcome", ours="* not found: *"),
    Rule("behaviour: unknown ids in filters", "memory_query*relatedTo*", "outcome", ours="* not found: *"),
    Rule("behaviour: scopeId", "memory_query*", "outcome", ours="* not found: * || *scope.id is required*"),
    Rule("behaviour: scopeId", "memory_query*", "outcome", ours="*scopeId is required*"),
    Rule("behaviour: layout", at="layout", original="JSON, indented", ours="JSON, without blanks"),
)

ORIGINAL = Original(
    scopes.DIALECT,
    "https://github.com/coccobas/agent-memory",
    "c3c5b9da",
    {
        "AGENT_MEMORY_DB_PATH": "{data}/memory.db",
        "AGENT_MEMORY_VECTOR_DB_PATH": "{data}/vectors.lance",
        "AGENT_MEMORY_EMBEDDING_PROVIDER": "disabled",
    },
    {"QUIPU_MODEL": "none"},
    r"\b(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[a-z]+_[0-9A-Za-z]{22})\b",
    (*SCOPES, *ENTRIES, *LINKS, *LOCKS, *QUERIES, *ADMINISTRATION, *STRAYS, *END),
    RULES,
    partial(withheld, key="description", beside="isPredefined"),
)
