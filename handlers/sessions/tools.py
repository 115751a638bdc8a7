"""The tools of `sessions` and where they leave their contract."""

from collections.abc import Mapping

import msgspec

from handlers.sessions import admin, graph, memories, search
from handlers.sessions.schemas import Remember, SearchMemory
from handlers.sessions.summary import has_library
from kernel.tools import Access, Deviation, Hints, Hooks, Schema, Tool, exclusive, read, write

# A prepared call takes a slower path through the queue, so only servers that can load a summary model use it.
_PREPARE = memories.prepare_summary if has_library() else None
_MAINTENANCE_PERMISSIONS: Mapping[str, Access] = {
    "prune_older_than": "admin",
    "purge_all": "admin",
    "purge_session": "write",
    "vacuum": "admin",
}


def _with_session(request: type[Remember] | type[SearchMemory]) -> Schema:
    """The input schema with `session_id` required and not nullable, as in the contract.

    The request type leaves it optional, because `CODE_MEMORY_SESSION_ID` may supply it.
    """
    schema = msgspec.json.schema(request)["$defs"][request.__name__]
    session_id = schema["properties"]["session_id"]
    schema["properties"]["session_id"] = {**session_id["anyOf"][0], "description": session_id["description"]}
    return {
        "type": "object",
        "properties": schema["properties"],
        "required": [*schema["required"], "session_id"],
        "additionalProperties": False,
    }


TOOLS: tuple[Tool, ...] = (
    write(
        memories.remember,
        Hints("Remember"),
        permission="write",
        hooks=Hooks(texts=memories.texts_to_embed, prepare=_PREPARE),
        input=_with_session(Remember),
        deviations=(
            Deviation(
                "behaviour: answer",
                "echoes the input",
                "the values as stored: generated summary and tags, priority clamped to 1 to 5",
                "The agent must know what was stored",
            ),
            Deviation(
                "behaviour: sensitive content",
                "three patterns over the content",
                "these and rules for keys, tokens, passwords in URLs, private keys and web tokens, over content, kind, "
                "summary, tags and metadata; `upsert_entity` and `add_relation` too; the session id is not checked",
                "A secret must not be stored in any field; a session id that looks like a key would lose the whole "
                "session",
            ),
            Deviation(
                "behaviour: duplicates",
                "the same content in any session within 300 s of local time",
                "in the same session, in UTC",
                "Another session must keep its own memory, and the time zone must not matter",
            ),
            Deviation(
                "behaviour: content, metadata",
                "anything",
                "blank content, and metadata that is no JSON object, are refused",
                "Blank content cannot be found, and the contract says object",
            ),
            Deviation(
                "behaviour: tags", 'words found anywhere, `ui` in "build"', "whole words", "Wrong tags mislead a search"
            ),
            Deviation(
                "behaviour: summary model",
                "a path or a repository to download",
                "a path; no setting installs or downloads anything",
                "The server never fetches anything on its own",
            ),
        ),
    ),
    read(
        search.search_memory,
        Hints("Search memory"),
        permission="read",
        input=_with_session(SearchMemory),
        deviations=(
            Deviation(
                "behaviour: session",
                "filtered after the nearest neighbours, and off by default",
                "a partition of the search; `CODE_MEMORY_ENABLE_SESSION_SCOPE` is on by default",
                "Otherwise the memories of a large session crowd out those of a small one, and the contract scopes "
                "retrieval",
            ),
            Deviation(
                "behaviour: query",
                "FTS5 syntax",
                "plain words, any punctuation; ranked",
                "In FTS5 syntax, queries with `sqlite-vec`, quotes or colons find nothing",
            ),
            Deviation(
                "behaviour: score",
                "a distance of 0 counts as 1; hits by words alone start from 1",
                "a distance of 0 is 0, and content equal to the query comes first; with vectors on, a hit by words has "
                "its distance too, but starts from 1 at most if it holds every word of the query",
                "An exact match ranked below its neighbours; the vector of `c++` is near to nothing",
            ),
            Deviation(
                "behaviour: top_p",
                "keeps the newest share",
                "keeps it, and every older memory that ranks above one of it",
                "A better hit must not be dropped silently",
            ),
        ),
    ),
    read(search.list_recent, Hints("List recent memories"), permission="read"),
    read(
        search.list_entities,
        Hints("List entities of a memory"),
        permission="read",
        deviations=(
            Deviation(
                "behaviour: types",
                "`function_like`, `function`, `class`",
                "also `url`, `file_path` (with `path`), `ticket`, `env_var`, `command`, `error`; keywords are no "
                "functions; each once, at most 50",
                "More of what developers search for, and fewer false matches",
            ),
        ),
    ),
    write(graph.upsert_entity, Hints("Upsert entity", idempotent=True), permission="write"),
    write(
        graph.add_relation,
        Hints("Add relation", idempotent=True),
        permission="write",
        deviations=(
            Deviation("behaviour: equal relations", "kept twice", "kept once", "The second copy adds no information"),
        ),
    ),
    read(
        graph.get_entity,
        Hints("Get entity"),
        permission="read",
        deviations=(
            Deviation(
                "behaviour: observations",
                "texts",
                "texts, and `memory_ids` in the same order",
                "The agent can look up the memory that an observation comes from",
            ),
        ),
    ),
    read(
        graph.get_context_graph,
        Hints("Get context graph"),
        permission="read",
        deviations=(
            Deviation(
                "limit: relations",
                "none",
                "the newest 1000 that touch the entities shown",
                "An entity with many relations would fill the context window",
            ),
        ),
    ),
    exclusive(
        admin.maintenance,
        Hints("Maintenance", destructive=True),
        permission=_MAINTENANCE_PERMISSIONS,
        deviations=(
            Deviation(
                "behaviour: graph",
                "entities, relations and vectors stay",
                "what comes from deleted memories alone is deleted from the graph; purge_all empties it",
                "A deletion must be complete",
            ),
            Deviation(
                "behaviour: older_than_days", "negative deletes everything", "refused", "A negative age is a mistake"
            ),
            Deviation(
                "behaviour: history",
                "gone",
                "the history keeps what was deleted, as in every dialect",
                "The owner of the file can still inspect and restore it",
            ),
        ),
    ),
    read(admin.diagnostics, Hints("Diagnostics"), permission="admin"),
    read(admin.health, Hints("Health"), permission="admin"),
)

DEVIATIONS = {
    "every tool": (
        Deviation(
            "behaviour: application errors",
            "ordinary results",
            '`{"status": "error", "error", "tool"}` with isError, 4xx over HTTP',
            "A client that does not parse the text would take an error for success, and the error would not match the "
            "output schema of the list tools",
        ),
    ),
    "remember, search_memory": (
        Deviation(
            "behaviour: session_id",
            "required",
            "required in the schema; a call without it uses the setting `CODE_MEMORY_SESSION_ID`, or is refused",
            "The original generates a session for each connection, and its memories are not found again",
        ),
    ),
    "search_memory, list_recent, get_context_graph": (
        Deviation(
            "limit: limit",
            "none",
            "1000",
            "An answer of any size does not help an agent; search_memory raises a limit below 1 to 1",
        ),
    ),
    "upsert_entity, add_relation": (
        Deviation(
            "behaviour: type",
            "overwritten, also by `entity`",
            "`entity` never replaces another type",
            "A relation to a class would change its type to `entity`",
        ),
        Deviation(
            "behaviour: names, memory_id",
            "an empty name answers ok with -1; any memory_id",
            "refused",
            "An error that looks like success is noticed too late",
        ),
    ),
    "diagnostics, health": (
        Deviation(
            "behaviour: settings",
            "bad numbers fall back; paths of database, model and log by `CODE_MEMORY_*`",
            "a bad value stops the start with an error that names it; `QUIPU_DATA` and `QUIPU_MODEL` set the paths; "
            "`log_file` is null",
            "One store serves every dialect",
        ),
    ),
}
