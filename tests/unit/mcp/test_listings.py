"""Lists that do not change while a server runs: skills with their files, capabilities, the handshake."""

import hashlib
import json

from handlers import common, paths
from kernel.calls.tools import Skill
from kernel.mcp import listings
from kernel.mcp.messages import HANDSHAKE_VERSIONS

TEXT = b"# Memory\nCaf\xc3\xa9.\n"
SKILL = Skill("memory", "When to remember.", "Apache-2.0", {"SKILL.md": TEXT, "more/list.md": b"- a\n"})
DIALECT = paths.DIALECT._replace(offers=paths.DIALECT.offers._replace(skills=(SKILL,)))


def test_a_skill_is_listed_with_the_digest_and_size_of_its_files() -> None:
    entries = listings.skill_entries(listings.skills_of([common.DIALECT._replace(offers=DIALECT.offers)]))
    entry = entries["skill://memory/SKILL.md"]
    assert [*entries] == ["skill://memory/SKILL.md"]
    assert entry["frontmatter"] == {"name": "memory", "description": "When to remember.", "license": "Apache-2.0"}
    assert [(part["uri"], part["size"]) for part in entry["resources"]] == [
        ("skill://memory/SKILL.md", len(TEXT)),
        ("skill://memory/more/list.md", 4),
    ]
    assert entry["resources"][0]["digest"] == f"sha256:{hashlib.sha256(TEXT).hexdigest()}"


def test_the_files_of_a_skill_are_read_as_resources() -> None:
    resources = listings.with_skill_files(DIALECT).offers.resources
    assert resources is not None
    (content,) = resources.read(None, "skill://memory/SKILL.md") or []  # type: ignore[arg-type]
    assert (content.media, content.data) == ("text/markdown", TEXT.decode())
    assert resources.read(None, "skill://memory/other.md") is None  # type: ignore[arg-type]


def test_capabilities_are_those_of_the_dialects() -> None:
    tools = common.DIALECT.tools
    assert "prompts" not in listings.capabilities(tools, [common.DIALECT._replace(offers=paths.DIALECT.offers)])
    assert "prompts" in listings.capabilities(tools, [common.DIALECT])


def test_every_version_of_the_handshake_has_a_result() -> None:
    results = listings.handshakes(common.DIALECT.tools, [common.DIALECT])
    assert tuple(results) == HANDSHAKE_VERSIONS
    for version, result in results.items():
        assert json.loads(result.removesuffix(b"}"))["protocolVersion"] == version
