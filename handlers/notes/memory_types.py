"""The types a memory can have: those built in, and those of configuration files such as the original reads."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from handlers.notes.slug import SUFFIX, kebab
from kernel.errors import Fault
from kernel.lazy_regex import regex

FALLBACK = "context"
FALLBACK_ABOUT = "General context information - use when no other type fits"
PROJECT_FILES = (".opencode/opencode-historian.jsonc", ".opencode/opencode-historian.json")
_LARGEST = 1 << 20
_TOKEN = regex(r'"(?:[^"\\]|\\.)*"|//[^\n]*|/\*.*?\*/|,(?=\s*[\]}])', re.DOTALL)
_NAME = regex(r"\w[\w.-]{0,63}")


class Kind(Struct, omit_defaults=True):
    """One type of memory."""

    name: Annotated[str, Meta(description="Name of the type, in kebab-case")]
    description: Annotated[str, Meta(description="What belongs under the type")]
    template: str | UnsetType = UNSET


class _Configured(Struct):
    memory_types: list[Kind] = msgspec.field(default_factory=list[Kind], name="memoryTypes")


BUILT_IN = (
    Kind("architectural-decision", "High-level choices about the system: its parts, its stack, and why they are so"),
    Kind("design-decision", "Choices about user interface, user experience or a single component, with their reasons"),
    Kind("learning", "What was discovered, understood or learned the hard way while developing"),
    Kind("user-preference", "What this user prefers: style, workflow, tools"),
    Kind("project-preference", "How things are done in this project: its own patterns and libraries"),
    Kind("issue", "Known bugs and problems, and where they stand"),
    Kind(FALLBACK, "General background that no other type fits"),
    Kind("recurring-pattern", "Patterns that come back in the code or in the way of working"),
    Kind("conventions-pattern", "Coding conventions: style, naming, guidelines"),
)


def known(user: str, roots: Sequence[Path]) -> dict[str, Kind]:
    """Every type by its name: those built in, those of the user's file, those of each project; the last word counts.

    Raises Fault("invalid") naming a file that cannot be understood; where there are several projects, such a file of
    one of them is passed over.
    """
    kinds = {kind.name: kind for kind in (*BUILT_IN, *(_configured(Path(user).expanduser()) if user else ()))}
    for root in roots:
        try:
            kinds |= {kind.name: kind for kind in configured(root)}
        except Fault:
            if len(roots) == 1:
                raise
    return kinds


def configured(root: Path) -> list[Kind]:
    """The types of a project's own file; raises Fault("invalid") naming one that cannot be understood."""
    try:
        file = next((file for file in (root / name for name in PROJECT_FILES) if file.is_file()), None)
    except OSError as error:
        raise Fault("invalid", f"Cannot read the types in {root}: {error.strerror}") from None
    return _configured(file) if file else []


def _configured(file: Path) -> list[Kind]:
    try:
        with file.open("rb") as opened:
            text = opened.read(_LARGEST).decode("utf-8-sig")
        found = msgspec.json.decode(_TOKEN.sub(_plain, text), type=_Configured)
    except (OSError, UnicodeDecodeError, msgspec.DecodeError, RecursionError) as error:
        raise Fault("invalid", f"Cannot read the types of {file.name}: {error}") from None
    return [_checked(kind, file) for kind in found.memory_types]


def _checked(kind: Kind, file: Path) -> Kind:
    name = kebab(kind.name)
    if not _NAME.fullmatch(name) or name.endswith(SUFFIX):
        raise Fault("invalid", f'Cannot read the types of {file.name}: "{kind.name}" is no name for a type')
    return msgspec.structs.replace(kind, name=name)


def _plain(found: re.Match[str]) -> str:
    """JSON without what JSONC adds to it: comments, and commas before a bracket."""
    return found[0] if found[0].startswith('"') else " "


def chosen(kinds: Mapping[str, Kind], given: str) -> str:
    """The name of the type meant by what a caller gave; raises Fault("invalid") for one that is not there."""
    name = kebab(given)
    if name not in kinds:
        raise Fault(
            "invalid",
            f'Invalid memory type: "{given}". Must be one of the built-in types or configured custom types.',
        )
    return name
