"""Deviations from the contract that concern several tools."""

from collections.abc import Mapping

from kernel.tools import Deviation

DEVIATIONS: Mapping[str, tuple[Deviation, ...]] = {
    "every tool": (
        Deviation(
            "behaviour: answers",
            "YAML; prose such as `Added` in the original",
            "as documented, and the same object as structured content",
            "The document takes precedence",
        ),
        Deviation(
            "behaviour: paths and files",
            "none stated; in the original a path is a file, so that `project` and `project/todo` exclude each other, "
            "no path has `..` anywhere, and no limit is enforced",
            "a path is a name in the store; the limits are those of the document",
            "A name needs no folder, and `v1..2` leads nowhere",
        ),
        Deviation(
            "error code",
            "five codes",
            "also `INVALID_ARGS`",
            "Missing, unknown or mistyped arguments and empty content fit none of the five; the original uses this "
            "code for them",
        ),
        Deviation(
            "behaviour: path",
            "letters, numbers, underscores, slashes",
            "also `-`, `.`, spaces, and letters and marks of every script",
            "The contract's own examples have hyphens and dots, and not every user writes in ASCII",
        ),
        Deviation(
            "behaviour: form of a path",
            "kept as given",
            "trimmed and normalized to NFC, then refused if it begins with `/`, has an empty, `.` or `..` segment, "
            "or an invisible character",
            "Two paths that look the same must be the same, and every path must be a valid file name for an export",
        ),
        Deviation(
            "behaviour: times",
            "a timestamp",
            "ISO 8601 in UTC with milliseconds, quoted",
            "YAML 1.1 readers convert an unquoted time to a type of their own",
        ),
        Deviation(
            "behaviour: busy store",
            "not mentioned",
            "`MEMORY_STORAGE_ERROR`",
            "To the caller, a full queue and an internal error are both failures of the store",
        ),
    ),
    "clear_memory": (
        Deviation(
            "behaviour: personal memory",
            "of one agent",
            "of everybody who uses the store: all agents of a tenant share the paths, and one clear deletes them all",
            "A path is unique in the store, so that agents can work on the same memories; tenants keep them apart",
        ),
    ),
    "add_memory, replace_memory": (
        Deviation(
            "limit: content",
            "up to 1 MB",
            "1 to 1,048,576 bytes of UTF-8",
            "The contract does not define 1 MB, and the original refuses empty content too",
        ),
        Deviation(
            "error: content of more than 4 MiB",
            "`MEMORY_CONTENT_TOO_LARGE`",
            "the request is refused by the server before any tool sees it: 413 with JSON, or an error of MCP",
            "A body is not read beyond what any tool takes",
        ),
    ),
    "drop_memory, clear_memory": (
        Deviation(
            "behaviour: history",
            "irreversible",
            "no tool can undo it, but `quipu undo` can for a week",
            "Agents clear by mistake; the owner of the file can still restore the memories",
        ),
    ),
}
