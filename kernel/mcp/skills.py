"""Agent Skills over MCP, the extension of SEP-2640: a list of skills, and their files as resources."""

import hashlib
from collections.abc import Mapping, Sequence

from kernel.calls.dialect import Dialect
from kernel.calls.resources import Resource, ResourceContents, Resources, Skill
from kernel.mcp.messages import Object
from kernel.store.transaction import Tx

EXTENSION = "io.modelcontextprotocol/skills"
_SCHEME = "skill://"
_ENTRY = "SKILL.md"
_MEDIA = "text/markdown"


def of(dialects: Sequence[Dialect]) -> tuple[Skill, ...]:
    return tuple(skill for dialect in dialects for skill in dialect.offers.skills)


def entries(skills: Sequence[Skill]) -> Mapping[str, Object]:
    """Return each skill as `skills/list` and `skills/get` say it, by the URI of its SKILL.md."""
    return {f"{_SCHEME}{skill.name}/{_ENTRY}": _entry(skill) for skill in skills}


def with_files(dialect: Dialect) -> Dialect:
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
