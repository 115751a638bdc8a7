"""The one table of who may call what: the right each tool needs, or each of its actions.

`read` reads; `write` changes single memories; `admin` is for what wipes or rewrites many at once, takes what others
hold, sets what holds for everybody, or tells of the machine. What is not listed is for admins.
"""

from collections.abc import Mapping

_ENTRY = {
    "add": "write",
    "update": "write",
    "get": "read",
    "list": "read",
    "history": "read",
    "deactivate": "write",
}

RIGHTS: Mapping[str, str | Mapping[str, str]] = {
    # paths
    "add_memory": "write",
    "replace_memory": "write",
    "drop_memory": "write",
    "clear_memory": "admin",
    "read_memory": "read",
    "list_memories": "read",
    # scopes
    "memory_org": {"create": "write", "list": "read"},
    "memory_project": {"create": "write", "list": "read", "get": "read", "update": "write"},
    "memory_session": {"start": "write", "end": "write", "list": "read"},
    "memory_tool": _ENTRY,
    "memory_guideline": _ENTRY,
    "memory_knowledge": _ENTRY,
    "memory_tag": {"create": "write", "list": "read", "attach": "write", "detach": "write", "for_entry": "read"},
    "memory_relation": {"create": "write", "list": "read", "delete": "write"},
    "memory_file_lock": {
        "checkout": "write",
        "checkin": "write",
        "status": "read",
        "list": "read",
        "force_unlock": "admin",
    },
    "memory_query": {"search": "read", "context": "read"},
    "memory_conflict": {"list": "read", "resolve": "write"},
    "memory_health": "read",
    "memory_init": {"init": "read", "status": "read", "reset": "admin"},
    "memory_export": {"export": "read"},
    "memory_import": {"import": "admin"},
    # brain
    "save_memory": "write",
    "get_memories": "read",
    "update_memory": "write",
    "supersede_memory": "write",
    "bulk_save_memories": "write",
    "delete_memory": "write",
    "smart_save_memory": "write",
    "handle_correction": "write",
    "get_memory_history": "read",
    "create_entity": "write",
    "get_entities": "read",
    "update_entity": "write",
    "get_entity_full": "read",
    "delete_entity": "write",
    "create_link": "write",
    "get_links": "read",
    "delete_link": "write",
    "search": "read",
    "search_all": "read",
    "hybrid_search": "read",
    "semantic_search": "read",
    "batch_embed": "write",
    "get_query_stats": "read",
    "cleanup_query_log": "admin",
    "save_note": "write",
    "get_notes": "read",
    "update_note": "write",
    "save_resource": "write",
    "get_resources": "read",
    "get_config": "read",
    "set_config": "admin",
    # notes
    "memory_list_types": "read",
    "memory_remember": "write",
    "memory_recall": "read",
    "memory_forget": "write",
    "memory_sync": "read",
    "memory_lint": "read",
    # sessions
    "remember": "write",
    "search_memory": "read",
    "list_recent": "read",
    "list_entities": "read",
    "upsert_entity": "write",
    "add_relation": "write",
    "get_entity": "read",
    "get_context_graph": "read",
    "maintenance": {
        "prune_older_than": "admin",
        "purge_all": "admin",
        "purge_session": "write",
        "vacuum": "admin",
    },
    "diagnostics": "admin",
    "health": "admin",
    # common
    "recall": "read",
}

# Their tools read what every other dialect keeps, so a key for some dialects does not reach them.
ACROSS = frozenset({"common"})
