"""The calls on which project-brain and the dialect `brain` are compared."""

from typing import Any

from tests.originals.originals import Call, each

CORE = {"db": "core"}
FULL = {
    "db": "core",
    "content": "The deploy script restarts the backend twice",
    "category": "fact",
    "subcategory": "operations",
    "tags": ["deploy", "backend"],
    "project_id": "$project",
    "importance": 4,
    "metadata": {"source": "mail", "lines": [1, 2]},
}


def fact(content: str, **more: Any) -> dict[str, Any]:
    return {"db": "core", "content": content, "category": "fact", **more}


ENTITIES = (
    *each("get_entities", CORE),
    Call("create_entity", {"db": "core", "name": "Apollo", "type": "project"}, {"project": "id"}),
    Call(
        "create_entity",
        {
            "db": "core",
            "name": "Ada",
            "type": "person",
            "subtype": "engineer",
            "description": "Writes the parser",
            "tags": ["team", "parser"],
            "metadata": {"since": 2020},
        },
        {"person": "id"},
    ),
    *each("create_entity", {}, {"db": "core", "name": "x"}, {"db": "moon", "name": "x", "type": "person"}),
    *each("create_entity", {"db": "core", "name": 5, "type": "person"}),
    *each(
        "get_entities",
        CORE,
        {**CORE, "type": "person"},
        {**CORE, "type": "ghost"},
        {**CORE, "tags": ["parser", "none"]},
        {**CORE, "status": "archived"},
        {**CORE, "limit": 1},
        {**CORE, "limit": 1, "offset": 1},
        {"db": "dnd"},
        {"db": "moon"},
        {**CORE, "limit": "two"},
        {},
    ),
    *each(
        "update_entity",
        {**CORE, "id": "$person", "description": "Writes the lexer", "tags": [], "metadata": {"since": 2021}},
        {**CORE, "id": "$person", "name": "Ada L."},
        {**CORE, "id": "$person"},
        {**CORE, "id": "ent_nothing", "name": "x"},
        {**CORE, "name": "x"},
    ),
)

MEMORIES = (
    *each("get_memories", CORE),
    Call("save_memory", FULL, {"full": "id"}),
    Call("save_memory", fact("The parser reads YAML"), {"plain": "id"}),
    Call("save_memory", fact("Never delete backups", category="hard_constraint"), {"hard": "id"}),
    Call("save_memory", fact("Stays as it is", metadata={"immutable": True}), {"fixed": "id"}),
    Call(
        "save_memory", {"db": "dnd", "content": "A dragon", "category": "learning", "importance": 1}, {"dragon": "id"}
    ),
    *each(
        "save_memory",
        {},
        {**CORE, "content": "x"},
        {**CORE, "category": "fact"},
        fact("x", category="gossip"),
        fact("x", importance=9),
        fact("x", importance=0),
        fact("x", importance="high"),
        fact("x", tags="deploy"),
        fact("x", db="moon"),
        {**CORE, "content": 5, "category": "fact"},
    ),
    *each(
        "get_memories",
        {**CORE, "min_importance": 4},
        {**CORE, "min_importance": 9},
        {**CORE, "category": "hard_constraint"},
        {**CORE, "category": "gossip"},
        {**CORE, "tags": ["deploy", "none"]},
        {**CORE, "tags": ["none"]},
        {**CORE, "project_id": "$project"},
        {**CORE, "project_id": "ent_nothing"},
        {**CORE, "status": "archived"},
        {**CORE, "created_after": "2020-01-01", "created_before": "2099-01-01", "category": "hard_constraint"},
        {**CORE, "created_after": "2099-01-01"},
        {**CORE, "category": "hard_constraint", "limit": 1},
        {**CORE, "category": "hard_constraint", "limit": 5, "offset": 5},
        {"db": "therapy"},
        {},
    ),
    *each(
        "update_memory",
        {**CORE, "id": "$plain", "content": "The parser reads TOML", "importance": 2, "tags": ["parser"]},
        {**CORE, "id": "$plain", "category": "learning", "subcategory": "tools", "metadata": {"a": 1}},
        {**CORE, "id": "$plain"},
        {**CORE, "id": "$plain", "importance": 9},
        {**CORE, "id": "$hard", "content": "x"},
        {**CORE, "id": "$fixed", "importance": 1},
        {**CORE, "id": "mem_nothing", "content": "x"},
        {"db": "dnd", "id": "$plain", "content": "x"},
        {**CORE, "content": "x"},
    ),
    Call("bulk_save_memories", {**CORE, "memories": [{"content": "One", "category": "fact"}]}, {"one": "ids.0"}),
    *each(
        "bulk_save_memories",
        {"db": "hlg", "memories": [{"content": "Two", "category": "action"}, {"content": "Three", "category": "fact"}]},
        {**CORE, "memories": []},
        {**CORE, "memories": [{"content": "x"}]},
        {**CORE, "memories": [{"content": "x", "category": "gossip"}]},
        {**CORE, "memories": [{"content": "x", "category": "fact"}] * 101},
        CORE,
    ),
    Call(
        "supersede_memory",
        {**CORE, "old_id": "$one", "new_content": "One, corrected"},
        {"successor": "new_memory.id|new.id"},
    ),
    *each(
        "supersede_memory",
        {**CORE, "old_id": "$hard", "new_content": "x"},
        {**CORE, "old_id": "mem_nothing", "new_content": "x"},
        {**CORE, "new_content": "x"},
        {**CORE, "old_id": "$plain"},
    ),
    *each("get_memories", {**CORE, "status": "superseded"}),
)

SMART = (
    Call("smart_save_memory", fact("Whales sing below the ice", tags=["sea"], confidence=0.8), {"whale": "memory.id"}),
    *each(
        "smart_save_memory",
        fact("Whales sing below the ice"),
        fact("Whales sing below the ice", is_correction=True),
        fact("Whales sing below thick ice"),
    ),
    Call("smart_save_memory", fact("Whales sing below the ice", force_add=True), {"again": "memory.id"}),
    *each(
        "smart_save_memory",
        fact("Quarterly taxes are due in April", is_correction=True),
        fact("Cats purr", category="correction"),
        fact("x", confidence=2),
        fact("x", category="gossip"),
        {},
    ),
    *each(
        "handle_correction",
        {**CORE, "wrong_memory_id": "$whale", "correct_content": "Whales sing below thin ice"},
        {**CORE, "correct_content": "Trees grow upwards"},
        {**CORE, "wrong_content": "nothing like that", "correct_content": "Stones fall", "category": "learning"},
        {**CORE, "wrong_content": "Whales sing below the ice", "correct_content": "Whales hum", "tags": ["sea"]},
        {**CORE},
    ),
    *each("get_memory_history", {"memory_id": "$whale"}, {"memory_id": "mem_nothing"}, {"memory_id": 5}, {}),
    *each("get_memory_history", {"memory_id": "$again"}),
)

LINKS = (
    Call(
        "create_link",
        {
            **CORE,
            "source_type": "memory",
            "source_id": "$plain",
            "target_type": "entity",
            "target_id": "$person",
            "relationship": "relates_to",
        },
        {"link": "id"},
    ),
    *each(
        "create_link",
        {
            **CORE,
            "source_type": "memory",
            "source_id": "$plain",
            "target_type": "entity",
            "target_id": "$person",
            "relationship": "relates_to",
        },
        {
            **CORE,
            "source_type": "entity",
            "source_id": "$person",
            "target_type": "entity",
            "target_id": "$project",
            "relationship": "part_of",
            "strength": 0.5,
            "metadata": {"role": "lead"},
        },
        {
            **CORE,
            "source_type": "entity",
            "source_id": "$person",
            "target_type": "entity",
            "target_id": "$project",
            "relationship": "owns",
            "strength": 2,
        },
        {
            **CORE,
            "source_type": "planet",
            "source_id": "x",
            "target_type": "entity",
            "target_id": "y",
            "relationship": "z",
        },
        CORE,
    ),
    *each(
        "get_links",
        {**CORE, "source_id": "$plain"},
        {**CORE, "target_id": "$project"},
        {**CORE, "relationship": "part_of"},
        {**CORE, "relationship": "none"},
        {"db": "dnd"},
        {},
    ),
    *each(
        "get_entity_full", {**CORE, "id": "$person"}, {**CORE, "id": "$project"}, {**CORE, "id": "ent_nothing"}, CORE
    ),
    *each("delete_link", {**CORE, "id": "$link"}, {**CORE, "id": "$link"}, CORE),
)
