"""The description of a release for those who install it: the manifest of the bundle, and server.json."""

import hashlib
import importlib.util
import json
import tomllib
from pathlib import Path
from types import ModuleType

import jsonschema
import pytest

from kernel.core.config import VERSION
from kernel.server import app
from tests.reliability.server_process import ROOT

BUNDLE = ROOT / ".ci" / "bundle"


@pytest.fixture(scope="module")
def describe() -> ModuleType:
    spec = importlib.util.spec_from_file_location("describe", BUNDLE / "describe.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_registry_is_told_what_its_schema_asks_for(describe: ModuleType, tmp_path: Path) -> None:
    packed = tmp_path / f"quipu-{VERSION}.mcpb"
    packed.write_bytes(b"packed")
    describe.main("server", packed, tmp_path / "server.json")
    told = json.loads((tmp_path / "server.json").read_text())
    schema = json.loads((BUNDLE / "server.schema.json").read_text())
    jsonschema.validate(told, schema)
    wheel, bundle = told["packages"]
    assert (told["version"], wheel["version"], wheel["identifier"]) == (VERSION, VERSION, "quipu-memory")
    assert bundle["fileSha256"] == hashlib.sha256(b"packed").hexdigest()
    assert bundle["identifier"].endswith(f"/releases/download/v{VERSION}/{packed.name}")
    assert f"mcp-name: {told['name']} " in (ROOT / "README.md").read_text()
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**told, "description": "x" * 101}, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**told, "packages": [{**wheel, "transport": {"type": "pipe"}}]}, schema)


def test_the_bundle_holds_the_wheel_and_every_tool(describe: ModuleType, tmp_path: Path) -> None:
    wheel = tmp_path / f"quipu_memory-{VERSION}-py3-none-any.whl"
    wheel.write_bytes(b"wheel")
    describe.main("bundle", wheel, tmp_path / "bundle")
    held = {file.name: file.read_text() for file in (tmp_path / "bundle").iterdir()}
    assert set(held) == {"LICENSE", "manifest.json", "pyproject.toml", "server.py", wheel.name}
    told = json.loads(held["manifest.json"])
    assert [tool["name"] for tool in told["tools"]] == [tool.name for one in app.UNION for tool in one.tools]
    assert (told["version"], told["server"]["entry_point"]) == (VERSION, "server.py")
    assert tomllib.loads(held["pyproject.toml"])["tool"]["uv"]["sources"] == {"quipu-memory": {"path": wheel.name}}


def test_what_uvx_runs_is_a_command_of_the_package() -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert scripts["quipu-memory"] == scripts["quipu"]
