"""Deviations from the contract that concern several tools, and reasons that several rows give."""

from collections.abc import Mapping

from kernel.tools import Deviation

AS_ORIGINAL = "The original does the same"

DEVIATIONS: Mapping[str, tuple[Deviation, ...]] = {
    "every tool": (
        Deviation(
            "behaviour: databases",
            "core, therapy, dnd, hlg",
            "those, or the names in `QUIPU_BRAIN_DATABASES`; the schemas list the configured names",
            "Other users divide their memories differently",
        ),
        Deviation(
            "behaviour: times",
            "not mentioned",
            "ISO 8601 in UTC with milliseconds; parameters take any ISO date or time",
            "The original stores seconds without a zone and compares them as text, so `T` sorts after any time of "
            "the day",
        ),
        Deviation(
            "behaviour: structured content",
            "not mentioned",
            "none, and no output schema in the tool lists of MCP",
            "The original has none; leaving it out saves two fifths of the tokens of the tool list",
        ),
        Deviation(
            "behaviour: ids",
            "not mentioned",
            "prefix, `_` and 21 letters and digits, sorted by time",
            "The format of the original, in order of creation",
        ),
        Deviation(
            "behaviour: layout",
            "indented in the examples and in the original",
            "JSON without blanks",
            "The blanks are a fifth of what a model reads, and JSON is the same with and without them",
        ),
        Deviation(
            "behaviour: JSON columns",
            "not mentioned",
            "tags, metadata and the like are returned as JSON in a string",
            AS_ORIGINAL,
        ),
        Deviation(
            "behaviour: unknown tool", "an error of the tool", "the protocol's own error", "There is no tool to answer"
        ),
        Deviation(
            "behaviour: bad arguments",
            "not mentioned",
            "`Error: Invalid arguments: ...` naming the field; unknown arguments, blank texts, limits under 1 or "
            "over 1,000 and importance outside 1 to 5 are refused",
            "The original drops unknown arguments silently and takes any limit; a typo in `tags` would save a memory "
            "without them",
        ),
        Deviation(
            "limit: lengths",
            "none",
            "content 1,000,000 characters, descriptions, notes and values of the configuration 100,000, reasons and "
            "points 10,000, URLs 8,192, titles and names 1,000, other words and each tag 256, ids 128; 64 tags, 256 "
            "points",
            "A faulty client must not fill the file; no memory is that long",
        ),
    ),
    "every tool that updates": (
        Deviation(
            "behaviour: omitted fields",
            "not mentioned",
            "omitted and null fields keep their value",
            "The original does the same: only lists and objects can be emptied",
        ),
    ),
    "save_memory, bulk_save_memories, update_memory, smart_save_memory, get_memories": (
        Deviation(
            "behaviour: importance", "1 to 5", "whole numbers only", "The original takes 2.5; an import rounds it"
        ),
    ),
    "update_memory, handle_correction, get_memories": (
        Deviation(
            "behaviour: category, status",
            "any string",
            "the twelve categories of save_memory; active, superseded, archived; get_memories refuses another word "
            "only if it finds nothing, since imported memories may have it",
            "A memory with a mistyped word would be lost to every search, and a mistyped filter looks like no memories",
        ),
    ),
    "save_memory, bulk_save_memories, update_memory": (
        Deviation(
            "behaviour: metadata.immutable",
            "`true` protects the memory",
            'the same; refused if it is neither true nor false, such as `"true"` or 1',
            "The caller would believe the memory to be protected",
        ),
    ),
    "get_memories, get_entities, get_notes, get_resources": (
        Deviation(
            "behaviour: tags",
            "match any tag",
            "equal to the tag, ignoring the case of ASCII letters, so `É` is not `é`",
            "The original matches with wildcards inside the JSON, so `%` matches everything",
        ),
    ),
    "get_entities, get_notes": (
        Deviation(
            "behaviour: type, note_type",
            "any word",
            "an unknown one that finds nothing is refused with those known; imported rows may have others",
            "A mistyped filter looks like an empty database",
        ),
    ),
    "get_memories, get_resources": (
        Deviation(
            "behaviour: access tracking",
            "updates what is returned",
            "the same, queued with the answer and visible a moment later; `decay_score` first decays by "
            "`QUIPU_BRAIN_HALF_LIFE_DAYS` since the last access, then gains 0.1",
            "A read need not wait for a disk; a score that only rises, as in the original, is always 1",
        ),
    ),
    "delete_memory, delete_entity": (
        Deviation(
            "behaviour: links",
            "not mentioned",
            "deleted with it, in other databases too unless one of these has a row of the same id",
            "The original leaves links to a missing row",
        ),
    ),
    "search, search_all": (
        Deviation(
            "behaviour: query",
            "FTS5 MATCH, then LIKE",
            'stemmed words in any order, those with more and rarer ones first; `"`, `*`, AND, OR and NOT are not '
            "syntax; LIKE if no word matches, with `%` and `_` taken literally",
            "In the original ANDROID is parsed as syntax because it contains AND, and one word too many finds nothing",
        ),
        Deviation(
            "behaviour: rank",
            "not mentioned",
            "each row found by words has its BM25 as `rank`, lower is better; the index is another, and "
            "so are the numbers",
            AS_ORIGINAL,
        ),
        Deviation(
            "behaviour: query log", "logged by the other two", "logged as `fts`", "The contract's totals count them"
        ),
    ),
    "search, search_all, hybrid_search, semantic_search": (
        Deviation(
            "behaviour: access tracking, query log",
            "updates, logs",
            "the same, queued with the answer and visible a moment later; dropped if the queue is full",
            "The contract requires a log that never blocks a search",
        ),
    ),
    "hybrid_search, semantic_search, search, search_all": (
        Deviation(
            "limit: query", "none", "up to 10,000 characters, not blank, without NUL", "A blank query matches nothing"
        ),
    ),
    "hybrid_search, semantic_search": (
        Deviation(
            "behaviour: no model",
            "an error",
            "hybrid_search continues with words alone; semantic_search refuses",
            "A partial search is better than none, and its signals show that it was partial",
        ),
        Deviation(
            "behaviour: texts without words",
            "not mentioned",
            "a row with only punctuation or emoji has `has_embedding` 1 but is not found, so fewer than `limit` may "
            "be returned",
            "Its vector is zero, which is near to nothing",
        ),
    ),
    "get_query_stats, cleanup_query_log": (
        Deviation(
            "behaviour: databases",
            "not mentioned",
            "every database",
            "The original logs in the searched database and counts in core",
        ),
    ),
    "create_entity, supersede_memory, smart_save_memory, handle_correction, get_entity_full, search_all, "
    "get_query_stats": (
        Deviation(
            "behaviour: as documented",
            "in the original an entity has any type, supersede_memory answers `old` and `new`, a duplicate by words "
            "has all of them, a correction has the category of the wrong memory, get_entity_full answers one list "
            "`memories`, search_all leaves out databases without hits, and `tools_used` is a number",
            "as documented",
            "The document takes precedence",
        ),
    ),
    "smart_save_memory": (
        Deviation(
            "behaviour: message",
            "no text given",
            "the choices of the original, in other words",
            "An agent goes by the names of the tools in it, which are the same",
        ),
    ),
    "query log": (
        Deviation(
            "behaviour: secrets",
            "not mentioned",
            "text that looks like a key, token or password is replaced, by the rules of `sessions`, and a text is cut "
            "to 1,000 characters; not recognized: a password that no English name with `:`, `=`, an arrow, `is` or "
            "`was` precedes (other than `my password` and a word with a digit), a word without digits in the middle of "
            "a sentence, one of fewer than four characters, the later words of one with spaces and no quotes, long "
            "numbers and base64 without a name, which are mostly digests, and key formats that are not listed in "
            "`kernel/security/secrets.py`",
            "Users search for what they just pasted",
        ),
    ),
}
