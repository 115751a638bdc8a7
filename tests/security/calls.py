"""One call of every action of every tool, with arguments that its decoder takes."""

from collections.abc import Mapping
from typing import Any

from kernel.server.app import DIALECTS

Arguments = Mapping[str, Any]
Call = tuple[str, str]  # a tool, and its action or nothing

_ENTRY_ID = {"id": "absent"}
_LINK = {
    "sourceType": "tool",
    "sourceId": "absent",
    "targetType": "tool",
    "targetId": "b",
    "relationType": "applies_to",
}
_FILE = {"file_path": "/src/a.py", "agent_id": "ada"}
_CORE = {"db": "core"}
_MEMORY = {"content": "The API listens on port 80.", "category": "decision"}
_TAGGED = {"entryType": "tool", "entryId": "absent", "tagName": "mine"}
_RELATION = {"from": "API", "to": "port", "relationType": "uses"}
_ENDS = {"source_type": "memory", "source_id": "mem_1", "target_type": "entity", "target_id": "ent_1"}


def _entry(add: Arguments, update: Arguments) -> dict[str, Arguments]:
    return {
        "add": {"scopeType": "global", **add},
        "update": {**_ENTRY_ID, **update},
        "get": _ENTRY_ID,
        "list": {},
        "history": _ENTRY_ID,
        "deactivate": _ENTRY_ID,
    }


_FILE_PATH = "/memories/car.txt"
_BY_ACTION: Mapping[str, Mapping[str, Arguments]] = {
    "memory_org": {"create": {"name": "Acme"}, "list": {}},
    "memory_project": {"create": {"name": "Shop"}, "list": {}, "get": _ENTRY_ID, "update": {**_ENTRY_ID, "name": "b"}},
    "memory_session": {"start": {"agentId": "ada"}, "end": _ENTRY_ID, "list": {}},
    "memory_tool": _entry({"name": "git"}, {"description": "Versions"}),
    "memory_guideline": _entry({"name": "commits", "content": "Small ones"}, {"category": "c"}),
    "memory_knowledge": _entry({"title": "cart", "content": "The cart is being rewritten"}, {"content": "It is done"}),
    "memory_tag": {
        "create": {"name": "mine"},
        "list": {},
        "attach": _TAGGED,
        "detach": _TAGGED,
        "for_entry": {"entryType": "tool", "entryId": "absent"},
    },
    "memory_relation": {
        "create": _LINK,
        "list": {},
        "delete": _LINK,
    },
    "memory_file_lock": {
        "checkout": _FILE,
        "checkin": _FILE,
        "status": {"file_path": "/src/a.py"},
        "list": {},
        "force_unlock": _FILE,
    },
    "memory_query": {"search": {"search": "cart"}, "context": {"scopeType": "global"}},
    "memory_conflict": {"list": {}, "resolve": {"id": "absent", "resolution": "kept"}},
    "memory_init": {"init": {}, "status": {}, "reset": {"confirm": True}},
    "memory_export": {"export": {}},
    "memory_import": {"import": {"content": "{}"}},
    "memory": {
        "view": {"path": "/memories"},
        "create": {"path": _FILE_PATH, "file_text": "In May."},
        "str_replace": {"path": _FILE_PATH, "old_str": "May", "new_str": "June"},
        "insert": {"path": _FILE_PATH, "insert_line": 0, "insert_text": "Garage"},
        "delete": {"path": _FILE_PATH},
        "rename": {"old_path": _FILE_PATH, "new_path": "/memories/garage.txt"},
    },
    "maintenance": {
        "prune_older_than": {"confirm": True, "older_than_days": 9},
        "purge_all": {"confirm": True},
        "purge_session": {"confirm": True, "session_id": "s"},
        "vacuum": {},
    },
}
# Tools whose arguments are all optional are called without any, unless they stand here.
_PLAIN: Mapping[str, Arguments] = {
    "add_memory": {"path": "car", "content": "In May."},
    "replace_memory": {"path": "car", "content": "In June."},
    "drop_memory": {"path": "car"},
    "read_memory": {"path": "car"},
    "save_memory": {**_CORE, **_MEMORY},
    "get_memories": _CORE,
    "update_memory": {**_CORE, "id": "mem_1", "content": "Port 443."},
    "supersede_memory": {**_CORE, "old_id": "mem_1", "new_content": "Port 443."},
    "bulk_save_memories": {**_CORE, "memories": [_MEMORY]},
    "delete_memory": {**_CORE, "id": "mem_1"},
    "smart_save_memory": {**_CORE, **_MEMORY},
    "handle_correction": {**_CORE, "correct_content": "Port 443."},
    "get_memory_history": {"memory_id": "mem_1"},
    "create_entity": {**_CORE, "name": "API", "type": "system"},
    "get_entities": _CORE,
    "update_entity": {**_CORE, "id": "ent_1", "name": "The API"},
    "get_entity_full": {**_CORE, "id": "ent_1"},
    "delete_entity": {**_CORE, "id": "ent_1"},
    "create_link": {**_CORE, **_ENDS, "relationship": "part_of"},
    "get_links": _CORE,
    "delete_link": {**_CORE, "id": "lnk_1"},
    "search": {**_CORE, "query": "port"},
    "search_all": {"query": "port"},
    "hybrid_search": {**_CORE, "query": "port"},
    "semantic_search": {**_CORE, "query": "port"},
    "batch_embed": _CORE,
    "save_note": {**_CORE, "title": "Standup", "content": "At ten."},
    "get_notes": _CORE,
    "update_note": {**_CORE, "id": "note_1", "title": "Daily"},
    "save_resource": {**_CORE, "title": "SQLite"},
    "get_resources": _CORE,
    "set_config": {"key": "retrieval.vector_weight", "value": "0.5"},
    "memory_remember": {"title": "Use SQLite", "content": "One file.", "memoryType": "context"},
    "memory_recall": {"query": "file"},
    "memory_forget": {"filePaths": ["/nowhere.md"]},
    "remember": {"content": "Embeddings run on the CPU.", "session_id": "s"},
    "search_memory": {"query": "embeddings", "session_id": "s"},
    "list_entities": {"memory_id": 1},
    "upsert_entity": {"name": "API"},
    "add_relation": {"source": "API", "target": "port", "relation_type": "uses"},
    "get_entity": {"name": "API"},
    "create_entities": {"entities": [{"name": "API", "entityType": "system", "observations": ["Port 80."]}]},
    "create_relations": {"relations": [_RELATION]},
    "add_observations": {"observations": [{"entityName": "API", "contents": ["Port 443."]}]},
    "delete_entities": {"entityNames": ["absent"]},
    "delete_observations": {"deletions": [{"entityName": "API", "observations": ["Port 443."]}]},
    "delete_relations": {"relations": [_RELATION]},
    "search_nodes": {"query": "port"},
    "open_nodes": {"names": ["API"]},
    "recall": {"query": "port"},
}
_STORES = "/v1/memory_stores"
_STORED = f"{_STORES}/absent/memories"
# Method and path of every REST method, with a body that its decoder takes.
REST_CALLS: Mapping[Call, Arguments | None] = {
    ("POST", _STORES): {"name": "Notes"},
    ("GET", _STORES): None,
    ("GET", f"{_STORES}/absent"): None,
    ("POST", f"{_STORES}/absent"): {"name": "Notes"},
    ("POST", f"{_STORES}/absent/archive"): None,
    ("DELETE", f"{_STORES}/absent"): None,
    ("POST", _STORED): {"path": "/car", "content": "In May."},
    ("GET", _STORED): None,
    ("GET", f"{_STORED}/absent"): None,
    ("POST", f"{_STORED}/absent"): {"content": "In June."},
    ("DELETE", f"{_STORED}/absent"): None,
    ("GET", f"{_STORES}/absent/memory_versions"): None,
    ("GET", f"{_STORES}/absent/memory_versions/absent"): None,
    ("POST", f"{_STORES}/absent/memory_versions/absent/redact"): None,
    ("POST", "/prime"): {"root": "/w/web"},
    ("POST", "/hook/claude/session-start"): {"session_id": "s", "cwd": "/w/web"},
    ("POST", "/hook/claude/first-prompt"): {"session_id": "s", "prompt": "Which port does the API listen on?"},
    ("POST", "/hook/claude/post-compact"): {"session_id": "s", "compact_summary": "The API moved to another port." * 3},
    ("POST", "/hook/claude/session-end"): {"session_id": "s"},
}
CALLS: Mapping[Call, Arguments] = {
    **{(tool.name, ""): {} for dialect in DIALECTS for tool in dialect.tools if tool.name not in _BY_ACTION},
    **{(tool, ""): given for tool, given in _PLAIN.items()},
    **{
        (tool, action): {"command" if tool == "memory" else "action": action, **given}
        for tool, actions in _BY_ACTION.items()
        for action, given in actions.items()
    },
}
TAKES_AWAY = ("delete", "forget", "drop", "clear", "purge", "reset", "maintenance")


def is_end(call: tuple[Call, Arguments]) -> bool:
    """Whether a call takes away what others read, so that it comes after them."""
    (name, action), _ = call
    return name.startswith(TAKES_AWAY) or action in TAKES_AWAY
