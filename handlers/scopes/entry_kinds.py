"""The three kinds of entries, as parameters of one implementation."""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

EntryType = Literal["tool", "guideline", "knowledge"]
DEFAULT_PRIORITY = 50
JSON_COLUMNS = {"parameters", "examples"}


class Kind(NamedTuple):
    """One kind of entry.

    `name` is its entryType and its key in results, `plural` the key of its lists, `space` its space in the index.
    `name_field` is the argument that holds the name, `version_fields` are its columns in `scopes_version`, and
    `indexed_fields` are those of them that are indexed after the name.
    """

    name: EntryType
    plural: str
    space: str
    label: str
    full_label: str
    name_field: str
    id_prefix: str
    version_id_prefix: str
    version_fields: tuple[str, ...]
    indexed_fields: tuple[str, ...]


TOOL = Kind(
    "tool",
    "tools",
    "scopes:tools",
    "Tool",
    "Tool",
    "name",
    "tool",
    "tv",
    ("description", "parameters", "examples", "constraints"),
    ("description", "constraints"),
)
GUIDELINE = Kind(
    "guideline",
    "guidelines",
    "scopes:guidelines",
    "Guideline",
    "Guideline",
    "name",
    "gl",
    "gv",
    ("content", "rationale", "examples"),
    ("content", "rationale"),
)
KNOWLEDGE = Kind(
    "knowledge",
    "knowledge",
    "scopes:knowledge",
    "Knowledge",
    "Knowledge entry",
    "title",
    "kn",
    "kv",
    ("content", "source", "confidence", "valid_until"),
    ("content", "source"),
)
KINDS: Mapping[str, Kind] = {kind.name: kind for kind in (TOOL, GUIDELINE, KNOWLEDGE)}


def index_text(kind: Kind, name: str, values: Mapping[str, Any]) -> str:
    """Return the indexed text of an entry: its name, then its indexed fields, separated by line breaks."""
    return "\n".join([name, *(text for field in kind.indexed_fields if (text := values[field]))])
