"""Request and result types of memory_export and memory_import (seed 000)."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from handlers.scopes.field_types import Id, Label, Name, ScopeId
from handlers.scopes.import_entries import Strategy
from handlers.scopes.inheritance import ScopeType

EntryTypes = Literal["tools", "guidelines", "knowledge"]
Format = Literal["json", "markdown", "yaml"]


class Export(Struct, forbid_unknown_fields=True, rename="camel"):
    """What to export, and in which format."""

    action: Annotated[Literal["export"], Meta(description="The only action")]
    types: Annotated[list[EntryTypes] | None, Meta(description="Entry types to export (default: all)")] = None
    scope_type: Annotated[ScopeType | None, Meta(description="Filter by scope type")] = None
    scope_id: Annotated[Id | None, Meta(description="Filter by scope ID")] = None
    tags: Annotated[list[Name] | None, Meta(description="Entries with any of these tags, in any case")] = None
    format: Annotated[Format | None, Meta(description="Export format: json, markdown, or yaml")] = "json"
    include_versions: Annotated[bool | None, Meta(description="Include full version history")] = False
    include_inactive: Annotated[bool | None, Meta(description="Include inactive entries")] = False


class ExportMetadata(Struct, rename="camel"):
    """The metadata of an export."""

    exported_at: str
    entry_count: int
    types: list[str]
    scope_type: str | UnsetType = UNSET
    scope_id: str | UnsetType = UNSET


class ExportResult(Struct):
    """Result of export; `content` is the whole document."""

    success: bool
    format: str
    content: str
    metadata: ExportMetadata


class TargetScope(Struct, forbid_unknown_fields=True):
    """The scope that replaces one of the document."""

    type: Annotated[ScopeType, Meta(description="Scope type of the target")]
    id: ScopeId = None


class Import(Struct, forbid_unknown_fields=True, rename="camel"):
    """What to import, and how to treat entries that exist already."""

    action: Annotated[Literal["import"], Meta(description="The only action; it needs content")]
    content: Annotated[str, Meta(min_length=1, description="Content to import (JSON or YAML string from export)")]
    format: Annotated[Format | None, Meta(description="Import format: json or yaml; markdown is for people")] = "json"
    conflict_strategy: Annotated[
        Strategy | None,
        Meta(description="skip, update, replace; or error: refuse all of it if anything exists or does not fit"),
    ] = "update"
    scope_mapping: Annotated[
        dict[str, TargetScope] | None,
        Meta(description='Map old scopes to new: {"global:": {"type": "project", "id": "proj_123"}}'),
    ] = None
    generate_new_ids: Annotated[bool | None, Meta(description="Generate new IDs for imported entries")] = False
    imported_by: Annotated[Label | None, Meta(description="User/agent performing the import")] = None
    dry_run: Annotated[bool | None, Meta(description="Report what the import would do, and write nothing")] = False


class ImportCounts(Struct):
    """How many entries of one type."""

    created: int
    updated: int
    skipped: int


class LeftOut(Struct):
    """An item that was left out, and the reason."""

    entry: str
    error: str


class ImportResult(Struct, rename="camel"):
    """Result of import: what was written. `success` is false if no entry was, for the errors; then nothing changes."""

    success: bool
    created: int
    updated: int
    skipped: int
    errors: list[LeftOut]
    details: dict[str, ImportCounts]
    dry_run: bool | UnsetType = UNSET
