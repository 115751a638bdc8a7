"""Every tool of a dialect is the tool of its contract, apart from the deviations that it declares."""

import hashlib
import json

from kernel.calls.tools import Tool
from kernel.server.app import DIALECTS
from tests.contracts.deviation_tables import read_deviations
from tests.contracts.deviations import declared_differences, differences, without_reason
from tests.contracts.seed_texts import HERE, Action, Contract, Param, fences, sections, tabled
from tests.support.contracts_seeds import CONTRACTS, contract

# Dialects that lack some of their tools yet.
PENDING: set[str] = set()

DIGESTS = {
    "paths": "d39489596e8043e5f8360f357c533b332ecf289c33163a04242270548f2abf60",
    "notes": "20c1f75ffda861a70afdd6f4c587f6105973a8f7474752ae4558daedcc0c656e",
    "sessions": "d4a040e0c44a11e969a8e66e3ababcf185990976f4416052a92e9da834781e82",
    "brain": "5589d72b95edc07b7831e98ccde18b1ec2ebf16c78e363532063fa35944a4b78",
    "scopes": "caaacf8b35f01fbe08f3a16a94b36af32c2e99529f233900a9645577e39b5d75",
}
NAMES = {
    "paths": ["add_memory", "replace_memory", "drop_memory", "clear_memory"],
    "notes": ["memory_list_types", "memory_remember", "memory_recall", "memory_forget"],
    "sessions": [
        "remember",
        "search_memory",
        "list_recent",
        "list_entities",
        "upsert_entity",
        "add_relation",
        "get_entity",
        "get_context_graph",
        "maintenance",
        "diagnostics",
        "health",
    ],
    "brain": [
        "save_memory",
        "get_memories",
        "update_memory",
        "supersede_memory",
        "bulk_save_memories",
        "delete_memory",
        "smart_save_memory",
        "handle_correction",
        "get_memory_history",
        "create_entity",
        "get_entities",
        "update_entity",
        "get_entity_full",
        "delete_entity",
        "create_link",
        "get_links",
        "delete_link",
        "search",
        "search_all",
        "hybrid_search",
        "semantic_search",
        "batch_embed",
        "get_query_stats",
        "cleanup_query_log",
    ],
    "scopes": [
        "memory_org",
        "memory_project",
        "memory_session",
        "memory_tool",
        "memory_guideline",
        "memory_knowledge",
        "memory_tag",
        "memory_relation",
        "memory_file_lock",
        "memory_query",
        "memory_conflict",
        "memory_health",
        "memory_export",
        "memory_import",
        "memory_init",
    ],
}


def built() -> dict[str, tuple[Tool, ...]]:
    return {dialect.name: dialect.tools for dialect in DIALECTS}


def there(dialect: str) -> tuple[Contract, ...]:
    """The contracts of the tools that are there."""
    names = {tool.name for tool in built().get(dialect, ())}
    return tuple(tool for tool in CONTRACTS[dialect] if tool.name in names)


def test_the_documents_are_kept_byte_for_byte() -> None:
    assert {name: hashlib.sha256((HERE / f"{name}.md").read_bytes()).hexdigest() for name in DIGESTS} == DIGESTS


def test_the_documents_hold_58_tools_under_unique_names() -> None:
    found = {dialect: sorted(tool.name for tool in tools) for dialect, tools in CONTRACTS.items()}

    assert found == {dialect: sorted(names) for dialect, names in NAMES.items()}
    assert {dialect: len(names) for dialect, names in found.items()} == {
        "paths": 4,
        "notes": 4,
        "sessions": 11,
        "brain": 24,
        "scopes": 15,
    }
    assert len({name for names in found.values() for name in names}) == 58


def test_a_tool_of_paths_is_read_whole() -> None:
    assert contract("paths", "add_memory") == Contract(
        "paths",
        "add_memory",
        (
            Param("path", required=True, about="Unique identifier for the memory"),
            Param("content", required=True, about="Memory content"),
        ),
        ("status", "path", "content_size", "created_at"),
    )


def test_a_tool_of_notes_is_read_whole() -> None:
    assert contract("notes", "memory_recall") == Contract(
        "notes",
        "memory_recall",
        (
            Param("query", about="Search query (required when isAll=false)"),
            Param("memoryType", about="Filter by type"),
            Param(
                "limit",
                default="10 for search, 100 for isAll",
                about="Max results (default: 10 for search, 100 for isAll)",
            ),
            Param(
                "type",
                default="vsearch",
                values=("search", "vsearch", "query"),
                closed=True,
                about="Search type: 'search', 'vsearch', or 'query' (default: 'vsearch')",
            ),
            Param("isAll", default="false", about="Get all memories instead of search (default: false)"),
        ),
        ("memories", "count", "message", "error"),
    )


def test_tools_of_sessions_are_read_whole() -> None:
    assert contract("sessions", "upsert_entity") == Contract(
        "sessions",
        "upsert_entity",
        (
            Param("name", "string", True),
            Param("entity_type", "string", default="entity"),
            Param("observations_json", "string", about="JSON array of strings"),
            Param("memory_id", "int", about="link observations to a memory id"),
        ),
        ("status", "entity_id"),
    )
    assert contract("sessions", "maintenance").params[0] == Param(
        "action",
        "string",
        True,
        values=("vacuum", "purge_all", "purge_session", "prune_older_than"),
        closed=True,
        about="one of",
    )


def test_tools_of_brain_are_read_whole() -> None:
    databases = ("core", "therapy", "dnd", "hlg")
    relationships = ("relates_to", "supersedes", "contradicts", "depends_on", "part_of")
    kinds = ("memory", "entity")
    assert contract("brain", "create_link") == Contract(
        "brain",
        "create_link",
        (
            Param("db", "enum", True, values=databases, closed=True),
            Param("source_type", "enum", True, values=kinds, closed=True, about="`memory`, `entity`"),
            Param("source_id", "string", True),
            Param("target_type", "enum", True, values=kinds, closed=True, about="`memory`, `entity`"),
            Param("target_id", "string", True),
            Param(
                "relationship",
                "string",
                True,
                values=relationships,
                about="`relates_to`, `supersedes`, `contradicts`, `depends_on`, `part_of`",
            ),
            Param("strength", "float (0–1)", default="1.0"),
            Param("metadata", "object"),
        ),
    )
    assert contract("brain", "smart_save_memory").returns == (
        "action",
        "similar",
        "message",
        "suggested_action",
        "memory",
    )


def test_a_bundled_tool_is_read_action_by_action() -> None:
    end = Param("id", "string", True, about="Session ID")
    status = Param(
        "status",
        "string",
        values=("completed", "discarded"),
        closed=True,
        about="Final status: `completed`, `discarded`",
    )
    session = contract("scopes", "memory_session")

    assert session.actions[1:] == (
        Action("end", (Param("action", "string", True, values=("end",), closed=True, about="`end`"), end, status)),
        Action(
            "list",
            (
                Param("action", "string", True, values=("list",), closed=True),
                Param("projectId", "string"),
                Param("status", "string"),
            ),
        ),
    )
    assert session.params[0] == Param("action", "string", True, values=("start", "end", "list"), closed=True)
    assert [param.name for param in session.params if param.required] == ["action"]


def test_every_example_of_an_action_keeps_to_the_table_of_that_action() -> None:
    text = (HERE / "scopes.md").read_text(encoding="utf-8")
    for _, body in sections(text, r"### Action: (\w+)"):
        given = body.partition("**Response:**")[0]
        table = {param.name.partition(".")[0] for param in tabled(given)}
        shown = {name for example in fences(given) for name in json.loads(example)}
        assert not table or shown <= table


def test_every_dialect_is_either_built_or_pending() -> None:
    whole = {name for name in set(built()) & set(CONTRACTS) if there(name) == CONTRACTS[name]}
    assert whole == set(CONTRACTS) - PENDING
    assert set(CONTRACTS) >= PENDING


def test_every_tool_has_a_name_of_its_own() -> None:
    names = [tool.name for tools in built().values() for tool in tools]
    waiting = [tool.name for dialect in PENDING for tool in CONTRACTS[dialect] if tool not in there(dialect)]

    assert sorted(names + waiting) == sorted(set(names + waiting))


def test_the_declared_deviations_are_exactly_the_differences() -> None:
    tools = built()
    found = {row for name in CONTRACTS if there(name) for row in differences(there(name), tools[name])}
    rows = {dialect.name: read_deviations(dialect.name) for dialect in DIALECTS}
    listed = {row for name in rows for row in declared_differences(name, rows[name])}

    unreasoned = [row for name in rows for row in without_reason(rows[name])]
    assert (sorted(found - listed), sorted(listed - found), unreasoned) == ([], [], [])
