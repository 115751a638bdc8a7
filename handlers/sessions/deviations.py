"""Deviations from the contract that concern several tools."""

from collections.abc import Mapping

from kernel.tools import Deviation

DEVIATIONS: Mapping[str, tuple[Deviation, ...]] = {
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
