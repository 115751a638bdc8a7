"""Request types of memory_tool, memory_guideline and memory_knowledge (seed 000): six actions each."""

from typing import Annotated, Any, ClassVar

from msgspec import Meta, Struct, field

from handlers.scopes.field_types import AsOf, Id, Label, Limit, Name, NonEmptyText, Object, Offset, ScopeId, Text, Time
from handlers.scopes.inheritance import ScopeType

ToolCategory = Annotated[Label | None, Meta(description="mcp, cli, function, api or another word")]
KnowledgeCategory = Annotated[Label | None, Meta(description="decision, fact, context, reference or another word")]
GuidelineCategory = Annotated[Label | None, Meta(description="code_style, behavior, security, etc.")]
Category = Annotated[Label | None, Meta(description="Only entries of this category")]
EntryId = Annotated[Id, Meta(description="Entry ID; get takes name (knowledge: title) with scopeType instead")]
ReadScope = Annotated[ScopeType | None, Meta(description="Scope to read; get by name needs it")]

Creator = Annotated[Label | None, Meta(description="Creator identifier")]
Updater = Annotated[Label | None, Meta(description="Who makes the change")]
ChangeReason = Annotated[Text | None, Meta(description="Why it is changed")]
ExpectedVersion = Annotated[
    Annotated[int, Meta(ge=1, le=2**53)] | None,
    Meta(description="versionNum the change is based on; if it is no longer the current one, the update is refused"),
]
Priority = Annotated[int, Meta(ge=0, le=100)]
Confidence = Annotated[float, Meta(ge=0, le=1)]
Description = Annotated[Text | None, Meta(description="What the tool is for")]
Parameters = Annotated[Object | None, Meta(description="Parameter schema")]
ToolExamples = Annotated[list[Any] | None, Meta(description="Usage examples")]
Constraints = Annotated[Text | None, Meta(description="Usage guidelines")]
Content = Annotated[NonEmptyText, Meta(description="The text itself")]
Rationale = Annotated[Text | None, Meta(description="Why this guideline exists")]
Examples = Annotated[Object | None, Meta(description="{good: [...], bad: [...]}")]
Source = Annotated[Text | None, Meta(description="Where this knowledge came from")]
ValidUntil = Annotated[
    Time | None, Meta(description="Expiration time (ISO 8601); a date counts to its end. Empty: none")
]
EntryScope = Annotated[ScopeType, Meta(description="Scope the entry belongs to")]
ByName = Annotated[Name | None, Meta(description="Instead of id, with scopeType")]
Inherit = Annotated[
    bool | None, Meta(description="Parent scopes too, the nearest of a name first (get: default true, list: false)")
]
IncludeInactive = Annotated[bool | None, Meta(description="Deactivated entries too")]


class AddTool(Struct, tag="add", tag_field="action", forbid_unknown_fields=True, rename="camel"):
    scope_type: EntryScope
    name: Annotated[Name, Meta(description="Name, unique within its scope")]
    scope_id: ScopeId = None
    category: ToolCategory = None
    description: Description = None
    parameters: Parameters = None
    examples: ToolExamples = None
    constraints: Constraints = None
    created_by: Creator = None


class AddGuideline(Struct, tag="add", tag_field="action", forbid_unknown_fields=True, rename="camel"):
    scope_type: EntryScope
    name: Annotated[Name, Meta(description="Name, unique within its scope")]
    content: Content
    scope_id: ScopeId = None
    category: GuidelineCategory = None
    priority: Annotated[Priority | None, Meta(description="0-100, higher is more important (add: 50 if left out)")] = 50
    rationale: Rationale = None
    examples: Examples = None
    created_by: Creator = None


class AddKnowledge(Struct, tag="add", tag_field="action", forbid_unknown_fields=True, rename="camel"):
    scope_type: EntryScope
    name: Annotated[Name, Meta(description="Title, unique within its scope")] = field(name="title")
    content: Content
    scope_id: ScopeId = None
    category: KnowledgeCategory = None
    source: Source = None
    confidence: Annotated[Confidence | None, Meta(description="0-1, how certain (add: 1.0 if left out)")] = 1.0
    valid_until: ValidUntil = None
    created_by: Creator = None


class UpdateTool(Struct, tag="update", tag_field="action", forbid_unknown_fields=True, rename="camel"):
    id: EntryId
    description: Description = None
    parameters: Parameters = None
    examples: ToolExamples = None
    constraints: Constraints = None
    change_reason: ChangeReason = None
    updated_by: Updater = None
    expected_version: ExpectedVersion = None


class UpdateGuideline(Struct, tag="update", tag_field="action", forbid_unknown_fields=True, rename="camel"):
    id: EntryId
    category: GuidelineCategory = None
    priority: Priority | None = None
    content: NonEmptyText | None = None
    rationale: Rationale = None
    examples: Examples = None
    change_reason: ChangeReason = None
    updated_by: Updater = None
    expected_version: ExpectedVersion = None


class UpdateKnowledge(Struct, tag="update", tag_field="action", forbid_unknown_fields=True, rename="camel"):
    id: EntryId
    category: KnowledgeCategory = None
    content: NonEmptyText | None = None
    source: Source = None
    confidence: Confidence | None = None
    valid_until: ValidUntil = None
    change_reason: ChangeReason = None
    updated_by: Updater = None
    expected_version: ExpectedVersion = None


class GetEntry(Struct, tag="get", tag_field="action", forbid_unknown_fields=True, rename="camel"):
    needs: ClassVar[str] = "id, or name with scopeType"

    id: EntryId | None = None
    name: ByName = None
    scope_type: ReadScope = None
    scope_id: ScopeId = None
    inherit: Inherit = True
    as_of: AsOf = None


class GetKnowledge(GetEntry):
    needs: ClassVar[str] = "id, or title with scopeType"

    name: ByName = field(default=None, name="title")


class ListEntries(Struct, tag="list", tag_field="action", forbid_unknown_fields=True, rename="camel"):
    scope_type: ReadScope = None
    scope_id: ScopeId = None
    category: Category = None
    include_inactive: IncludeInactive = False
    inherit: Inherit = False
    limit: Limit = 20
    offset: Offset = 0


class ListVersions(Struct, tag="history", tag_field="action", forbid_unknown_fields=True, rename="camel"):
    id: EntryId
    as_of: AsOf = None


class DeactivateEntry(Struct, tag="deactivate", tag_field="action", forbid_unknown_fields=True, rename="camel"):
    id: EntryId


Add = AddTool | AddGuideline | AddKnowledge
Update = UpdateTool | UpdateGuideline | UpdateKnowledge
ToolRequest = AddTool | UpdateTool | GetEntry | ListEntries | ListVersions | DeactivateEntry
GuidelineRequest = AddGuideline | UpdateGuideline | GetEntry | ListEntries | ListVersions | DeactivateEntry
KnowledgeRequest = AddKnowledge | UpdateKnowledge | GetKnowledge | ListEntries | ListVersions | DeactivateEntry
READ_ARMS = (GetEntry, GetKnowledge, ListEntries, ListVersions)
KEPT_ARMS = (UpdateTool, UpdateGuideline, UpdateKnowledge, DeactivateEntry)
