"""The tools memory_export and memory_import (seed 000), and the import of an export file by the command."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from handlers.scopes import deviations, markdown, yaml
from handlers.scopes import errors as faults
from handlers.scopes.entry_kinds import GUIDELINE, KNOWLEDGE, TOOL
from handlers.scopes.export import Selection, export_document
from handlers.scopes.field_types import Id, Label, Name, ScopeId, validate
from handlers.scopes.import_document import as_object
from handlers.scopes.import_entries import ImportState, Strategy
from handlers.scopes.import_merge import OUTCOMES, ImportOptions, merge_document
from handlers.scopes.import_scopes import Problem
from handlers.scopes.inheritance import GLOBAL, ScopeType, check_scope
from kernel import tools
from kernel.errors import Fault
from kernel.store.transaction import Tx
from kernel.text import yaml_block

KINDS = (TOOL, GUIDELINE, KNOWLEDGE)
MAX_REASONS_SHOWN = 100
# The separators of each format and how many of them a request may hold: a decoded document takes many times the memory
# of its text. Long texts may hold more, one for each 16 characters.
MAX_SEPARATORS: Mapping[str, tuple[str, int]] = {"json": (",", 200_000), "yaml": (",\n", 100_000)}
_CHARACTERS_PER_SEPARATOR = 16
_NODES_PER_SEPARATOR = 4  # a key, its value and the lists around them; YAML can nest lists without a separator
EntryTypes = Literal["tools", "guidelines", "knowledge"]
Format = Literal["json", "markdown", "yaml"]
_TOO_LARGE = "Too large for one request: `quipu import memory-export FILE` reads a file of any size."
_DECODE_ERRORS = (msgspec.DecodeError, ValueError, RecursionError)


class Export(Struct, forbid_unknown_fields=True, rename="camel"):
    """What to export, and in which format."""

    action: Literal["export"]
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

    type: ScopeType
    id: ScopeId = None


class Import(Struct, forbid_unknown_fields=True, rename="camel"):
    """What to import, and how to treat entries that exist already."""

    action: Literal["import"]
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


class ImportCounts(Struct):
    """How many entries of one type."""

    created: int
    updated: int
    skipped: int


class LeftOut(Struct):
    """An item that was left out, and the reason."""

    entry: str
    error: str


class ImportResult(Struct):
    """Result of import; `success` is false if the content is no export, which changes nothing."""

    success: bool
    created: int
    updated: int
    skipped: int
    errors: list[LeftOut]
    details: dict[str, ImportCounts]


def memory_export(tx: Tx, request: Export) -> ExportResult:
    """Export memory entries to JSON, YAML (both can be imported again) or Markdown (for people)."""
    validate(request)
    for tag in request.tags or ():
        if "\0" in tag:
            raise faults.invalid("tags", "must not hold NUL characters")
    scope_id = None if request.scope_type == GLOBAL else request.scope_id
    if request.scope_type is not None and scope_id is not None:
        check_scope(tx, request.scope_type, scope_id)
    kinds = [kind for kind in KINDS if not request.types or kind.plural in request.types]
    types = [kind.plural for kind in kinds]
    scope = {"scopeType": request.scope_type, "scopeId": scope_id}
    metadata = {"types": types, **{name: value for name, value in scope.items() if value is not None}}
    selection = Selection(
        kinds,
        request.scope_type,
        scope_id,
        request.tags or None,
        versions=bool(request.include_versions),
        inactive=bool(request.include_inactive),
    )
    found = export_document(tx, selection, metadata)
    shape = request.format or "json"
    count = sum(len(items) for items in found["entries"].values())
    summary = ExportMetadata(tx.now, count, types, request.scope_type or UNSET, scope_id or UNSET)
    return ExportResult(True, shape, render(found, shape), summary)


def render(found: Mapping[str, Any], shape: Format) -> str:
    """A document as text."""
    if shape == "markdown":
        return markdown.render_page(found)
    if shape == "yaml":
        return f"# Agent Memory Export\n{yaml_block(found)}"
    return msgspec.json.format(msgspec.json.encode(found), indent=2).decode()


def memory_import(tx: Tx, request: Import) -> ImportResult:
    """Import memory entries from an export in JSON or YAML with intelligent conflict resolution."""
    validate(request)
    scope_mapping: dict[str, tuple[str, str | None]] = {}
    for source, target in (request.scope_mapping or {}).items():
        scope_mapping[source if ":" in source else f"{source}:"] = (target.type, _checked_scope_id(tx, source, target))
    found = _read(request.content, request.format or "json", _max_separators(tx, request))
    if isinstance(found, Problem):
        return _import_result([found], None)
    options = ImportOptions(
        request.conflict_strategy or "update", request.imported_by, bool(request.generate_new_ids), scope_mapping
    )
    state = merge_document(tx, found, options)
    # The Fault rolls back everything that was written so far.
    if options.strategy == "error" and (state.conflicts or state.problems):
        raise _strict_refusal(state)
    return _import_result(state.problems, state)


def import_file(tx: Tx, path: Path, _password: str | None) -> tools.Imported:
    """Imports an export file of any size, JSON or YAML by its suffix; the same as `memory_import`."""
    try:
        content = path.read_text(encoding="utf-8")
    except OSError as error:
        raise Fault("invalid", f"Cannot read {path.name}: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise Fault("invalid", f"{path.name} is not text in UTF-8.") from None
    shape: Format = "yaml" if path.suffix in {".yaml", ".yml"} else "json"
    done = memory_import(tx, Import("import", content, shape))
    if not done.success:
        raise Fault("invalid", f"{path.name} is no export: {done.errors[0].error}")
    counts = {"created": done.created, "updated": done.updated, "skipped": done.skipped}
    return tools.Imported(counts, [f"{left.entry}: {left.error}" for left in done.errors])


def _checked_scope_id(tx: Tx, source: str, target: TargetScope) -> str | None:
    field = f"scopeMapping.{source}"
    if "\0" in source or "\0" in (target.id or ""):
        raise faults.invalid("scopeMapping", "must not hold NUL characters")
    if target.type == GLOBAL:
        return None
    if target.id is None:
        raise faults.required(f"{field}.id", "for non-global scope")
    check_scope(tx, target.type, target.id, f"{field}.id")
    return target.id


def _max_separators(tx: Tx, request: Import) -> int | None:
    """How many separators the document of a request may hold; None for a file of the import command."""
    if tx.call_context.tool != "memory_import":
        return None
    _, limit = MAX_SEPARATORS.get(request.format or "json", ("", 0))
    return max(limit, len(request.content) // _CHARACTERS_PER_SEPARATOR)


def _read(content: str, shape: Format, limit: int | None) -> dict[str, Any] | Problem:
    """The document, its entries as lists by kind; a Problem for content that is none."""
    if shape == "markdown":
        return Problem("parsing", "Markdown import not supported. Please use JSON or YAML format for import.")
    if limit is not None and sum(content.count(mark) for mark in MAX_SEPARATORS[shape][0]) > limit:
        return Problem("parsing", _TOO_LARGE)
    try:
        if shape == "yaml":
            found: Any = yaml.read(content, limit and limit * _NODES_PER_SEPARATOR)
        else:
            found = msgspec.json.decode(content)
    except _DECODE_ERRORS as error:
        return Problem("parsing", f"Not readable as {shape.upper()}: {error}")
    held = as_object(found).get("entries")
    if not isinstance(held, dict):
        return Problem("structure", "Missing entries object")
    for kind in KINDS:
        if not isinstance(as_object(held).get(kind.plural, []), list | None):
            return Problem("structure", f"entries.{kind.plural} is not a list")
    return as_object(found)


def _import_result(problems: list[Problem], state: ImportState | None) -> ImportResult:
    zero = dict.fromkeys(OUTCOMES, 0)
    details = {kind.plural: ImportCounts(**(state.counts[kind.plural] if state else zero)) for kind in KINDS}
    totals = {name: sum(getattr(counts, name) for counts in details.values()) for name in OUTCOMES}
    return ImportResult(
        state is not None, **totals, errors=[LeftOut(*problem) for problem in problems], details=details
    )


def _strict_refusal(state: ImportState) -> Fault:
    """The fault of a strict import, with the first reasons; raising it rolls the import back."""
    found = [*state.conflicts, *state.problems]
    context = {
        "field": "content",
        "errors": [problem._asdict() for problem in found[:MAX_REASONS_SHOWN]],
        "count": len(found),
    }
    reasons = f"{found[0].entry}: {found[0].error}" + (f" (and {len(found) - 1} more)" if len(found) > 1 else "")
    if state.conflicts:
        return Fault("conflict", f"Nothing was imported, {reasons}", faults.EXISTS, context)
    return Fault("invalid", f"Nothing was imported, {reasons}", faults.MISSING, context)


IMPORT = tools.Import("memory-export", "a file that memory_export wrote, JSON or YAML by its ending", import_file)

TOOLS: tuple[tools.Tool, ...] = (
    tools.read(
        memory_export,
        tools.Hints("Export"),
        permission={"export": "read"},
        audited=True,
        deviations=(
            tools.Deviation(
                "behaviour: document",
                "entries; relations cut at 20 in the original",
                "also every relation, `deactivatedAt`, the scopes of the entries and their tags",
                "An import elsewhere restores what was exported, and its export is the same but for the time",
            ),
            tools.Deviation(
                "behaviour: filters",
                "`scopeType` without `scopeId` finds nothing in the original, an unknown scope is empty",
                "every scope of the type; an unknown scope is refused",
                "A backup that is empty by mistake is noticed too late",
            ),
            tools.Deviation(
                "behaviour: formats",
                "YAML of a few fields, not always valid; Markdown without escapes",
                "YAML always valid and as complete as JSON; in Markdown no entry can change the structure of the page",
                "A title with a colon or a heading in a text is common",
            ),
        ),
    ),
    tools.exclusive(
        memory_import,
        tools.Hints("Import", destructive=True),
        permission={"import": "admin"},
        long=True,
        deviations=deviations.IMPORT,
    ),
)
