"""The results and errors of memory_export and memory_import, and the import command."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml as oracle

from kernel.cli import commands
from kernel.cli.main import parser
from kernel.core.config import Config
from kernel.core.errors import Fault
from tests.conftest import Call, Clock
from tests.support.handlers_scopes_export import add
from tests.unit.handlers.scopes.conftest import Do, ScopeIds, Store, exported, refused, result_of

NOW = "2026-01-02T03:04:05.678Z"
NOTHING = {"created": 0, "updated": 0, "skipped": 0}
DETAILS = {"tools": NOTHING, "guidelines": NOTHING, "knowledge": NOTHING}
EMPTY = '{"entries": {}}'


def test_export_returns_its_metadata(do: Do, clock: Clock, scope_ids: ScopeIds) -> None:
    add(do, "tool", "t", ("project", scope_ids.project))

    for shape in ("json", "yaml", "markdown", None):
        answer = do(
            "memory_export", "export", format=shape, scopeType="project", scopeId=scope_ids.project, types=["tools"]
        )
        content = answer.pop("content")
        assert answer == {
            "success": True,
            "format": shape or "json",
            "metadata": {
                "exportedAt": NOW,
                "entryCount": 1,
                "types": ["tools"],
                "scopeType": "project",
                "scopeId": scope_ids.project,
            },
        }
        assert NOW in content
    assert do("memory_export", "export")["metadata"] == {
        "exportedAt": NOW,
        "entryCount": 1,
        "types": ["tools", "guidelines", "knowledge"],
    }


def test_json_is_indented_and_yaml_is_equivalent(do: Do, clock: Clock, scope_ids: ScopeIds) -> None:
    add(do, "guideline", "a: b\n# c", ("session", scope_ids.session), examples={"good": ["x: y", "|", 1.0]})
    add(do, "tool", "t", parameters={"x" * 2000: {"- a": [[], {}, None, True]}})

    content = do("memory_export", "export", includeVersions=True)["content"]
    shown = do("memory_export", "export", includeVersions=True, format="yaml")["content"]

    document = json.loads(content)
    assert content == json.dumps(document, indent=2, ensure_ascii=False)
    assert shown.startswith("# Agent Memory Export\nversion: ")
    assert oracle.safe_load(shown) == document


@pytest.mark.parametrize(
    ("given", "fault", "code", "message", "field"),
    [
        ({}, "invalid", "E5001", "Unknown action for memory_export: undefined", "action"),
        ({"action": "import"}, "invalid", "E5001", "Unknown action for memory_export: import", "action"),
        ({"action": 7}, "invalid", "E5001", "Unknown action for memory_export: undefined", "action"),
        ({"types": ["tool"]}, "invalid", "E1000", "Validation error: types[0] - invalid enum value 'tool'", "types[0]"),
        ({"types": "tools"}, "invalid", "E1000", "Validation error: types - expected array, got string", "types"),
        ({"scopeType": "galaxy"}, "invalid", "E1001", "Validation error: scopeType - invalid enum value", "scopeType"),
        ({"scopeType": "org", "scopeId": "ghost"}, "not_found", "E2000", "Organization not found: ghost", "scopeId"),
        ({"scopeId": ""}, "invalid", "E1000", "Validation error: scopeId - must not be empty", "scopeId"),
        ({"scopeId": "a\0"}, "invalid", "E1000", "Validation error: scopeId - must not hold NUL", "scopeId"),
        ({"tags": ["a\0"]}, "invalid", "E1000", "Validation error: tags - must not hold NUL", "tags"),
        ({"tags": "a"}, "invalid", "E1000", "Validation error: tags - expected array", "tags"),
        ({"tags": [""]}, "invalid", "E1000", "Validation error: tags[0] - must not be empty", "tags[0]"),
        ({"format": "xml"}, "invalid", "E1000", "Validation error: format - invalid enum value 'xml'", "format"),
        ({"includeVersions": "yes"}, "invalid", "E1000", "Validation error: includeVersions - expected boolean", ""),
        ({"includeInactive": 1}, "invalid", "E1000", "Validation error: includeInactive - expected boolean", ""),
        ({"limit": 1}, "invalid", "E1000", "Validation error: limit - memory_export has no such parameter", "limit"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_bad_arguments_of_export_name_their_field(
    unchanged: Call, given: dict[str, Any], fault: str, code: str, message: str, field: str
) -> None:
    whole = given if "action" in given or not given else {"action": "export", **given}
    found = refused(unchanged("memory_export", **whole))

    assert found[:2] == (fault, code)
    assert found[2].startswith(message)
    assert found[3]["field"].startswith(field or next(iter(given)))


@pytest.mark.parametrize(
    ("given", "code", "message", "field"),
    [
        ({"action": None}, "E5001", "Unknown action for memory_import: undefined", "action"),
        ({"action": "export"}, "E5001", "Unknown action for memory_import: export", "action"),
        ({"content": None}, "E1000", "content is required", "content"),
        ({"content": ""}, "E1000", "content is required", "content"),
        ({"content": {}}, "E1000", "Validation error: content - expected string, got object", "content"),
        ({"content": EMPTY + "\0"}, "E1000", "Validation error: content - must not hold NUL characters", "content"),
        ({"format": "xml"}, "E1000", "Validation error: format - invalid enum value 'xml'", "format"),
        ({"conflictStrategy": "merge"}, "E1000", "Validation error: conflictStrategy - invalid enum", ""),
        ({"generateNewIds": "no"}, "E1000", "Validation error: generateNewIds - expected boolean, got string", ""),
        ({"importedBy": 7}, "E1000", "Validation error: importedBy - expected string, got integer", ""),
        ({"importedBy": "a\0b"}, "E1000", "Validation error: importedBy - must not hold NUL characters", ""),
        ({"scopeMapping": []}, "E1000", "Validation error: scopeMapping - expected object, got array", ""),
        ({"scopeMapping": {"global:": "x"}}, "E1000", "Validation error: scopeMapping[...] - expected object", ""),
        ({"scopeMapping": {"a\0:": {"type": "global"}}}, "E1000", "Validation error: scopeMapping - must not", ""),
        ({"scopeMapping": {"global:": {"type": "galaxy"}}}, "E1000", "Validation error: scopeMapping[...].type", ""),
        ({"scopeMapping": {"global:": {}}}, "E1000", "scopeMapping[...].type is required", ""),
        ({"scopeMapping": {"global:": {"type": "org"}}}, "E1000", "scopeMapping.global:.id is required for non-gl", ""),
        ({"scopeMapping": {"global:": {"type": "org", "id": "ghost"}}}, "E2000", "Organization not found: ghost", ""),
        ({"strategy": "skip"}, "E1000", "Validation error: strategy - memory_import has no such parameter", ""),
    ],
    ids=lambda value: str(value)[:40],
)
def test_bad_arguments_of_import_name_their_field(
    unchanged: Call, given: dict[str, Any], code: str, message: str, field: str
) -> None:
    found = refused(unchanged("memory_import", **({"action": "import", "content": EMPTY} | given)))

    assert found[1] == code
    assert found[2].startswith(message)
    assert found[3]["field"].startswith(field or next(iter(given)))


@pytest.mark.parametrize(
    ("content", "shape", "entry", "error"),
    [
        ("{", "json", "parsing", "Not readable as JSON: Input data was truncated"),
        ('{"entries": NaN}', "json", "parsing", "Not readable as JSON: "),
        ("[" * 5000, "json", "structure", "Missing entries object"),
        ('{"entries": ' + "[" * 5000, "json", "parsing", "Not readable as JSON: "),
        ('{"entries": {"tools": [{"name": "\\ud800"}]}}', "json", "parsing", "Not readable as JSON: "),
        ("a: b: c", "yaml", "parsing", "Not readable as YAML: line 1: mapping values are not allowed"),
        ("# Agent Memory Export", "markdown", "parsing", "Markdown import not supported. Please use JSON or YAML"),
        ("[]", "json", "structure", "Missing entries object"),
        ("null", "json", "structure", "Missing entries object"),
        ("{}", "json", "structure", "Missing entries object"),
        ('{"entries": []}', "json", "structure", "Missing entries object"),
        ("# nothing", "yaml", "structure", "Missing entries object"),
        ('{"entries": {"tools": {}}}', "json", "structure", "entries.tools is not a list"),
        ('{"entries": {"knowledge": "x"}}', "json", "structure", "entries.knowledge is not a list"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_content_that_is_no_export_is_reported_and_changes_nothing(
    unchanged: Call, content: str, shape: str, entry: str, error: str
) -> None:
    answer = result_of(unchanged("memory_import", action="import", content=content, format=shape))

    (left,) = answer.pop("errors")
    assert answer == {"success": False, **NOTHING, "details": DETAILS}
    assert left["entry"] == entry
    assert left["error"].startswith(error)


def test_an_empty_import_succeeds(unchanged: Call) -> None:
    for content, shape in ((EMPTY, "json"), ("entries: {}", "yaml"), ('{"entries": {"tools": null}}', None)):
        answer = result_of(unchanged("memory_import", action="import", content=content, format=shape))
        assert answer == {"success": True, **NOTHING, "errors": [], "details": DETAILS}


@pytest.mark.slow
def test_the_import_command_reads_export_files(
    do: Do, second_store: Store, tmp_path: Path, config: Config, capsys: pytest.CaptureFixture[str]
) -> None:
    for kind in ("tool", "guideline", "knowledge"):
        second_store.call(f"memory_{kind}", action="add", scopeType="global", **named(kind))
    for shape in ("json", "yaml"):
        file = tmp_path / f"export.{shape}"
        file.write_text(second_store.do("memory_export", "export", format=shape)["content"], encoding="utf-8")
    bring = ["import", "memory-export"]

    assert commands.run(parser().parse_args([*bring, str(tmp_path / "export.yaml")]), config) == 0
    counts = "created: 3\nupdated: 0\nskipped: 0\n"
    output, remarks = capsys.readouterr()
    assert (re.sub("[0-9]+` takes", "N` takes", output), remarks) == (
        f"{counts}imported 3 memories; `quipu undo N` takes it back\n",
        "",
    )
    assert exported(do) == exported(second_store.do)
    assert commands.run(parser().parse_args([*bring, str(tmp_path / "export.json")]), config) == 0
    assert capsys.readouterr() == ("created: 0\nupdated: 0\nskipped: 3\nnothing new was imported\n", "")
    assert exported(do) == exported(second_store.do)


def named(kind: str) -> dict[str, str]:
    content = {} if kind == "tool" else {"content": "c"}
    return {"title" if kind == "knowledge" else "name": kind, **content}


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (None, "Cannot read export.json: No such file or directory."),
        (b"\xff", "export.json is no export: Not readable as JSON: JSON is malformed: invalid character (byte 0)"),
        (b"{}", "export.json is no export: Missing entries object"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, config: Config, content: bytes | None, why: str) -> None:
    file = tmp_path / "export.json"
    if content is not None:
        file.write_bytes(content)

    with pytest.raises(Fault) as found:
        commands.run(parser().parse_args(["import", "memory-export", str(file)]), config)

    assert found.value.message == why
