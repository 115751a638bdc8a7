"""Results that do not change while a server runs, encoded once per profile: lists, discovery, the handshake."""

import hashlib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import msgspec

from kernel.calls.dialect import Dialect
from kernel.calls.dispatch import ToolEntry
from kernel.calls.schema import input_schema, output_schema
from kernel.calls.tools import Prompt, Resource, ResourceContents, Resources, ResourceTemplate, Skill, Tool
from kernel.core.config import VERSION
from kernel.mcp import messages
from kernel.mcp.messages import LEGACY, METHODS, Era, Object
from kernel.mcp.strict_schemas import strict_schema
from kernel.store.transaction import Tx

SKILLS_EXTENSION = "io.modelcontextprotocol/skills"
_SCHEME = "skill://"
_ENTRY = "SKILL.md"
_MEDIA = "text/markdown"
_KEPT = 1024  # encoded tools: a few times all that there are


def skills_of(dialects: Sequence[Dialect]) -> tuple[Skill, ...]:
    return tuple(skill for dialect in dialects for skill in dialect.offers.skills)


def skill_entries(skills: Sequence[Skill]) -> Mapping[str, Object]:
    """Return each skill as `skills/list` and `skills/get` say it, by the URI of its SKILL.md."""
    return {f"{_SCHEME}{skill.name}/{_ENTRY}": _entry(skill) for skill in skills}


def with_skill_files(dialect: Dialect) -> Dialect:
    def page(_tx: Tx, _cursor: str | None) -> tuple[list[Resource], str | None]:
        return [
            Resource(_uri(skill, path), path, f"{skill.name}/{path}", "", _MEDIA, len(data))
            for skill in dialect.offers.skills
            for path, data in skill.files.items()
        ], None

    def read(_tx: Tx, uri: str) -> list[ResourceContents] | None:
        files = {_uri(skill, path): data for skill in dialect.offers.skills for path, data in skill.files.items()}
        return [ResourceContents(uri, _MEDIA, files[uri].decode())] if uri in files else None

    return dialect._replace(offers=dialect.offers._replace(resources=Resources(_SCHEME, page, read, fixed=True)))


def _entry(skill: Skill) -> Object:
    return {
        "uri": _uri(skill, _ENTRY),
        "frontmatter": {"name": skill.name, "description": skill.about, "license": skill.license},
        "resources": [
            {
                "uri": _uri(skill, path),
                "digest": f"sha256:{hashlib.sha256(data).hexdigest()}",
                "size": len(data),
                "mimeType": _MEDIA,
            }
            for path, data in skill.files.items()
        ],
    }


def _uri(skill: Skill, path: str) -> str:
    return f"{_SCHEME}{skill.name}/{path}"


NAME = "quipu"
VIEWS = "io.modelcontextprotocol/ui"  # the extension for MCP Apps
WHEN_TO_RECALL = (
    "Search the memories before work that may rest on earlier decisions, and when the user refers to something said "
    "before."
)
WHEN_TO_STORE = (
    "Store what a later conversation will need: decisions with their reasons, preferences, facts about people and "
    "projects, corrections. One fact a memory; replace a memory that is no longer true; no passwords or keys."
)
# Accepted, without effect if there is no session to which they could apply later.
_ACKNOWLEDGED = ("ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe")


class ResultTails(NamedTuple):
    """The end of a message in one era, in place of the closing brace of its result.

    `plain` for most results, `fresh` for those that must not be cached, `fixed` for those that stay the same, `asking`
    for `input_required`.
    """

    plain: bytes
    fresh: bytes
    fixed: bytes
    asking: bytes


SERVER: Object = {"name": NAME, "title": "Quipu", "version": VERSION}


def result_tails(era: Era) -> ResultTails:
    """Return the tails of an era: the modern ones add the result type and `serverInfo`, the legacy ones nothing."""
    plain, fresh, fixed = (_tail(era, cache) for cache in ("", "fresh", "static"))
    return ResultTails(plain, fresh, fixed, _tail(era, "", "input_required"))


def close(result: Object, tail: bytes) -> bytes:
    """Return an encoded result that ends with `tail` in place of its closing brace."""
    body = msgspec.json.encode(result)[:-1]
    return body + (tail if len(body) > 1 else tail.removeprefix(b","))


def static_results(
    era: Era,
    entries: Sequence[ToolEntry],
    dialects: Sequence[Dialect],
    cache: messages.Cache = "static",
    *,
    strict: bool = False,
) -> Mapping[str, bytes]:
    """Return the encoded results by method that are the same for every caller with the same grant."""
    tail, tools = _tail(era, cache), [entry.tool for entry in entries]
    served = capabilities(tools, dialects)
    entry = {"tools/list": close({"tools": [_encoded(entry, strict) for entry in entries]}, tail)}
    if era is LEGACY:
        entry |= {name: close({}, _tail(era, "")) for name in _ACKNOWLEDGED if METHODS[name].needs in ("", *served)}
    else:
        # A request of this era asks for log messages by itself: there is no capability to declare.
        declared = {name: value for name, value in served.items() if name != "logging"}
        body = {
            "supportedVersions": list(messages.MODERN_VERSIONS),
            "capabilities": {**declared, "resources": {"subscribe": True}} if subscribable(dialects) else declared,
            **_instructions(tools, dialects),
        }
        entry["server/discover"] = close(body, tail)
    if "prompts" in served:
        entry["prompts/list"] = close({"prompts": [prompt_entry(p) for d in dialects for p in d.offers.prompts]}, tail)
    if offered := skill_entries(skills_of(dialects)):
        entry["skills/list"] = close({"skills": [*offered.values()]}, tail)
    if "resources" in served:
        templates = [template_entry(t) for d in dialects if d.offers.resources for t in d.offers.resources.templates]
        entry["resources/templates/list"] = close({"resourceTemplates": templates}, tail)
    return entry


def handshakes(tools: Sequence[Tool], dialects: Sequence[Dialect]) -> Mapping[str, bytes]:
    """Return the result of `initialize` by requested version; any other version gets the result of COUNTER_OFFER."""
    offered = capabilities(tools, dialects)
    if "resources" in offered:
        offered["resources"] = {"subscribe": True}
    shared = {"capabilities": offered, "serverInfo": SERVER, **_instructions(tools, dialects)}
    plain = _tail(LEGACY, "")
    assert messages.COUNTER_OFFER in messages.HANDSHAKE_VERSIONS
    return {offer: close({"protocolVersion": offer, **shared}, plain) for offer in messages.HANDSHAKE_VERSIONS}


def capabilities(tools: Sequence[Tool], dialects: Sequence[Dialect]) -> Object:
    """Return the server's capabilities for these dialects; logging only if some tool is interactive."""
    offered: list[tuple[str, bool]] = [
        ("completions", any(dialect.offers.complete for dialect in dialects)),
        ("logging", any(tool.interactive for tool in tools)),
        ("prompts", any(dialect.offers.prompts for dialect in dialects)),
        ("resources", any(dialect.offers.resources or dialect.offers.skills for dialect in dialects)),
        ("tools", True),
    ]
    offers: Object = {name: {} for name, present in offered if present}
    extensions = [
        *([VIEWS] if any(tool.hints.view for tool in tools) else ()),
        *([SKILLS_EXTENSION] if skills_of(dialects) else ()),
    ]
    return {**offers, "extensions": {name: {} for name in extensions}} if extensions else offers


def subscribable(dialects: Sequence[Dialect]) -> frozenset[str]:
    return frozenset(
        dialect.offers.resources.whole
        for dialect in dialects
        if dialect.offers.resources and dialect.offers.resources.whole
    )


@lru_cache(_KEPT)
def _encoded(entry: ToolEntry, strict: bool) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(tool_entry(entry.tool, strict=strict)))


def tool_entry(tool: Tool, *, strict: bool = False) -> Object:
    hints: Object = {"readOnlyHint": tool.mode == "read", "openWorldHint": False}
    if tool.mode != "read":
        hints |= {"destructiveHint": tool.hints.destructive, "idempotentHint": tool.hints.idempotent}
    returns = output_schema(tool) if tool.hints.typed else None
    return {
        "name": tool.name,
        **_described(tool.hints.title, tool.description),
        "inputSchema": strict_schema(input_schema(tool)) if strict else input_schema(tool),
        **({"outputSchema": returns} if returns else {}),
        "annotations": hints,
        **_shown_by(tool.hints.view),
    }


def _shown_by(view: str) -> Object:
    """Return the metadata of the extension for MCP Apps on a tool, in its own form and in the one that was replaced
    in 2026.
    """
    return {"_meta": {"ui": {"resourceUri": view}, "ui/resourceUri": view}} if view else {}


def prompt_entry(prompt: Prompt) -> Object:
    arguments = [{"name": a.name, **_described("", a.about), "required": a.required} for a in prompt.arguments]
    return {"name": prompt.name, **_described(prompt.title, prompt.about), "arguments": arguments}


def template_entry(template: ResourceTemplate) -> Object:
    entry = _described(template.title, template.about)
    return {"uriTemplate": template.pattern, "name": template.name, **entry, "mimeType": template.media}


def resource_entry(resource: Resource) -> Object:
    entry: Object = {"uri": resource.uri, "name": resource.name, **_described(resource.title, resource.about)}
    entry["mimeType"] = resource.media
    if resource.size is not None:
        entry["size"] = resource.size
    if resource.modified is not None:
        entry["annotations"] = {"lastModified": resource.modified}
    return entry


def _described(title: str, about: str) -> Object:
    return {key: text for key, text in (("title", title), ("description", about)) if text}


def _instructions(tools: Sequence[Tool], dialects: Sequence[Dialect]) -> Object:
    about = [f"{dialect.name}: {dialect.guide or dialect.about}" for dialect in dialects if dialect.about]
    when = [WHEN_TO_RECALL, *([WHEN_TO_STORE] if any(tool.mode != "read" for tool in tools) else ())]
    return {"instructions": "\n\n".join([" ".join(when), *about])} if about else {}


def _tail(era: Era, cache: messages.Cache, kind: str = "complete") -> bytes:
    if era is LEGACY:
        return b"}}"
    end = {"resultType": kind, **messages.CACHES[cache], "_meta": {messages.SERVER_KEY: SERVER}}
    return b"," + msgspec.json.encode(end)[1:] + b"}"
