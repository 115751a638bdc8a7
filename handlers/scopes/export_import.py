"""The tools memory_export and memory_import (seed 000), and the import of an export file by the command."""

from collections.abc import Mapping, Sequence
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import asdict

from handlers.scopes import errors as faults
from handlers.scopes import export
from handlers.scopes.entry_kinds import KINDS
from handlers.scopes.export import FORMAT, Selection, export_document
from handlers.scopes.field_types import Id, Label, Name, ScopeId, normal_name, validate
from handlers.scopes.import_document import LeftOut, as_object, scope_keys
from handlers.scopes.import_merge import OUTCOMES, ImportOptions, ImportState, Strategy, is_small, merge_document
from handlers.scopes.inheritance import ScopeType, check_scope, check_scope_filter, required_scope_id
from handlers.scopes.tags import id_by_name
from kernel.calls import tools
from kernel.core import yaml
from kernel.core.errors import Fault
from kernel.core.text import is_of_long_numbers, yaml_block
from kernel.memories import import_records
from kernel.memories.import_records import Imported, Source
from kernel.store.long_work import Steps, run_steps
from kernel.store.transaction import Tx

MAX_REASONS_SHOWN = 100
MAX_SCOPES_SHOWN = 20
# The separators of each format and how many of them a request may hold: a decoded document takes many times the memory
# of its text. Long texts may hold another for each 16 characters.
MAX_SEPARATORS: Mapping[str, tuple[str, int]] = {"json": (",", 200_000), "yaml": (",\n", 100_000)}
_CHARACTERS_PER_SEPARATOR = 16
_NODES_PER_SEPARATOR = 4  # a key, its value and the lists around them; YAML can nest lists without a separator
_TOO_LARGE = "Too large for one request: `quipu import memory-export FILE` reads a file of any size."
_DECODE_ERRORS = (msgspec.DecodeError, ValueError, RecursionError)

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
    created: int
    updated: int
    skipped: int


class ImportResult(Struct, rename="camel"):
    """Result of import: what was written. `success` is false if no entry was, for the errors; then nothing changes."""

    success: bool
    created: int
    updated: int
    skipped: int
    errors: list[LeftOut]
    details: dict[str, ImportCounts]
    dry_run: bool | UnsetType = UNSET


def memory_export(tx: Tx, request: Export) -> ExportResult:
    """Export memory entries to JSON, YAML (both can be imported again) or Markdown (for people)."""
    validate(request)
    for tag in request.tags or ():
        if "\0" in tag:
            raise faults.invalid("tags", "must not hold NUL characters")
        if id_by_name(tx, normal_name(tag)) is None:
            raise faults.not_found("Tag", tag, "tags")
    check_scope_filter(tx, request.scope_type, request.scope_id)
    kinds = [kind for kind in KINDS.values() if not request.types or kind.plural in request.types]
    types = [kind.plural for kind in kinds]
    scope = {"scopeType": request.scope_type, "scopeId": request.scope_id}
    metadata = {"types": types, **{name: value for name, value in scope.items() if value is not None}}
    selection = Selection(
        kinds,
        request.scope_type,
        request.scope_id,
        request.tags or None,
        versions=bool(request.include_versions),
        inactive=bool(request.include_inactive),
    )
    document = export_document(tx, selection, metadata)
    shape = request.format or "json"
    count = sum(len(items) for items in document["entries"].values())
    summary = ExportMetadata(tx.now, count, types, request.scope_type or UNSET, request.scope_id or UNSET)
    return ExportResult(True, shape, render(document, shape), summary)


def render(document: Mapping[str, Any], shape: Format) -> str:
    if shape == "markdown":
        return export.render_page(document)
    if shape == "yaml":
        return f"# Agent Memory Export\n{yaml_block(document)}"
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode()


def memory_import(tx: Tx, request: Import) -> ImportResult | Steps[ImportResult]:
    """Import memory entries from an export in JSON or YAML with intelligent conflict resolution."""
    steps = _import_steps(request, request.content)
    # In one transaction if all of it is taken back in the end or at the first conflict.
    return run_steps(tx, steps) if request.dry_run or request.conflict_strategy == "error" else steps


def _import_steps(request: Import, content: str | mmap) -> Steps[ImportResult]:
    tx = yield
    validate(request)
    scope_mapping = {
        _mapping_key(source): (target.type, _checked_scope_id(tx, source, target))
        for source, target in (request.scope_mapping or {}).items()
    }
    document = _read(content, request.format or "json", _max_separators(tx, request))
    if isinstance(document, LeftOut):
        return _import_result([document], None)
    _check_mapping_keys(document, request.scope_mapping or {})
    options = ImportOptions(
        request.conflict_strategy or "update", request.imported_by, bool(request.generate_new_ids), scope_mapping
    )
    merging = merge_document(tx, document, options)
    # A document that is taken back as a whole if none of its entries fits: in slices its scopes would stay.
    state = run_steps(tx, merging) if is_small(document) else (yield from merging)
    state.problems.extend(_problems(document))
    # The Fault rolls back everything that was written so far.
    if options.strategy == "error" and (state.conflicts or state.problems):
        raise _strict_refusal(state)
    result = _import_result(state.problems, state, dry_run=bool(request.dry_run))
    if request.dry_run or not result.success:
        raise faults.rolled_back(result, _reasons(state.problems))
    return result


def _mapping_key(source: str) -> str:
    return source if ":" in source else f"{source}:"


def _check_mapping_keys(document: Mapping[str, Any], mapping: Mapping[str, Any]) -> None:
    present = scope_keys(document) if mapping else set[str]()
    for source in mapping:
        if _mapping_key(source) not in present:
            names = ", ".join(sorted(present)[:MAX_SCOPES_SHOWN]) or "none"
            hint = f"write it as type:id; the document has {names}"
            raise faults.invalid(f"scopeMapping.{source}", "is no scope of the document", hint)


def import_file(source: Source) -> Steps[Imported]:
    """Imports an export file of any size, JSON or YAML by its suffix; the same as `memory_import`."""
    path = source.path
    shape: Format = "yaml" if path.suffix in {".yaml", ".yml"} else "json"
    try:
        result = yield from _import_steps(Import("import", "", shape), _content(path, shape))
    except OSError as error:
        raise Fault("invalid", f"Cannot read {path.name}: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise Fault("invalid", f"{path.name} is not text in UTF-8.") from None
    except Fault as fault:
        if fault.label != faults.ROLLED_BACK:
            raise
        raise Fault("invalid", f"{path.name} was not imported: {fault.message}") from None
    if not result.success:
        raise Fault("invalid", f"{path.name} is no export: {result.errors[0].error}")
    counts = {"created": result.created, "updated": result.updated, "skipped": result.skipped}
    return Imported(counts, [f"{left.entry}: {left.error}" for left in result.errors])


def _content(path: Path, shape: Format) -> str | mmap:
    """Return the content of a file; JSON is mapped, so that a large file takes no memory."""
    if shape == "yaml" or not path.stat().st_size:
        return path.read_text(encoding="utf-8")
    with path.open("rb") as file:
        return mmap(file.fileno(), 0, access=ACCESS_READ)


def _checked_scope_id(tx: Tx, source: str, target: TargetScope) -> str | None:
    field = f"scopeMapping.{source}"
    if "\0" in source or "\0" in (target.id or ""):
        raise faults.invalid("scopeMapping", "must not hold NUL characters")
    scope_id = required_scope_id(target.type, target.id, f"{field}.id")
    check_scope(tx, target.type, scope_id, f"{field}.id")
    return scope_id


def _max_separators(tx: Tx, request: Import) -> int | None:
    """Return how many separators the document of a request may hold; None for a file of the import command."""
    if tx.call_context.tool != "memory_import":
        return None
    _, limit = MAX_SEPARATORS.get(request.format or "json", ("", 0))
    return max(limit, len(request.content) // _CHARACTERS_PER_SEPARATOR)


def _problems(document: Mapping[str, Any]) -> list[LeftOut]:
    kinds = [kind.plural for kind in KINDS.values()]
    unknown = document["entries"].keys() - set(kinds)
    return [LeftOut(f"entries.{name}", f"no such kind of entries: {', '.join(kinds)}") for name in sorted(unknown)]


def _read(content: str | mmap, shape: Format, limit: int | None) -> dict[str, Any] | LeftOut:
    """Return the document, its entries as lists by kind; its problem for content that is none."""
    if shape == "markdown":
        return LeftOut("parsing", "Markdown import not supported. Please use JSON or YAML format for import.")
    if limit is not None and sum(str(content).count(mark) for mark in MAX_SEPARATORS[shape][0]) > limit:
        return LeftOut("parsing", _TOO_LARGE)
    if limit is not None and shape == "json" and is_of_long_numbers(str(content).encode()):
        return LeftOut("parsing", _TOO_LARGE)
    try:
        if shape == "yaml":
            data: Any = yaml.read(str(content), limit and limit * _NODES_PER_SEPARATOR)
        else:
            data = _read_json(content)
    except _DECODE_ERRORS as error:
        return LeftOut("parsing", f"Not readable as {shape.upper()}: {error}")
    lists = as_object(data).get("entries")
    if not isinstance(lists, dict):
        return LeftOut("structure", "Missing entries object")
    return _structure_problem(as_object(data)) or as_object(data)


def _structure_problem(document: Mapping[str, Any]) -> LeftOut | None:
    version = str(document.get("version", FORMAT))
    if version.partition(".")[0] != FORMAT.partition(".")[0]:
        return LeftOut("version", f"{version} is not read, only {FORMAT}")
    for kind in KINDS.values():
        if not isinstance(document["entries"].get(kind.plural, []), list | None):
            return LeftOut("structure", f"entries.{kind.plural} is not a list")
    return None


def _read_json(content: str | mmap) -> Any:
    """Return a document whose entries are still JSON, each for itself: decoded, they take many times the memory."""
    parts = _members(content)
    if not isinstance(parts, dict):
        return None
    document = {name: msgspec.json.decode(part) for name, part in parts.items() if name != "entries"}
    lists = _members(parts["entries"]) if "entries" in parts else None
    return {**document, "entries": lists and {name: _items(part) for name, part in lists.items()}}


def _members(content: str | mmap | msgspec.Raw) -> dict[str, msgspec.Raw] | None:
    try:
        return msgspec.json.decode(content, type=dict[str, msgspec.Raw])
    except msgspec.ValidationError:
        return None


def _items(part: msgspec.Raw) -> list[msgspec.Raw] | Literal[False] | None:
    try:
        return msgspec.json.decode(part, type=list[msgspec.Raw] | None)
    except msgspec.ValidationError:
        return False


def _import_result(problems: list[LeftOut], state: ImportState | None, *, dry_run: bool = False) -> ImportResult:
    zero = dict.fromkeys(OUTCOMES, 0)
    details = {kind.plural: ImportCounts(**(state.counts[kind.plural] if state else zero)) for kind in KINDS.values()}
    created, updated, skipped = (sum(getattr(counts, name) for counts in details.values()) for name in OUTCOMES)
    success = state is not None and (not problems or created + updated + skipped > 0)
    return ImportResult(success, created, updated, skipped, problems, details, True if dry_run else UNSET)


def _strict_refusal(state: ImportState) -> Fault:
    """Return the fault of a strict import, with the first reasons; raising it rolls the import back."""
    problems = [*state.conflicts, *state.problems]
    context = {
        "field": "content",
        "errors": [asdict(problem) for problem in problems[:MAX_REASONS_SHOWN]],
        "count": len(problems),
    }
    reasons = _reasons(problems)
    if state.conflicts:
        return Fault("conflict", f"Nothing was imported, {reasons}", faults.EXISTS, context)
    return Fault("invalid", f"Nothing was imported, {reasons}", faults.MISSING, context)


def _reasons(problems: Sequence[LeftOut]) -> str:
    if not problems:
        return ""
    return f"{problems[0].entry}: {problems[0].error}" + (
        f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    )


IMPORT = import_records.Import(
    "memory-export", "a file that memory_export wrote, JSON or YAML by its ending", import_file
)

TOOLS: tuple[tools.Tool, ...] = (
    tools.read(memory_export, tools.Hints("Export"), permission={"export": "read"}, audited=True),
    tools.exclusive(memory_import, tools.Hints("Import", destructive=True), permission={"import": "admin"}, long=True),
)
