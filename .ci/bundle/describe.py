"""Describes a release for those who install it: the folder of an MCP bundle, and server.json for the MCP registry.

Usage: describe.py bundle WHEEL FOLDER | describe.py server BUNDLE FILE. Both come from pyproject.toml and the tools
themselves. NAMESPACE is the name the registry knows the publisher by, io.github.USER for one who publishes from GitHub.
"""

import hashlib
import json
import os
import shutil
import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from kernel.server import app  # noqa: E402

SCHEMA = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
NAMESPACE = os.environ.get("NAMESPACE") or "io.github.quipu-memory"
TITLE, TAGLINE = "Quipu", "The memory that AI agents share: one small server, one SQLite file"
START = 'import sys\n\nfrom quipu_memory.__main__ import main\n\nsys.argv[1:] = ["stdio"]\nmain()\n'


def project() -> dict[str, Any]:
    """What pyproject.toml says of the package."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def repository() -> str:
    """Where releases are, from the namespace of a publisher on GitHub."""
    return f"https://github.com/{NAMESPACE.rpartition('.')[2]}/quipu"


def manifest() -> dict[str, Any]:
    """The manifest of the bundle, of version 0.4, the first with servers that the host installs by uv."""
    told = project()
    return {
        "manifest_version": "0.4",
        "name": told["name"],
        "display_name": TITLE,
        "version": told["version"],
        "description": TAGLINE,
        "author": {"name": TITLE},
        "repository": {"type": "git", "url": repository()},
        "license": told["license"],
        "keywords": told["keywords"],
        "server": {
            "type": "uv",
            "entry_point": "server.py",
            "mcp_config": {
                "command": "uv",
                "args": ["run", "--directory", "${__dirname}", "--no-dev", "server.py"],
                "env": {"QUIPU_DIALECTS": "${user_config.dialects}"},
            },
        },
        "user_config": {
            "dialects": {
                "type": "string",
                "title": "Tool sets",
                "description": f"All, or some of {', '.join(dialect.name for dialect in app.DIALECTS)}, with commas",
                "required": False,
                "default": "",
            }
        },
        "tools": [{"name": tool.name, "description": tool.description} for one in app.UNION for tool in one.tools],
        "compatibility": {
            "platforms": ["darwin", "win32", "linux"],
            "runtimes": {"python": told["requires-python"]},
        },
    }


def environment(wheel: str) -> str:
    """The pyproject.toml inside the bundle: the wheel beside it, and nothing else of ours."""
    told = project()
    return "\n".join(
        (
            "[project]",
            'name = "quipu-bundle"',
            f'version = "{told["version"]}"',
            f'requires-python = "{told["requires-python"]}"',
            f'dependencies = ["{told["name"]}"]',
            "",
            "[tool.uv]",
            "package = false",
            "",
            "[tool.uv.sources]",
            f'{told["name"]} = {{ path = "{wheel}" }}',
            "",
        )
    )


def bundle(wheel: Path, folder: Path) -> None:
    """Fills a new folder with what the bundle holds."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    shutil.copy(wheel, folder)
    shutil.copy(ROOT / "LICENSE", folder)
    (folder / "manifest.json").write_text(json.dumps(manifest(), indent=2) + "\n", encoding="utf-8")
    (folder / "pyproject.toml").write_text(environment(wheel.name), encoding="utf-8")
    (folder / "server.py").write_text(START, encoding="utf-8")


def server(packed: Path) -> dict[str, Any]:
    """What the registry is told: the package on PyPI, and the packed bundle as a file of the release."""
    told = project()
    version = told["version"]
    return {
        "$schema": SCHEMA,
        "name": f"{NAMESPACE}/quipu",
        "title": TITLE,
        "description": TAGLINE,
        "version": version,
        "repository": {"url": repository(), "source": "github"},
        "packages": [
            {
                "registryType": "pypi",
                "identifier": told["name"],
                "version": version,
                "runtimeHint": "uvx",
                "transport": {"type": "stdio"},
                "packageArguments": [{"type": "positional", "value": "stdio"}],
                "environmentVariables": [
                    {"name": "QUIPU_DATA", "description": "Folder of the database", "format": "filepath"},
                    {"name": "QUIPU_DIALECTS", "description": "Some tool sets instead of all, with commas"},
                ],
            },
            {
                "registryType": "mcpb",
                "identifier": f"{repository()}/releases/download/v{version}/{packed.name}",
                "fileSha256": hashlib.sha256(packed.read_bytes()).hexdigest(),
                "transport": {"type": "stdio"},
            },
        ],
    }


def main(what: str, source: Path, target: Path) -> None:
    """Writes one of the two."""
    if what == "bundle":
        bundle(source, target)
    else:
        target.write_text(json.dumps(server(source), indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
