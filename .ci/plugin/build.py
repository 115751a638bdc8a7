"""Write the plugin folders for clients: python .ci/plugin/build.py [FOLDER], dist/plugin without one.

`quipu` is a plugin for Claude Code and Codex: the address of the server, hooks at the start of a session and after a
compaction, and the skill. `quipu-gemini` is an extension for Gemini CLI, which reads other names. All of it comes from
the files that the server itself uses; the command `quipu` has to be on the path.
"""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from kernel.cli.hook_files import HOOK_CLIENTS, entries  # noqa: E402  the path comes first
from kernel.core.config import DEFAULT_PORT, VERSION  # noqa: E402

ABOUT = "Memories that outlive a session, kept by a Quipu server on this machine"
SKILLS = ROOT / "handlers" / "common" / "skills"
URL = f"http://127.0.0.1:{DEFAULT_PORT}/mcp/paths,common"


def hooks(name: str) -> dict[str, Any]:
    """The hooks of a client at the level `prime`, as one line for a shell: Codex does not read `args`."""
    client = next(one for one in HOOK_CLIENTS if one.name == name)
    found = entries(client._replace(form="shell"), "prime", ["quipu"], [], "linux")
    return {"hooks": {event: [entry] for event, entry in found.items()}}


def write(folder: Path, files: dict[str, Any]) -> None:
    """A folder with these files as JSON, and the skill."""
    shutil.rmtree(folder, ignore_errors=True)
    for name, content in files.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    shutil.copytree(SKILLS, folder / "skills")


def main(target: Path) -> None:
    """Both folders."""
    about = {"name": "quipu", "version": VERSION, "description": ABOUT, "license": "Apache-2.0"}
    servers = {"mcpServers": {"quipu": {"type": "http", "url": URL}}}
    plugin = {
        ".claude-plugin/plugin.json": {**about, "author": {"name": "The Quipu authors"}, "keywords": ["memory", "mcp"]},
        ".codex-plugin/plugin.json": {**about, "skills": "./skills/", "mcpServers": "./.mcp.json"},
        ".mcp.json": servers,
        "hooks/hooks.json": hooks("claude-code"),
    }
    write(target / "quipu", plugin)
    extension = {**about, "mcpServers": {"quipu": {"httpUrl": URL}}}
    write(target / "quipu-gemini", {"gemini-extension.json": extension, "hooks/hooks.json": hooks("gemini-cli")})


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "dist" / "plugin")
