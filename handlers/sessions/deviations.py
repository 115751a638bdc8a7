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
        Deviation(
            "behaviour: types",
            '`"5"` is taken for 5, and `"true"` for true',
            "refused, naming the parameter",
            "One rule for every dialect; a value of the wrong type is a mistake of the caller",
        ),
        Deviation(
            "behaviour: bad arguments",
            "the text of the validator, or of the JSON parser, in the original",
            "JSON as for other errors; the text names the parameter and what is allowed",
            "One form of every error, and an agent corrects a call faster when it knows the parameter",
        ),
        Deviation(
            "behaviour: unknown tool", "an error of the tool", "the protocol's own error", "There is no tool to answer"
        ),
    ),
    "remember, search_memory, maintenance": (
        Deviation(
            "behaviour: session_id, spaces",
            "kept as given",
            "without the spaces around it; remember and search_memory refuse one with characters that cannot be "
            "printed",
            "Two sessions that look the same would not find each other's memories",
        ),
    ),
    "remember, search_memory": (
        Deviation(
            "behaviour: session_id",
            "required",
            "required in the schema unless the setting `CODE_MEMORY_SESSION_ID` supplies it; without either, refused",
            "The original generates a session for each connection, and its memories are not found again",
        ),
    ),
    "search_memory, list_recent, get_context_graph": (
        Deviation(
            "limit: limit",
            "none",
            "0 to 1000; search_memory raises a limit below 1 to 1",
            "An answer of any size does not help an agent; a negative limit, which gives everything in the original, "
            "is a mistake",
        ),
    ),
    "search_memory, list_recent": (
        Deviation(
            "behaviour: order within a second",
            "the order of arrival in the original, whose times are whole seconds",
            "the newest first",
            "What was written last is what an agent looks for",
        ),
    ),
    "list_entities, get_entity": (
        Deviation(
            "behaviour: memory_id, name",
            "any number, an empty name: nothing is found",
            "a number below 1 and a blank name are refused",
            "No memory and no entity can have them, so the call is a mistake",
        ),
    ),
    "upsert_entity, add_relation, get_entity, get_context_graph": (
        Deviation(
            "behaviour: disabled, skipped",
            "`status` alone",
            "`disabled` with the `setting` that enables the graph, which the descriptions name too; `skipped` with the "
            "`reason`, such as `sensitive: name`",
            "An agent cannot see settings, so it would try again",
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
            "`log_file` is null, and so is the model of summaries without one",
            "One store serves every dialect",
        ),
    ),
    "get_entity": (
        Deviation(
            "behaviour: equal observations",
            "kept twice",
            "kept once, as the newest",
            "The second copy adds no information",
        ),
    ),
    "get_entity, get_context_graph": (
        Deviation(
            "behaviour: order",
            "none stated; in the original, entities found by name by creation, relations by direction",
            "the newest first",
            "A limit then leaves out what is oldest",
        ),
    ),
    "diagnostics": (
        Deviation(
            "behaviour: tables", "those of the program", "those of every dialect", "One store serves every dialect"
        ),
    ),
}
