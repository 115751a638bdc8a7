"""The types are those of the contract's home and those people configure, in the files they have."""

import json
from pathlib import Path

import pytest

from handlers.notes.memory_types import BUILT_IN, MemoryType, load_types, resolve_type
from kernel.core.errors import Fault
from tests.unit.handlers.notes.conftest import CallOk, put

NAMES = [
    "architectural-decision",
    "design-decision",
    "learning",
    "user-preference",
    "project-preference",
    "issue",
    "context",
    "recurring-pattern",
    "conventions-pattern",
]
JSONC = """\ufeff{
  // ours
  "memoryTypes": [
    {"name": "Team Ritual", "description": "What we do // every week", "template": "## When"}, /* more
    to come */
    {"name": "issue", "description": "Ours, not theirs: \\"bugs\\"",},
  ],
  "model": {"anything": [1, 2, 3,]},
}"""


def test_the_built_in_types_come_in_the_order_of_the_original(call_ok: CallOk) -> None:
    answer = call_ok("memory_list_types")

    assert [kind["name"] for kind in answer["types"]] == NAMES
    assert all(set(kind) == {"name", "description"} and kind["description"] for kind in answer["types"])
    assert {key: answer[key] for key in answer if key != "types"} == {
        "fallbackType": "context",
        "fallbackDescription": "General context information - use when no other type fits",
    }


def test_configured_types_override_earlier_ones(tmp_path: Path) -> None:
    put(tmp_path, "one/.opencode/opencode-historian.jsonc", JSONC)
    put(tmp_path, "one/.opencode/opencode-historian.json", "never read beside the other")
    put(tmp_path, "two/.opencode/opencode-historian.json", '{"memoryTypes": [{"name": "x", "description": "X"}]}')
    user = put(tmp_path, "user.json", json.dumps({"memoryTypes": [{"name": "teamRitual", "description": "Other"}]}))

    found = load_types(str(user), [tmp_path / "one", tmp_path / "two", tmp_path / "three"])
    assert list(found) == [*NAMES, "team-ritual", "x"]
    assert found["team-ritual"] == MemoryType("team-ritual", "What we do // every week", "## When")
    assert found["issue"] == MemoryType("issue", 'Ours, not theirs: "bugs"')
    assert list(load_types("", [])) == NAMES == [kind.name for kind in BUILT_IN]


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"memoryTypes": [{"name": ""}]}',
        '{"memoryTypes": [{"name": "", "description": "x"}]}',
        '{"memoryTypes": [{"name": "..", "description": "x"}]}',
        '{"memoryTypes": 1}',
        "\0",
        "{" * 3000,
        '{"memoryTypes": [{"name": "Notes.MD", "description": "x"}]}',
        '{"memoryTypes": [{"name": "a\\u0000b", "description": "x"}]}',
        '{"a": /* }',
    ],
)
def test_invalid_configuration_is_named(tmp_path: Path, text: str) -> None:
    put(tmp_path, ".opencode/opencode-historian.json", text)
    with pytest.raises(Fault, match=r"^Cannot read the types of opencode-historian\.json: ") as caught:
        load_types("", [tmp_path])
    assert caught.value.code == "invalid"


def test_a_missing_file_of_the_users_is_named(tmp_path: Path) -> None:
    with pytest.raises(Fault, match=r"^Cannot read the types of none\.json: "):
        load_types(str(tmp_path / "none.json"), [])


def test_a_type_is_found_however_it_is_written() -> None:
    kinds = {kind.name: kind for kind in BUILT_IN}

    assert (
        resolve_type(kinds, "Architectural Decision")
        == resolve_type(kinds, "architecturalDecision")
        == "architectural-decision"
    )
    for given in ("", "nothing", "../context", "context\0"):
        with pytest.raises(Fault) as caught:
            resolve_type(kinds, given)
        assert caught.value.message == (
            f'Invalid memory type: "{given}". Must be one of the built-in types or configured custom types. '
            f"These are {', '.join(kinds)}."
        )
