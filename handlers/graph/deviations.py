"""The deviations of `graph` from the reference server."""

from collections.abc import Mapping

from kernel.tools import Deviation

LARGE = Deviation(
    "limit: size of the graph",
    "none",
    "an answer has at most `QUIPU_LIMIT_ANSWER` bytes, 32 MiB; a larger graph is refused, and open_nodes and "
    "search_nodes show parts of it",
    "No model can read such an answer, and it would take the memory of all other callers",
)
SEARCH = Deviation(
    "behaviour: nothing contains the query",
    "nothing is found, also for two words that are not side by side",
    "the ten entities that fit best by words and meaning, best first, with their relations",
    "A model asks in its own words; who needs the substring alone can see whether it is there",
)

DEVIATIONS: Mapping[str, tuple[Deviation, ...]] = {
    "every tool": (
        Deviation(
            "behaviour: several clients",
            "the file is read and written whole; of four processes that write at once most lose some of their entities",
            "one transaction a call, which is on disk before the answer",
            "What was answered must be there",
        ),
        Deviation(
            "behaviour: lists of tools",
            "inline JSON schemas of draft-07; hints that say nothing of a tool that only reads; `execution`",
            "the same properties, types and descriptions with `$defs`, also descriptions of lists of objects; reading "
            "tools have no `destructiveHint` and `idempotentHint`, and descriptions end in a full stop",
            "One writer of schemas serves all dialects; the protocol gives these hints no meaning there",
        ),
        Deviation(
            "error: wrong arguments",
            "`MCP error -32602: Input validation error: Invalid arguments for tool NAME:` and every error in words of "
            "its library",
            "the same beginning, then the first error in words of this server",
            "Clients match the beginning; a model needs one error to correct its call",
        ),
        Deviation(
            "error: unknown tool",
            "a result with `isError`",
            "the error -32602 of the protocol",
            "The protocol says so, and an address without the tool answers alike",
        ),
        Deviation(
            "limit: one call",
            "none",
            "of a call that writes: 1,000 entries in its list, 10,000 observations in all, 1,000 characters in a name "
            "or a type",
            "A call must not keep the others waiting",
        ),
    ),
    "create_entities, create_relations, add_observations": (
        Deviation(
            "behaviour: equal ones in one call",
            "all are kept and answered",
            "one is kept and answered: entities by name, observations by text, relations by all three",
            "Across calls the original keeps them once too",
        ),
    ),
    "resource": (
        Deviation(
            "behaviour: resources/updated",
            "sent before the answer of each of the six tools that write, to a client that has subscribed",
            "the same over stdio, over HTTP on the stream of the session, and in the revision 2026-07-28 by "
            "subscriptions/listen; not for what another process wrote, and so not with several workers over HTTP",
            "A client that reads the resource again has the newest graph",
        ),
    ),
}
