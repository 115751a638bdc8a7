"""`make plugin` writes folders that clients take: manifests, hooks, and the skill that the server serves."""

import json
import runpy
from pathlib import Path

import pytest

from handlers.common.prompts import SKILL
from kernel.cli.hook_files import events_of, own
from kernel.core.config import VERSION
from tests.reliability.server_process import ROOT


@pytest.fixture
def plugins(tmp_path: Path) -> Path:
    runpy.run_path(str(ROOT / ".ci" / "plugin" / "build.py"))["main"](tmp_path)
    return tmp_path


def test_both_folders_hold_manifest_hooks_and_skill(plugins: Path) -> None:
    files = {path.relative_to(plugins).as_posix() for path in plugins.rglob("*") if path.is_file()}
    skill = {f"skills/{SKILL.name}/{name}" for name in SKILL.files}
    assert files == {
        *(f"quipu/{name}" for name in skill),
        *(f"quipu-gemini/{name}" for name in skill),
        "quipu/.claude-plugin/plugin.json",
        "quipu/.codex-plugin/plugin.json",
        "quipu/.mcp.json",
        "quipu/hooks/hooks.json",
        "quipu-gemini/gemini-extension.json",
        "quipu-gemini/hooks/hooks.json",
    }
    for name, data in SKILL.files.items():
        assert (plugins / "quipu" / "skills" / SKILL.name / name).read_bytes() == data


def test_manifests_name_the_version_and_hooks_the_events(plugins: Path) -> None:
    for manifest in ("quipu/.claude-plugin/plugin.json", "quipu-gemini/gemini-extension.json"):
        found = json.loads((plugins / manifest).read_text(encoding="utf-8"))
        assert (found["name"], found["version"]) == ("quipu", VERSION)
    hooks = own((plugins / "quipu/hooks/hooks.json").read_text(encoding="utf-8"))
    assert events_of(hooks) == ["session-start", "post-compact"]
    assert events_of(own((plugins / "quipu-gemini/hooks/hooks.json").read_text(encoding="utf-8"))) == ["session-start"]
