"""A reading tool returns whole rows, or of each row the keys that the caller named."""

from collections.abc import Callable
from typing import Any

import jsonschema
import pytest

from handlers.brain import DIALECT
from kernel.calls.schema import output_schema
from tests.unit.handlers.brain.conftest import CallOk


@pytest.fixture
def saved(call_ok: CallOk) -> None:
    call_ok("save_memory", db="core", content="Knotted cords hold numbers", category="fact", tags=["cord"])
    call_ok("create_entity", db="core", name="Cords", type="concept")
    call_ok("save_note", db="core", title="Cords", content="Knotted cords")
    call_ok("save_resource", db="core", title="Cords")


@pytest.mark.parametrize(
    ("tool", "arguments", "rows", "wanted"),
    [
        ("get_memories", {}, lambda found: found, {"id", "content"}),
        ("get_notes", {}, lambda found: found, {"id", "content"}),
        ("search", {"query": "cords"}, lambda found: found["memories"], {"id", "content"}),
        ("search", {"query": "cords"}, lambda found: found["entities"], {"id"}),
        ("hybrid_search", {"query": "cords"}, lambda found: [one["data"] for one in found["results"]], None),
        ("semantic_search", {"query": "cords"}, lambda found: [one["data"] for one in found["results"]], None),
    ],
)
def test_rows_have_the_named_keys_and_their_ids(
    call_ok: CallOk,
    saved: None,
    tool: str,
    arguments: dict[str, Any],
    rows: Callable[[Any], list[dict[str, Any]]],
    wanted: set[str] | None,
) -> None:
    whole = rows(call_ok(tool, db="core", **arguments))
    found = rows(call_ok(tool, db="core", fields=["content"], **arguments))

    assert found == [{key: row[key] for key in ("id", "content") if key in row} for row in whole]
    assert wanted is None or {*found[0]} == wanted


@pytest.mark.parametrize("fields", [None, [], ["content", "rank"]])
def test_rows_fit_the_schema_of_the_result_whichever_keys_are_named(
    call_ok: CallOk, saved: None, fields: list[str] | None
) -> None:
    schema = next(output_schema(tool) for tool in DIALECT.tools if tool.name == "search")
    found = call_ok("search", db="core", query="cords", fields=fields)

    assert found["memories"]
    assert found["entities"]
    jsonschema.Draft202012Validator(schema or False).validate(found)


def test_every_database_of_a_search_has_the_named_keys_only(call_ok: CallOk, saved: None) -> None:
    found = call_ok("search_all", query="cords", fields=["rank", "name"])["core"]

    assert [{*row} for row in found["memories"]] == [{"id", "rank"}]
    assert [{*row} for row in found["entities"]] == [{"id", "rank", "name"}]


@pytest.mark.parametrize(("tool", "key"), [("get_resources", "title"), ("get_entities", "name")])
def test_rows_of_other_kinds_have_the_named_keys_only(call_ok: CallOk, saved: None, tool: str, key: str) -> None:
    whole, found = call_ok(tool, db="core"), call_ok(tool, db="core", fields=[key])

    assert found == [{"id": row["id"], key: "Cords"} for row in whole] != []


@pytest.mark.parametrize("tool", ["get_memories", "hybrid_search"])
def test_an_access_counts_whichever_keys_are_returned(
    call_ok: CallOk, saved: None, settled: Callable[[], None], tool: str
) -> None:
    call_ok(tool, db="core", fields=["status"], **({"query": "cords"} if tool == "hybrid_search" else {}))
    settled()

    assert [row["access_count"] for row in call_ok("get_memories", db="core")] == [1]


@pytest.mark.parametrize("tool", ["get_entities", "semantic_search"])
def test_a_key_that_no_row_has_is_refused_with_those_there_are(
    refused: Callable[..., tuple[str | None, str]], tool: str
) -> None:
    query = {"query": "cords"} if tool == "semantic_search" else {}
    code, text = refused(tool, db="core", fields=["name", "text"], **query)

    assert code == "invalid"
    assert text.startswith("Error: Invalid arguments: fields: there is no 'text'; the keys are id, ")
