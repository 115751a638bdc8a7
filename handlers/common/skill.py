"""The Agent Skill of Quipu: files that MCP serves, and that the plugins of clients hold."""

from pathlib import Path

from kernel.calls.resources import Skill

_FOLDER = Path(__file__).parent / "skills" / "quipu-memory"
_ENTRY = "SKILL.md"
_LICENSE = "Apache-2.0"


def load_skill() -> Skill:
    """Return the skill as it stands in its folder, SKILL.md first."""
    files = {path.relative_to(_FOLDER).as_posix(): path.read_bytes() for path in sorted(_FOLDER.rglob("*.md"))}
    about = next(line for line in files[_ENTRY].decode().splitlines() if line.startswith("description: "))
    return Skill(_FOLDER.name, about.removeprefix("description: "), _LICENSE, files)


SKILL = load_skill()
