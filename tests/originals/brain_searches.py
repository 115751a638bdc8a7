"""The calls on which project-brain and the dialect `brain` are compared: searches, notes, and their differences."""

from tests.originals.brain_calls import CORE, fact
from tests.originals.originals import Call, each

SEARCHES = (
    *each(
        "search",
        {**CORE, "query": "deploy"},
        {**CORE, "query": "deploy backend", "types": ["memory"]},
        {**CORE, "query": "lexer", "types": ["entity"]},
        {**CORE, "query": "nothingness"},
        {**CORE, "query": "nothingness", "types": ["memory"]},
        {**CORE, "query": "deploy", "limit": 1},
        {**CORE, "query": "deploy", "types": ["planet"]},
        CORE,
        {"query": "deploy"},
    ),
    *each(
        "search_all",
        {"query": "dragon"},
        {"query": "dragon", "dbs": ["core"]},
        {"query": "dragon", "dbs": ["dnd"], "limit": 1},
        {"query": "dragon", "dbs": ["moon"]},
        {"query": "nothingness"},
        {},
    ),
    *each("hybrid_search", {**CORE, "query": "deploy"}, {**CORE, "query": "deploy", "types": ["planet"]}, CORE),
    *each("semantic_search", {**CORE, "query": "deploy"}, {**CORE, "query": "deploy", "types": ["planet"]}, CORE),
    *each("batch_embed", {"db": "therapy"}, {"db": "dnd", "types": ["memory"]}, {"db": "dnd", "types": ["planet"]}, {}),
    *each("get_query_stats", {"group_by": "planet"}, {"days": "x"}),
    *each("cleanup_query_log", {}, {"older_than_days": 5}, {"older_than_days": "x"}),
)

COMPANIONS = (
    Call("save_note", {**CORE, "title": "Plan", "content": "Ship the parser"}, {"note": "id"}),
    *each(
        "save_note",
        {
            **CORE,
            "title": "Minutes",
            "content": "Met with Ada about the lexer",
            "summary": "Lexer",
            "key_points": ["one", "two"],
            "tags": ["team"],
            "category": "meeting",
            "project_id": "$project",
            "entity_id": "$person",
            "parent_note_id": "$note",
        },
        {**CORE, "title": "x"},
        CORE,
    ),
    *each("get_notes", {**CORE, "category": "meeting"}, {**CORE, "tags": ["none"]}, {**CORE, "project_id": "$project"}),
    *each("get_notes", {**CORE, "limit": 1, "category": "meeting"}, {**CORE, "note_type": "planet"}),
    *each(
        "update_note",
        {**CORE, "id": "$note", "content": "Ship the parser and the lexer", "tags": ["plan"]},
        {**CORE, "id": "$note"},
        {**CORE, "id": "note_nothing", "title": "x"},
    ),
    *each(
        "save_resource",
        {**CORE, "title": "Manual", "url": "https://www.example.org/manual", "tags": ["docs"], "key_takeaways": ["k"]},
        {**CORE, "title": "Book", "description": "d", "notes": "n", "category": "c", "project_id": "$project"},
        CORE,
    ),
    *each("get_resources", {**CORE, "tags": ["docs"]}, {**CORE, "category": "c"}, {**CORE, "domain": "nowhere"}),
    *each("set_config", {"key": "retrieval.vector_weight", "value": "0.5"}, {"key": "ui.theme", "value": '"dark"'}, {}),
    *each("set_config", {"key": "ui.theme", "value": '"light"', "description": "Colours"}),
    *each("get_config", {"key": "ui.theme"}, {"prefix": "ui."}, {"key": "none"}, {"prefix": "none"}),
)

STRAYS = (
    *each(
        "save_memory",
        fact("   "),
        fact("Half", importance=2.5),
        fact("An unknown argument", colour="red"),
        fact("A metadata of another type", metadata={"immutable": "true"}),
    ),
    *each("create_entity", {"db": "core", "name": "Mars", "type": "planet"}),
    *each(
        "get_memories",
        {**CORE, "limit": -1, "category": "hard_constraint"},
        {**CORE, "limit": 0},
        {**CORE, "limit": 100000, "category": "hard_constraint"},
        {**CORE, "status": "odd"},
    ),
    *each("update_memory", {**CORE, "id": "$plain", "status": "odd"}, {**CORE, "id": "$plain", "category": "odd"}),
    *each("supersede_memory", {**CORE, "old_id": "$one", "new_content": "One, again"}),
    *each("supersede_memory", {**CORE, "old_id": "$full", "new_content": "New", "reason": "because"}),
    *each(
        "handle_correction",
        {**CORE, "wrong_memory_id": "mem_nothing", "correct_content": "x"},
        {**CORE, "wrong_memory_id": "$hard", "correct_content": "x"},
    ),
    *each(
        "create_link",
        {
            **CORE,
            "source_type": "memory",
            "source_id": "mem_nothing",
            "target_type": "entity",
            "target_id": "$person",
            "relationship": "relates_to",
        },
    ),
    *each("search", {**CORE, "query": ""}, {**CORE, "query": "deploy nothingness"}, {**CORE, "query": "ANDROID"}),
    *each("get_query_stats", {}, {"group_by": "query"}, {"group_by": "day"}),
    *each("cleanup_query_log", {"older_than_days": -1}),
    *each("set_config", {"key": "retrieval.fts_weight", "value": "7"}),
    *each("delete_memory", {**CORE, "id": "$hard"}, {**CORE, "id": "mem_nothing"}, CORE, {**CORE, "id": "$plain"}),
    *each("delete_entity", {**CORE, "id": "$person"}, {**CORE, "id": "$person"}, CORE),
    *each("get_links", {**CORE, "source_id": "$person"}),
    *each("no_such_tool", {}),
)
