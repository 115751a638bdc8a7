"""An export as a Markdown page for people; no text of an entry can change its structure."""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from handlers.scopes.entry_kinds import KINDS, Kind
from kernel.core.lazy_regex import regex

_SPECIAL = regex(r"([\\`*\[\]<>#&~|]|(?<![^\W_])_|_(?![^\W_]))")
_LINE_END = regex(r"\r\n|\r|\n")
_CONTROLS = regex(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_BACKTICKS = regex(r"`+")
_TEXT_FIELDS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "tool": (("description", "Description"), ("constraints", "Constraints")),
    "guideline": (("content", "Content"), ("rationale", "Rationale")),
    "knowledge": (("content", "Content"), ("source", "Source")),
}
_JSON_FIELDS = (("parameters", "Parameters"), ("examples", "Examples"))


def render_page(document: Mapping[str, Any]) -> str:
    """Return the document as Markdown: names and labels escaped, texts as quotations, data as fenced JSON."""
    entries: Mapping[str, list[dict[str, Any]]] = document["entries"]
    metadata: Mapping[str, Any] = document["metadata"]
    lines = [
        "# Agent Memory Export",
        "",
        f"**Exported:** {document['exportedAt']}",
        f"**Entries:** {sum(len(items) for items in entries.values())}",
    ]
    if "scopeType" in metadata or "scopeId" in metadata:
        lines.append(
            f"**Scope:** {_escaped(' / '.join(metadata[key] for key in ('scopeType', 'scopeId') if key in metadata))}"
        )
    for kind in KINDS.values():
        if items := entries[kind.plural]:
            lines += ["", f"## {kind.plural.capitalize()} ({len(items)})"]
            for item in items:
                lines += ["", *_entry(kind, item)]
    return "\n".join(lines) + "\n"


def _entry(kind: Kind, item: Mapping[str, Any]) -> Iterator[str]:
    current: Mapping[str, Any] = item["currentVersion"]
    yield f"### {_escaped(item[kind.name_field])}"
    yield ""
    yield from (f"- **{label}:** {value}" for label, value in _properties(item, current))
    for field, label in _TEXT_FIELDS[kind.name]:
        if current[field]:
            yield from ("", f"**{label}:**", "", *_quotation(current[field]))
    for field, label in _JSON_FIELDS:
        if current.get(field):
            yield from ("", f"**{label}:**", "", *_json_block(current[field]))
    if item.get("versions"):
        yield from ("", "**Versions:**", "", *(_version_line(version) for version in item["versions"]))


def _properties(item: Mapping[str, Any], current: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    scope = item["scopeType"] if item["scopeId"] is None else f"{item['scopeType']} / {item['scopeId']}"
    yield "ID", _code_span(item["id"])
    yield "Scope", _escaped(scope)
    if not item["isActive"]:
        yield "Inactive since", item["deactivatedAt"] or ""
    if "priority" in item:
        yield "Priority", str(item["priority"])
    if item["category"]:
        yield "Category", _escaped(item["category"])
    if item["tags"]:
        yield "Tags", ", ".join(_code_span(tag) for tag in item["tags"])
    if "confidence" in current:
        yield "Confidence", str(current["confidence"])
    if current.get("validUntil"):
        yield "Valid until", _escaped(current["validUntil"])
    for link in item["relations"]:
        yield (
            "Relation",
            f"{_escaped(link['relationType'])} {_escaped(link['targetType'])} {_code_span(link['targetId'])}",
        )


def _version_line(version: Mapping[str, Any]) -> str:
    parts = [f"{version['versionNum']}", version["createdAt"], version["createdBy"], version["changeReason"]]
    return "- " + ", ".join(_escaped(part) for part in parts if part)


def _escaped(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", _CONTROLS.sub(" ", text)).strip() or "\\_"


def _code_span(text: str) -> str:
    """Return text as a code span, with a fence longer than any run of backticks in it."""
    plain = _CONTROLS.sub(" ", text)
    fence = "`" * (max(map(len, _BACKTICKS.findall(plain)), default=0) + 1)
    # CommonMark strips one space from both ends of a code span that has them.
    pad = " " if plain[:1] in {"`", " ", ""} or plain[-1:] in {"`", " "} else ""
    return f"{fence}{pad}{plain}{pad}{fence}"


def _quotation(text: str) -> list[str]:
    return [f"> {line}" if line else ">" for line in _LINE_END.split(text)]


def _json_block(value: Any) -> list[str]:
    """Return data as fenced JSON; strings in it hold no line breaks, so no line can begin with a fence."""
    json_text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    return ["```json", *json_text.split("\n"), "```"]
