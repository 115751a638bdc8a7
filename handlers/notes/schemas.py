"""Request and result types of `notes` (seed 001)."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from handlers.notes.memory_types import MemoryType

MAX_PATH = 4096
MAX_QUERY = 4096
MAX_LIMIT = 1000
LINT_LIMIT = 50
SearchType = Literal["search", "vsearch", "query"]


class ListTypes(Struct, forbid_unknown_fields=True):
    """Nothing is needed."""


class Remember(Struct, forbid_unknown_fields=True):
    """What to remember, and which file to update, if any."""

    title: Annotated[str, Meta(description="Title (used for filename on create)", max_length=500)]
    content: Annotated[str, Meta(description="Markdown content, kept as written; at most 1 MB of UTF-8")]
    memoryType: Annotated[str, Meta(description="Type (kebab-case), see memory_list_types", max_length=200)]
    tags: Annotated[
        list[str] | str | None, Meta(description="Tags; an update without them keeps those of the file")
    ] = None
    filePath: Annotated[
        str,
        Meta(
            description="Path to existing file (from memory_recall) - if provided, updates instead of creates",
            max_length=MAX_PATH,
        ),
    ] = ""
    project: Annotated[
        str, Meta(description="Project to create the memory in, one of those memory_list_types names", max_length=256)
    ] = ""


class Recall(Struct, forbid_unknown_fields=True):
    """What to look for, or everything."""

    query: Annotated[str, Meta(description="Search query (required when isAll=false)", max_length=MAX_QUERY)] = ""
    memoryType: Annotated[str, Meta(description="Filter by type; leave out when unsure", max_length=200)] = ""
    limit: Annotated[
        int, Meta(description="Max results (default: 10 for search, 100 for isAll)", ge=0, le=MAX_LIMIT)
    ] = 0
    type: Annotated[
        SearchType,
        Meta(description="search: exact terms; vsearch: concepts; query: both, for when the others find too little"),
    ] = "vsearch"
    isAll: Annotated[bool, Meta(description="Get all memories instead of search")] = False
    project: Annotated[str, Meta(description="Only memories of this project", max_length=256)] = ""


class Forget(Struct, forbid_unknown_fields=True):
    filePaths: Annotated[
        Annotated[list[Annotated[str, Meta(max_length=MAX_PATH)]], Meta(max_length=MAX_LIMIT)] | str,
        Meta(description="Array of file paths to delete (from memory_recall results)"),
    ]


class Sync(Struct, forbid_unknown_fields=True):
    """Nothing is needed."""


class Lint(Struct, forbid_unknown_fields=True):
    """Which files to check, and how much to say."""

    project: Annotated[str, Meta(description="Only files of this project", max_length=256)] = ""
    limit: Annotated[int, Meta(description="Most issues to list, errors first", ge=1, le=MAX_LIMIT)] = LINT_LIMIT


class Types(Struct):
    """Answer of memory_list_types; `projects` only if there are several."""

    types: list[MemoryType]
    fallbackType: str
    fallbackDescription: str
    projects: list[str] | UnsetType = UNSET


class Remembered(Struct):
    """Answer of memory_remember; `tags` are those the file has now."""

    success: bool
    filePath: str
    memoryType: str
    tags: list[str]
    isUpdate: bool


class Memory(Struct):
    """One memory; `score` in [0, 1], times ISO 8601 in UTC."""

    path: str
    score: float
    title: str
    memoryType: str
    tags: list[str]
    created: str
    modified: str
    content: str


class Recalled(Struct):
    """Answer of memory_recall; `message` if nothing was found, or if there is more; `error` if there was no query."""

    memories: list[Memory]
    count: int
    message: str | UnsetType = UNSET
    error: str | UnsetType = UNSET


class Forgotten(Struct):
    """Answer of memory_forget; `errors` says why a file was not deleted."""

    success: bool
    deletedCount: int
    deletedFiles: list[str]
    errors: list[str] | UnsetType = UNSET


class Synced(Struct):
    success: bool
    message: str


class Summary(Struct):
    """How healthy the memories are; `healthScore` is the percentage without an error or a warning."""

    totalMemories: int
    issuesFound: int
    healthScore: int
    issuesByType: dict[str, int]


class Issue(Struct):
    """One thing to mend in a file, given by its path below `.mnemonics`, or in a project, given by its folder.

    `project` is its name, only if there are several.
    """

    type: str
    severity: Literal["error", "warning", "info"]
    file: str
    message: str
    suggestion: str
    project: str | UnsetType = UNSET


class Linted(Struct):
    """Answer of memory_lint; the `summary` counts also the issues over the limit."""

    success: bool
    summary: Summary
    issues: list[Issue]
