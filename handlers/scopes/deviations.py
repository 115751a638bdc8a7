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


LOCKS = (
    parameter(
        "fencing_token",
        "An agent must not release a lock that expired and went to another agent; the number distinguishes the "
        "two locks",
    ),
    Deviation(
        "behaviour: checkout",
        "refused to the holder too in the original",
        "extends the lock and gives a new `fencingToken`",
        "An agent that lost its context can continue, and its earlier lock is recognized as stale",
    ),
    Deviation(
        "behaviour: expires_in",
        "up to 86400, and none below 1 in the original",
        "0 to 86400; 0 does not expire, and what is shorter than a millisecond lasts one",
        "A negative time is a mistake",
    ),
    Deviation(
        "behaviour: file_path",
        "no `..` anywhere in the original",
        "no `..` segment; absolute on any system",
        "`a..b.ts` is a file, and the agent's system need not be the server's",
    ),
    Deviation(
        "behaviour: force_unlock",
        "leaves nothing in the original",
        "status shows the last ten in `forceUnlocks`",
        "An agent that lost a lock can see which agent broke it",
    ),
)
QUERY = (
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
        "words in any order, stems and meaning find entries; parts of words only where these find nothing",
        "The document promises a free-text and a semantic search",
    ),
    Deviation(
        "behaviour: semanticThreshold",
        "similarity score",
        "(1 + cosine) / 2 of the vectors",
        "The document does not say what is measured; .5 then means unrelated, and the default of .7 admits what is on "
        "the same subject",
    ),
    Deviation(
        "behaviour: score of a search",
        "similarity of the vectors",
        "evidence of words and meaning fused, in [0, 1], takes the place of the similarity",
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
        "behaviour: expired knowledge",
        "not mentioned",
        "`expired: true` beside the entry, ranked after everything else",
        "The document has `validUntil`",
    ),
    Deviation(
        "behaviour: scope.id, scopeId",
        "required for non-global scopes",
        "refused where it is missing; an unknown id inherits from global",
        "As the document says; the original searches global without notice",
    ),
    Deviation(
        "limit: limit",
        "not mentioned",
        "1 to 10,000",
        "An answer must fit into memory; the original takes anything and reads 0 as 20",
    ),
)
IMPORT = (
    Deviation(
        "values format",
        "json",
        "json, markdown, yaml",
        "The YAML of an export is read too; markdown is accepted to give the answer that the document promises",
    ),
    Deviation(
        "behaviour: ids",
        "always new in the original",
        "kept with versions, times, authors, activity and relations, unless taken or `generateNewIds` is set",
        "The document says that relations are preserved where ids match",
    ),
    Deviation(
        "behaviour: match",
        "by name, in global too if the scope has none",
        "by id where name and scope are the same too, else by name in the same scope; `generateNewIds` matches by name "
        "alone, and still updates the entry found",
        "An import into a project must not change what all projects see",
    ),
    Deviation(
        "behaviour: update, replace",
        "the same in the original",
        "update keeps the fields that the document leaves out, replace does not; neither adds a version where nothing "
        "differs",
        "The document distinguishes them; an import that is repeated changes nothing",
    ),
    Deviation(
        "behaviour: error",
        "lists what exists and adds the rest in the original",
        "refused with the first hundred reasons in `context.errors`, and nothing is changed",
        '"Strict, no modifications"',
    ),
    Deviation(
        "behaviour: scopes",
        "not exported, not checked in the original",
        "created with their ids where they are missing; an entry of an unknown scope is left out and reported in "
        "`errors`",
        "An entry in a scope that does not exist cannot be found",
    ),
    Deviation(
        "behaviour: values",
        "ranges not checked in the original",
        "`priority`, `confidence` and JSON of any range or shape",
        "Exports of the original have them, and nothing may be lost",
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
            "behaviour: unknown arguments",
            "ignored by the original",
            "refused by name",
            "A misspelt `expectedVersion` or `scopeId` that is ignored writes something else than requested",
        ),
        Deviation(
            "behaviour: values",
            "enums and ranges advertised, not enforced by the original",
            "enforced; NUL characters, blank names and texts over 1 MiB refused",
            "An entry in a scope that does not exist, or of a priority of 150, is lost to every search",
        ),
        Deviation(
            "behaviour: nested values",
            "any depth",
            "objects and lists at most 32 levels deep; 64 in an import",
            "An export has to be readable by an import, in every format",
        ),
        Deviation(
            "behaviour: whole numbers",
            "`20.0` taken for 20",
            "refused: written without a fraction",
            "One rule for every count: a fraction is a mistake",
        ),
        Deviation(
            "behaviour: null",
            "not mentioned",
            "stands for an argument that is not given",
            "Clients send it for arguments they leave out",
        ),
        Deviation(
            "behaviour: error",
            "`error`",
            "also `code` and `context`, which names the field",
            "The original's own codes; an agent corrects a call faster when the error names the field",
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
            "behaviour: order of lists",
            "none stated",
            "by creation; guidelines by priority first, conflicts by time",
            "Pages of a list need an order",
        ),
    ),
    _ENTRY_TOOLS: (
        parameter("asOf", _AS_OF),
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
    "memory_conflict, memory_project, memory_relation, memory_session, memory_tag": (parameter("offset"),),
    "memory_relation, memory_session, memory_tag": (parameter("limit"),),
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
