"""Tools, guidelines and knowledge as three rows of one table: what is called how, and what each says."""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

EntryType = Literal["tool", "guideline", "knowledge"]


class Kind(NamedTuple):
    """One type of entry: `name` is its entryType and its key in answers, `many` the key of its lists.

    `heading` is the argument that names an entry, `fields` are the columns of a version that are its own, and `said`
    those of them that the index searches after the heading.
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
    """The text an entry is found by: its heading, then each thing it says, a line each."""
    return "\n".join([name, *(text for field in kind.indexed_fields if (text := values[field]))])
