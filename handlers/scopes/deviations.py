"""The long lists of deviations of `scopes`, and those that several tools share; the others stand in the rows."""

from collections.abc import Mapping

from kernel.tools import Deviation

_UNDOCUMENTED = "The original takes it, though the document does not show it"
_AS_OF = "Versions are kept, so the state at an earlier time can be read"
_ENTRY_TOOLS = "memory_tool, memory_guideline, memory_knowledge"
TAG_VALUES = "guideline, knowledge, project, tool"


def parameter(name: str, reason: str = _UNDOCUMENTED) -> Deviation:
    """A parameter that the contract does not have."""
    return Deviation(f"parameter {name}", "no", "yes", reason)


def free_category(listed: str) -> Deviation:
    """A category that is free text."""
    return Deviation("values category", listed, "any", "The original takes any word, and no search depends on it")


QUERY = (
    parameter(
        "offset", "`hasMore` is of use only if the next page can be asked for; a context skips so many of each type"
    ),
    Deviation("default context.limit", "none", "20", "A context is bounded, by what a search is bounded by"),
    parameter("asOf", f"{_AS_OF} by a search and a context; tags and relations are the current ones"),
    parameter(
        "includeShadowed",
        "An entry of a nearer scope replaces those of the same name in farther scopes; this shows them too",
    ),
    Deviation(
        "values relatedTo.relation",
        "any",
        "applies_to, conflicts_with, depends_on, related_to",
        "The document lists these for relations, and a relation of another type cannot be made",
    ),
    Deviation(
        "values relatedTo.type",
        "any",
        TAG_VALUES,
        "The document lists no values here; these are the ones it lists for tags",
    ),
    Deviation(
        "behaviour: a name in several scopes",
        "the original returns all of them",
        "the nearest alone, unless `includeShadowed` is given",
        "A project that overrides a global guideline needs its own version alone",
    ),
    Deviation(
        "behaviour: search",
        "the original tests for one substring, and meaning only orders what that found",
        "words in any order, stems and meaning find entries; parts of words only where these find nothing, "
        "and only if one has three characters or more",
        "The document promises a free-text and a semantic search",
    ),
    Deviation(
        "behaviour: semanticThreshold",
        "similarity score",
        "a logistic of the cosine: .5 (cosine .12) is between related and unrelated; the default of .7 (.2) admits "
        "what answers a question in other words, .95 (.4) what says nearly the same",
        "The document does not say what is measured; with the built-in model 17 of 20 paraphrases reach .7",
    ),
    Deviation(
        "behaviour: score of a search",
        "similarity of the vectors",
        "the evidence of `recall`, in [0, 1] and 1 for the best, takes the place of the similarity",
        "By the similarity of the vectors alone, an entry with the exact words of the query ranks below every entry "
        "that is near in meaning",
    ),
    Deviation(
        "behaviour: meta",
        "`truncated` and `hasMore` are not distinguished",
        "`hasMore`: more than returned; `truncated`: besides the nearest entries that were examined, more are near "
        "enough in meaning, and `totalCount` leaves them out",
        "Matches by words and filters are all counted; by meaning the nearest hundred are, or as many as the page "
        "needs",
    ),
    Deviation(
        "behaviour: result",
        "in the original the whole rows of entry, version and tags, with nulls",
        "tags as id and name and the keys in the order that the document shows; each fact once, and nothing that is "
        "null or has its default value; the score with four decimals; `get` gives the whole row",
        "A context is read at the start of every session, and its size is what it costs",
    ),
    Deviation(
        "behaviour: unknown tags",
        "not mentioned",
        "`meta.unknownTags` names the tags of the filter that do not exist",
        "A mistyped tag finds nothing, or excludes nothing, without a word",
    ),
    Deviation(
        "behaviour: compact",
        "tags as whole rows in the original",
        "names of tags, if there are any; neither `scopeId` nor a second id",
        "A compact result is a list of names",
    ),
    Deviation(
        "behaviour: expired knowledge",
        "not mentioned",
        "`expired: true` beside the entry, ranked after everything else",
        "The document has `validUntil`",
    ),
    Deviation(
        "behaviour: tags, includeInactive, limit",
        "in the original `tags.exclude` drops what has no tag, `includeInactive` is ignored, and the limit of a "
        "context is one for all types",
        "as documented",
        "The document takes precedence",
    ),
    Deviation(
        "limit: offset",
        "not mentioned",
        "0 to 10,000",
        "What is skipped has to be ranked too",
    ),
    Deviation(
        "limit: limit",
        "not mentioned",
        "1 to 10,000",
        "An answer must fit into memory; the original takes anything and reads 0 as 20",
    ),
)
SHARED: Mapping[str, tuple[Deviation, ...]] = {
    "every tool": (
        Deviation(
            "behaviour: ids",
            "`org_abc123` in examples, UUIDs in the original",
            "`org_` and 22 characters that sort by time",
            "The form of the document, and ids that sort by creation",
        ),
        Deviation(
            "behaviour: layout",
            "indented in the examples and in the original",
            "JSON without blanks; over MCP also as `structuredContent`",
            "The blanks are a third of what a model reads; MCP asks for structured content beside the text",
        ),
        Deviation(
            "behaviour: large requests",
            "not mentioned",
            "a request of more than 4 MiB is refused by the server before any tool sees it: 413 with `error` as an "
            "object, or an error of MCP; `quipu import memory-export` reads a file of any size",
            "A body is not read beyond what any tool takes",
        ),
        Deviation(
            "behaviour: unknown arguments",
            "ignored by the original",
            "refused by name",
            "A misspelt `expectedVersion` or `scopeId` that is ignored writes something else than requested",
        ),
        Deviation(
            "behaviour: values",
            "enums and ranges advertised, not enforced by the original",
            "enforced; NUL characters, blank names and texts over 1 MiB refused",
            "A mistyped scopeType is lost to every search; the other values are refused so that a mistake is noticed",
        ),
        Deviation(
            "behaviour: names",
            "stored as they are given",
            "names and titles of entries, projects, organizations and tags are composed (NFC), without blanks at their "
            "ends, soft hyphens and spaces of no width; those of an import too",
            "Two names that look the same are one",
        ),
        Deviation(
            "behaviour: nested values",
            "any depth",
            "objects and lists at most 32 levels deep; 64 in an import",
            "An export has to be readable by an import, in every format",
        ),
        Deviation(
            "behaviour: types",
            '`"5"` is taken for 5, and `"true"` for true',
            "refused, naming the parameter; `5.0` is 5",
            "One rule for every dialect; a value of the wrong type is a mistake of the caller",
        ),
        Deviation(
            "behaviour: null",
            "not mentioned",
            "stands for an argument that is not given",
            "Clients send it for arguments they leave out",
        ),
        Deviation(
            "behaviour: error",
            "`error`; in the original most have the code of an internal error, some are the text of SQLite",
            "also `code` and `context`, which names the field; the text says what is allowed",
            "The original's own codes; an agent corrects a call faster when the error names the field",
        ),
        Deviation(
            "behaviour: structured content",
            "none in the original",
            "the same object beside the text",
            "Clients that know the output schema read it instead of parsing the text",
        ),
        Deviation(
            "behaviour: unknown tool", "an error of the tool", "the protocol's own error", "There is no tool to answer"
        ),
        Deviation(
            "behaviour: times",
            "two formats in the original",
            "ISO 8601 in UTC with milliseconds",
            "The document's examples have one",
        ),
    ),
    "memory_org, memory_project, memory_session, memory_tool, memory_guideline, memory_knowledge, memory_tag, "
    "memory_relation, memory_conflict": (
        Deviation(
            "behaviour: meta of lists",
            "`returnedCount` alone",
            "also `totalCount` and `hasMore`",
            "An agent takes the first twenty rules for all of them",
        ),
        Deviation(
            "behaviour: order of lists",
            "none stated",
            "by creation; guidelines by priority first, conflicts by time",
            "Pages of a list need an order",
        ),
    ),
    _ENTRY_TOOLS: (
        parameter("asOf", _AS_OF),
        Deviation(
            "behaviour: versions",
            "without category and priority",
            "`history` gives those of its time with each version of an entry whose category or priority was changed, "
            "and `asOf` reads and ranks by them; of changes that are not recorded, those in imported documents and "
            "before this was kept, the values of today are given",
            "Such a change makes a version, and nothing else says what it changed",
        ),
        parameter(
            "expectedVersion",
            "Compare-and-set: of two agents that change the version both have read, the second gets a conflict instead "
            "of overwriting the first",
        ),
        parameter("includeInactive"),
        parameter("limit"),
        parameter("offset"),
        parameter("updatedBy"),
        Deviation(
            "behaviour: name",
            "unique within a scope, but for global in the original; a deactivated entry keeps it",
            "unique among active entries of every scope, global too",
            "Two entries of one name cannot be distinguished; no action reactivates an entry, so its name must not be "
            "lost",
        ),
        Deviation(
            "behaviour: validUntil",
            "a text that nothing reads in the original",
            "a date counts to the end of that day in UTC; get and list show `expired: true` after it",
            "The document calls it an expiration, and a fact is valid on its last day",
        ),
        Deviation(
            "behaviour: get",
            "inherits from global alone in the original",
            "session, project, organization, global; the nearest wins",
            "The document promises parent scopes up to global",
        ),
        Deviation(
            "behaviour: list",
            "`inherit` ignored",
            "without it as documented; with it what the scope sees, each name once",
            "The original's guide promises it",
        ),
        Deviation(
            "behaviour: update",
            "every update within five seconds is a conflict, in UTC only",
            "in every zone, and none where `expectedVersion` was met",
            "A caller that names the version knows what the update follows",
        ),
    ),
    "memory_guideline, memory_knowledge": (parameter("inherit"),),
    "memory_tool": (free_category("api, cli, function, mcp"),),
    "memory_knowledge": (free_category("context, decision, fact, reference"),),
    "memory_tag": (free_category("category, custom, domain, language, meta"),),
    "memory_conflict, memory_project, memory_relation, memory_session, memory_tag": (parameter("offset"),),
    "memory_relation, memory_session, memory_tag": (parameter("limit"),),
    f"{_ENTRY_TOOLS}, memory_query, memory_export, memory_import": (
        Deviation(
            "behaviour: scopeId",
            "`Invalid scope configuration` is an error; the original takes an unknown id for global, and drops an id "
            "beside global",
            "an unknown id, a missing one, and one beside `global` are refused by field",
            "A mistyped id looks like a project without rules, and a rule of a project must not become one of all",
        ),
    ),
    "memory_project, memory_session, memory_relation, memory_query": (
        Deviation(
            "behaviour: unknown ids in filters",
            "empty lists in the original",
            "`orgId`, `projectId`, `sourceId`, `targetId` and `relatedTo.id` are refused as not found",
            "An empty list looks like an answer",
        ),
    ),
    f"{_ENTRY_TOOLS}, memory_tag": (
        Deviation(
            "behaviour: unknown id",
            "empty lists of history and for_entry",
            "refused as not found",
            "An empty list looks like an answer",
        ),
    ),
    "memory_tag, memory_relation": (
        Deviation(
            "behaviour: ends",
            "not checked by the original",
            "have to exist",
            "A tag or a relation of an entry that does not exist is never shown",
        ),
    ),
}
