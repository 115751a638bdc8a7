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
}
