"""Deviations from the contract that concern several tools."""

from collections.abc import Mapping

from kernel.tools import Deviation

DEVIATIONS: Mapping[str, tuple[Deviation, ...]] = {
    "memory_remember, memory_forget": (
        Deviation(
            "behaviour: paths",
            "a path",
            "absolute, relative to the project or its `.mnemonics`, or `qmd://type/file.md`; a path through a link "
            "is refused",
            "Earlier releases of the original answered with the latter two",
        ),
        Deviation(
            "behaviour: paths, several projects",
            "not mentioned",
            "absolute; a relative or `qmd://` path is refused, unless memory_remember names the project",
            "Such a path could belong to any project, and the wrong file must not be changed or deleted",
        ),
    ),
    "every tool": (
        Deviation(
            "behaviour: structured content",
            "none in the original",
            "the same object beside the text",
            "Clients that know the output schema read it instead of parsing the text",
        ),
        Deviation(
            "behaviour: bad arguments",
            "not mentioned; unknown ones are ignored in the original",
            "refused, naming the parameter",
            "A misspelt `memoryType` that is ignored would search every type",
        ),
        Deviation(
            "behaviour: large requests",
            "not mentioned",
            "a request of more than 4 MiB is refused by the server before any tool sees it: 413 with JSON, or an error "
            "of MCP",
            "A body is not read beyond what any tool takes",
        ),
    ),
    "memory_remember, memory_recall": (
        Deviation(
            "behaviour: types",
            "any name",
            "a configured name that ends in `.md` is refused",
            "Its folder would look like a file",
        ),
    ),
    "memory_list_types": (
        Deviation(
            "behaviour: descriptions",
            "not mentioned",
            "those of the nine types are in other words than in the original",
            "The document lists neither",
        ),
    ),
    "memory_remember": (
        Deviation(
            "behaviour: file name",
            "not mentioned; in the original ASCII letters alone, so that a title in another script is `.md`",
            "letters of every script, no hyphens at the ends",
            "Memories with a title in another script would overwrite each other",
        ),
        Deviation(
            "behaviour: filePath",
            "one that does not end in `.md` creates a new memory in the original",
            "refused",
            "The caller expects an update",
        ),
    ),
    "memory_recall": (
        Deviation(
            "behaviour: isAll",
            "no order; in the original by type as the types came up, and no message if only deleted files were found",
            "by path, and the message whenever nothing is found",
            "A list needs an order, and the document promises the message",
        ),
    ),
    "memory_forget": (
        Deviation(
            "behaviour: texts",
            "`not within .mnemonics/`; the original adds `directory`, and leaves out `array` for missing filePaths",
            "as documented",
            "The document takes precedence",
        ),
    ),
}
