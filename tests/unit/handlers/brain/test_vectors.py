"""Rows that were saved without a model, or with another one, is embedded on request, and counted by type."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from handlers import brain
from kernel.calls.tools import Reply
from kernel.core.config import Config
from kernel.operations import consistency
from kernel.server.app import Kernel, context_of, open_kernel
from tests.conftest import everything
from tests.support.handlers_brain_memories import IDENTITY
from tests.unit.handlers.brain.conftest import read

Call = Callable[..., Reply]
NOTHING = {"embedded": 0, "errors": 0}


@pytest.fixture
def wordless(tmp_path: Path, caller: Any) -> Config:
    """A store with three memories and one row of each other type, saved without a model."""
    config = Config(data=tmp_path / "data")
    kernel = open_kernel(config._replace(model=None))
    call = caller(kernel.dispatch)
    for number in range(3):
        call("save_memory", db="core", content=f"The database is number {number}", category="fact")
    call("create_entity", db="core", name="Falcon", type="project", description="A database")
    call("save_note", db="core", title="Backups", content="Of the database")
    call("save_resource", db="core", title="Manual", url="https://example.org", description="Of the database")
    key = read(call("save_memory", db="core", content="The old database", category="fact"))["id"]
    call("update_memory", db="core", id=key, status="archived")
    kernel.store.close()
    return config


@pytest.fixture
def opened(wordless: Config) -> Iterator[Kernel]:
    """The same store, with the model that ships."""
    kernel = open_kernel(wordless)
    yield kernel
    kernel.store.close()


def flags(kernel: Kernel, table: str) -> list[tuple[int, str | None]]:
    names = [name for (name,) in _values(kernel, f"SELECT name FROM pragma_table_info('{table}')")]
    at = names.index("has_embedding"), names.index("embedding_model")
    return [(row[at[0]], row[at[1]]) for row in everything(kernel)[table]]


def _values(kernel: Kernel, query: str) -> list[Any]:
    from kernel.engines.sqlite.connection import Connection

    db = Connection(kernel.config.file, kernel.store.context, readonly=True)
    found = db.values(query)
    db.close()
    return found


def test_rows_without_embedding_are_embedded_and_found(opened: Kernel, caller: Any) -> None:
    call = caller(opened.dispatch)
    assert read(call("semantic_search", db="core", query="where is data stored"))["results"] == []

    answer = read(call("batch_embed", db="core"))

    assert answer == {
        "memory": {"embedded": 3, "errors": 0},
        "entity": {"embedded": 1, "errors": 0},
        "note": {"embedded": 1, "errors": 0},
        "resource": {"embedded": 1, "errors": 0},
    }
    found = read(call("semantic_search", db="core", query="where is data stored"))["results"]
    assert sorted(result["type"] for result in found) == ["entity", "memory", "memory", "memory", "note"]
    assert flags(opened, "brain_memory") == [(1, IDENTITY)] * 3 + [(0, None)]
    for table in ("brain_entity", "brain_note", "brain_resource"):
        assert flags(opened, table) == [(1, IDENTITY)]
    assert read(call("batch_embed", db="core")) == dict.fromkeys(("memory", "entity", "note", "resource"), NOTHING)


def test_types_and_limit_select_rows_to_embed(opened: Kernel, caller: Any) -> None:
    call = caller(opened.dispatch)

    assert read(call("batch_embed", db="core", types=["memory", "note"], limit=2)) == {
        "memory": {"embedded": 2, "errors": 0},
        "note": {"embedded": 1, "errors": 0},
    }
    assert read(call("batch_embed", db="core", types=["memory"], limit=2)) == {"memory": {"embedded": 1, "errors": 0}}
    assert read(call("batch_embed", db="dnd", types=["memory"])) == {"memory": NOTHING}


def test_rows_of_another_model_are_embedded_again(opened: Kernel, caller: Any) -> None:
    call = caller(opened.dispatch)
    call("batch_embed", db="core")
    opened.store.write_sync(
        lambda tx: tx.run("brain.vectors.flag_entities", db="core", ids=_ids(opened), model="another")
    )

    assert read(call("batch_embed", db="core"))["entity"] == {"embedded": 1, "errors": 0}
    assert flags(opened, "brain_entity") == [(1, IDENTITY)]


def _ids(kernel: Kernel) -> str:
    return msgspec.json.encode([row[0] for row in everything(kernel)["brain_entity"]]).decode()


def test_without_a_model_every_row_that_lacks_one_is_an_error_and_nothing_changes(
    wordless: Config, caller: Any
) -> None:
    kernel = open_kernel(wordless._replace(model=None))
    before = everything(kernel)

    answer = read(caller(kernel.dispatch)("batch_embed", db="core"))

    assert answer["memory"] == {"embedded": 0, "errors": 3}
    assert everything(kernel) == before
    kernel.store.close()


def test_rows_changed_without_model_are_embedded_on_request(tmp_path: Path, caller: Any) -> None:
    config = Config(data=tmp_path / "data")
    kernel = open_kernel(config)
    call = caller(kernel.dispatch)
    memory = read(call("save_memory", db="core", content="The database is PostgreSQL", category="fact"))["id"]
    entity = read(call("create_entity", db="core", name="Falcon", type="project", description="A database"))["id"]
    kernel.store.close()
    kernel = open_kernel(config._replace(model=None))
    call = caller(kernel.dispatch)
    changed = [
        read(call("update_memory", db="core", id=memory, tags=["infra"])),
        read(call("update_entity", db="core", id=entity, tags=["infra"])),
    ]
    kernel.store.close()
    assert [(row["has_embedding"], row["embedding_model"]) for row in changed] == [(0, None), (0, None)]
    kernel = open_kernel(config)
    call = caller(kernel.dispatch)

    answer = read(call("batch_embed", db="core", types=["memory", "entity"]))

    assert answer == {"memory": {"embedded": 1, "errors": 0}, "entity": {"embedded": 1, "errors": 0}}
    found = read(call("semantic_search", db="core", query="where is data stored"))["results"]
    assert sorted(result["id"] for result in found) == sorted([entity, memory])
    kernel.store.close()


@pytest.mark.parametrize("status", ["superseded", "active"])
def test_reactivated_memory_is_flagged_as_embedded(opened: Kernel, caller: Any, status: str) -> None:
    call = caller(opened.dispatch)
    away = read(call("get_memories", db="core", status="archived"))[0]

    answer = read(call("update_memory", db="core", id=away["id"], status=status))

    assert answer["has_embedding"] == (1 if status == "active" else 0)


def test_rows_and_index_agree_afterwards(wordless: Config, caller: Any) -> None:
    kernel = open_kernel(wordless)
    caller(kernel.dispatch)("batch_embed", db="core")
    kernel.store.close()

    assert consistency.check(wordless.file, context_of(wordless), [brain.DIALECT]) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "missing required field `db`"),
        ({"db": "nowhere"}, "db is one of core, therapy, dnd, hlg"),
        (
            {"db": "core", "types": ["link"]},
            "invalid enum value 'link', choose from entity, memory, note, resource - at `types[0]`",
        ),
        ({"db": "core", "types": "memory"}, "at `types`"),
        ({"db": "core", "limit": 0}, "at `limit`"),
        ({"db": "core", "limit": "all"}, "at `limit`"),
        ({"db": "core", "force": True}, "contains unknown field `force`"),
    ],
)
def test_bad_arguments_are_refused_by_name(
    refused: Callable[..., tuple[str | None, str]], arguments: dict[str, Any], message: str
) -> None:
    code, text = refused("batch_embed", **arguments)

    assert code == "invalid"
    assert text.startswith("Error: Invalid arguments: ")
    assert message in text
