"""project-brain beside the dialect `brain`: without an embedding model, which the original would download."""

from handlers import brain
from tests.originals.brain_calls import ENTITIES, LINKS, MEMORIES, SMART
from tests.originals.brain_searches import COMPANIONS, SEARCHES, STRAYS
from tests.originals.originals import Original, Rule

TRACKED = "*access_count || *last_accessed_at || *decay_score"
BAD = "every tool: behaviour: bad arguments"
DOCUMENTED = "behaviour: as documented"
RULES = (
    Rule("every tool: behaviour: times", kind="value", original="<time without zone>", ours="<time>"),
    Rule("every tool: behaviour: layout", at="layout", original="JSON, indented", ours="JSON, without blanks"),
    Rule("every tool: behaviour: unknown tool", "no_such_tool*"),
    Rule(BAD, at="body", original="*Input validation error*", ours="Error: Invalid arguments*"),
    Rule(BAD, at="outcome", ours="*unknown field* || *must not be blank* || *at `limit` || *at `older_than_days`"),
    Rule("behaviour: category, status", at="outcome", ours="*category is one of* || *status is one of*"),
    Rule("get_entities, get_notes: behaviour: type, note_type", at="outcome", ours="*type is one of*"),
    Rule("behaviour: importance", at="outcome", ours="*at `importance`*"),
    Rule("behaviour: metadata.immutable", at="outcome", ours="*metadata.immutable is true or false*"),
    Rule(DOCUMENTED, "create_entity*", "outcome", ours="*at `type`"),
    Rule(DOCUMENTED, "supersede_memory*", "old || new || old_memory || new_memory"),
    Rule(DOCUMENTED, "handle_correction*", "correction_memory.category", original="fact", ours="correction"),
    Rule(DOCUMENTED, "get_entity_full*", "memories || linked_memories || scoped_memories"),
    Rule(DOCUMENTED, "search_all*", "core || therapy || dnd || hlg || layout"),
    Rule(DOCUMENTED, "smart_save_memory*thick*"),
    Rule(DOCUMENTED, "get_query_stats*", "totals.tools_used"),
    Rule("smart_save_memory: behaviour: message", at="message", kind="value"),
    Rule("supersede_memory: behaviour: already superseded", at="outcome", ours="*is already superseded by*"),
    Rule("handle_correction: behaviour: unknown id", at="outcome", ours="*not found"),
    Rule("handle_correction: behaviour: protection", at="outcome", ours="BLOCKED: *"),
    Rule("create_link: behaviour: endpoints", at="outcome", ours="*not found"),
    Rule("search, search_all: behaviour: rank", at="*.rank", kind="value"),
    Rule("search, search_all: behaviour: query", '*"deploy nothingness"*', "memories[]", "length"),
    Rule("search, search_all: behaviour: query log", "get_query_stats*", "totals.* || data[]"),
    Rule("hybrid_search, semantic_search: behaviour: no model", "hybrid_search*", "outcome", ours='{"results"*'),
    Rule("hybrid_search, semantic_search: behaviour: no model", "semantic_search*", "body", original="*fetch failed*"),
    Rule("behaviour: unknown ids in filters", "get_*", "outcome", ours="* not found*"),
    Rule("set_config: behaviour: weights", at="outcome", ours="*is a number from 0 to 1"),
    Rule("get_memories, get_resources: behaviour: access tracking", at=TRACKED, sometimes=True),
    Rule(
        "search, search_all, hybrid_search, semantic_search: behaviour: access tracking, query log",
        "*",
        TRACKED,
        sometimes=True,
    ),
)

ORIGINAL = Original(
    brain.DIALECT,
    "https://github.com/Bhavya-Jain5/project-brain",
    "68eb6f6",
    {"BRAIN_DATA_PATH": "{data}"},
    {"QUIPU_MODEL": "none"},
    r"\b(?:mem|ent|lnk|mhist|qlog|note|res)_[0-9A-Za-z_-]{21}",
    (*ENTITIES, *MEMORIES, *SMART, *LINKS, *SEARCHES, *COMPANIONS, *STRAYS),
    RULES,
    starts=2,
)
