"""The built-in memory types, and those of configuration files in the format of the original."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from handlers.notes.slug import SUFFIX, kebab
from kernel.core.errors import Fault
from kernel.core.lazy_regex import regex

FALLBACK = "context"
FALLBACK_ABOUT = "General context information - use when no other type fits"
PROJECT_FILES = (".opencode/opencode-historian.jsonc", ".opencode/opencode-historian.json")
_MAX_CONFIG_BYTES = 1 << 20  # 1 MB; a larger file is cut and then fails to parse
# An open string or comment goes on to the end, so that it is read once.
_TOKEN = regex(r'"(?:[^"\\]|\\.)*+"?|//[^\n]*|/\*.*?(?:\*/|(?P<open>\Z))|,(?=\s*[\]}])', re.DOTALL)
_NAME = regex(r"\w[\w.-]{0,63}")


class MemoryType(Struct, omit_defaults=True):
    name: Annotated[str, Meta(description="Name of the type, in kebab-case")]
    description: Annotated[str, Meta(description="What belongs under the type")]
    template: str | UnsetType = UNSET


class _TypesFile(Struct):
    memory_types: list[MemoryType] = msgspec.field(default_factory=list[MemoryType], name="memoryTypes")


BUILT_IN = (
    MemoryType(
        "architectural-decision", "High-level choices about the system: its parts, its stack, and why they are so"
    ),
    MemoryType(
        "design-decision", "Choices about user interface, user experience or a single component, with their reasons"
    ),
    MemoryType("learning", "What was discovered, understood or learned the hard way while developing"),
    MemoryType("user-preference", "What this user prefers: style, workflow, tools"),
    MemoryType("project-preference", "How things are done in this project: its own patterns and libraries"),
    MemoryType("issue", "Known bugs and problems, and where they stand"),
    MemoryType(FALLBACK, "General background that no other type fits"),
    MemoryType("recurring-pattern", "Patterns that come back in the code or in the way of working"),
    MemoryType("conventions-pattern", "Coding conventions: style, naming, guidelines"),
)


def load_types(user: str, roots: Sequence[Path]) -> dict[str, MemoryType]:
    """Return all types by name: built-in, from the user's file, from each project; the last definition wins.

    Raises Fault("invalid") naming an invalid file; with several projects, an invalid project file is skipped.
    """
    kinds = {kind.name: kind for kind in (*BUILT_IN, *(_read_types(Path(user).expanduser()) if user else ()))}
    for root in roots:
        try:
            kinds |= {kind.name: kind for kind in project_types(root)}
        except Fault:
            if len(roots) == 1:
                raise
    return kinds


def project_types(root: Path) -> list[MemoryType]:
    """Return the types of a project's file; raises Fault("invalid") naming an invalid file."""
    try:
        file = next((file for file in (root / name for name in PROJECT_FILES) if file.is_file()), None)
    except OSError as error:
        raise Fault("invalid", f"Cannot read the types in {root}: {error.strerror}") from None
    return _read_types(file) if file else []


def _read_types(file: Path) -> list[MemoryType]:
    try:
        with file.open("rb") as stream:
            text = stream.read(_MAX_CONFIG_BYTES).decode("utf-8-sig")
        types = msgspec.json.decode(_TOKEN.sub(_strip_jsonc, text), type=_TypesFile)
    except (OSError, UnicodeDecodeError, msgspec.DecodeError, RecursionError) as error:
        raise Fault("invalid", f"Cannot read the types of {file.name}: {error}") from None
    return [_checked(kind, file) for kind in types.memory_types]


def _checked(kind: MemoryType, file: Path) -> MemoryType:
    name = kebab(kind.name)
    if not _NAME.fullmatch(name) or name.endswith(SUFFIX):
        raise Fault("invalid", f'Cannot read the types of {file.name}: "{kind.name}" is no name for a type')
    return msgspec.structs.replace(kind, name=name)


def _strip_jsonc(match: re.Match[str]) -> str:
    """Replaces a JSONC token: strings and an open comment stay, comments and trailing commas become a space."""
    return match[0] if match[0].startswith('"') or match["open"] is not None else " "


def resolve_type(kinds: Mapping[str, MemoryType], text: str) -> str:
    """Return the name of a given type in kebab-case; raises Fault("invalid") for an unknown type."""
    name = kebab(text)
    if name not in kinds:
        raise Fault(
            "invalid",
            f'Invalid memory type: "{text}". Must be one of the built-in types or configured custom types. '
            f"These are {', '.join(kinds)}.",
        )
    return name
