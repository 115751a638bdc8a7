"""The brain dialect answers in the shapes of its contract, refuses nonsense, and keeps search in step."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any, get_args

import msgspec
import pytest

from handlers import brain
from kernel.calls.schema import input_schema
from kernel.core.config import Config
from kernel.core.errors import Code, Fault
from kernel.mcp.listings import tool_entry
from kernel.operations import consistency
from kernel.search import index
from kernel.server.app import Kernel, open_kernel
from tests.conftest import TESTER, Call, Clock, everything, forget_rows, keep_rows
from tests.reliability.mutations import CORPUS
from tests.support.contracts_seeds import contract
from tests.unit.handlers.brain.conftest import read

TOOLS = {tool.name: tool for tool in brain.DIALECT.tools}
CALLS: dict[str, list[dict[str, Any]]] = json.loads((CORPUS / "tools.json").read_text(encoding="utf-8"))
EXAMPLES = {name: CALLS.get(name, []) for name in TOOLS}


@pytest.mark.parametrize("code", get_args(Code))
def test_every_kind_of_failure_is_one_line_of_text(code: Code) -> None:
    reply = brain.fail(Fault(code, "What is wrong."))

    prefix = "BLOCKED" if code == "blocked" else "Error"
    assert (reply.body.decode(), reply.fault) == (f"{prefix}: What is wrong.", code)
    assert (reply.media, reply.structured) == ("text/plain; charset=utf-8", None)


def scene(call: Call) -> dict[str, Any]:
    """One successful call of every tool whose answer has keys of its own; the answers by tool name."""

    def call_ok(name: str, /, **arguments: Any) -> Any:
        reply = call(name, **arguments)
        assert reply.fault is None, reply.body
        return read(reply)

    memory = {"db": "core", "content": "The user lives in Lyon.", "category": "fact"}
    found: dict[str, Any] = {"save_memory": call_ok("save_memory", **memory)}
    key = found["save_memory"]["id"]
    found["smart_save_memory"] = {
        **call_ok("smart_save_memory", **memory),
        **call_ok("smart_save_memory", **memory, force_add=True),
    }
    found["bulk_save_memories"] = call_ok(
        "bulk_save_memories", db="core", memories=[{"content": "x", "category": "fact"}]
    )
    found["supersede_memory"] = call_ok("supersede_memory", db="core", old_id=key, new_content="y")
    new = found["supersede_memory"]["new_memory"]["id"]
    found["handle_correction"] = call_ok("handle_correction", db="core", wrong_memory_id=new, correct_content="z")
    found["get_memory_history"] = call_ok("get_memory_history", memory_id=key)
    entity = call_ok("create_entity", db="core", name="Lyon", type="concept")["id"]
    found["get_entity_full"] = call_ok("get_entity_full", db="core", id=entity)
    return found


def test_the_answers_have_the_keys_the_contract_shows(call: Call) -> None:
    for name, answer in scene(call).items():
        documented = contract("brain", name).returns
        assert set(documented) <= set(answer), name
        assert not documented or set(answer) == set(documented), name


def test_answers_are_text_only_and_list_has_no_output_schema() -> None:
    assert [name for name, tool in TOOLS.items() if "outputSchema" in tool_entry(tool)] == []


@pytest.mark.slow
def test_index_matches_sources(call: Call, kernel: Kernel) -> None:
    scene(call)
    call("save_note", db="dnd", title="Tea", content="Steep.", summary="About tea", tags=["t"])
    call("save_resource", db="hlg", title="Quipu", description="Knots", tags=["日本"])
    keys = read(call("bulk_save_memories", db="therapy", memories=[{"content": "x", "category": "fact"}] * 3))["ids"]
    call("update_memory", db="therapy", id=keys[0], status="archived")
    call("update_memory", db="therapy", id=keys[1], tags=["new"])
    call("delete_memory", db="therapy", id=keys[2])

    sources = kernel.store.read_sync(lambda tx: list(brain.sources(tx)))

    held = kernel.store.read_sync(lambda tx: index.documents(tx, [*range(99)])).values()
    assert sorted(source[:4] for source in sources) == sorted((doc.space, doc.key, doc.scope, doc.text) for doc in held)
    assert len(sources) == 7
    assert ("brain:therapy", keys[1], "memory", "x", "fact new") in [source[:5] for source in sources]
    assert consistency.check(kernel.config.file, kernel.store.context, (brain.DIALECT,)) == []


def test_check_repairs_missing_full_text_words(call: Call, kernel: Kernel) -> None:
    key = read(call("save_memory", db="core", content="x", category="fact", tags=["red"]))["id"]
    kernel.store.write_sync(lambda tx: index.put(tx, "brain:core", key, "x", scope="memory"))

    found = consistency.check(kernel.config.file, kernel.store.context, (brain.DIALECT,), repair=True)

    assert [finding.rows for finding in found if finding.part == "brain"] == [1]
    assert consistency.check(kernel.config.file, kernel.store.context, (brain.DIALECT,)) == []


def test_every_tool_has_an_example_that_fits_its_schema(kernel: Kernel) -> None:
    assert all(EXAMPLES.values())
    for name, calls in EXAMPLES.items():
        for arguments in calls:
            kernel.dispatch.tools[name].decode(msgspec.json.encode(arguments))


def arms(shape: dict[str, Any], parts: dict[str, Any]) -> list[dict[str, Any]]:
    if "$ref" in shape:
        return arms(parts[shape["$ref"].rpartition("/")[2]], parts)
    return [arm for inner in shape["anyOf"] for arm in arms(inner, parts)] if "anyOf" in shape else [shape]


def unfit(shape: dict[str, Any], parts: dict[str, Any]) -> Iterator[Any]:
    """Values that no alternative of a schema takes; null is left out, which means that nothing is given."""
    found = arms(shape, parts)
    kinds = {arm.get("type", "string" if "enum" in arm else "") for arm in found}
    fits = {"string": str, "integer": int, "number": (int, float), "boolean": bool, "array": list, "object": dict}
    allowed = [fits[kind] for kind in kinds if kind in fits]
    for value in ("word", 7, 1.5, True, [], {}):
        numeric = isinstance(value, bool) and "boolean" not in kinds
        if numeric or not any(isinstance(value, kind) for kind in allowed):
            yield value
    for arm in found:
        yield from beyond(arm, parts)


def beyond(arm: dict[str, Any], parts: dict[str, Any]) -> Iterator[Any]:
    """Values of the right type outside the bounds of one alternative."""
    if "enum" in arm:
        yield from ("nonsense", "", "Core", "\0")
    if "minimum" in arm:
        yield from (arm["minimum"] - 1, arm["maximum"] + 1)
        yield from (2**63, 2**64, -(2**63) - 1)
    if "maxLength" in arm and "enum" not in arm:
        yield "x" * (arm["maxLength"] + 1)
    if arm.get("minLength") or "pattern" in arm:
        yield ""
    if "pattern" in arm:
        yield " \n\t"
    if "maxItems" in arm:
        yield ["x"] * (arm["maxItems"] + 1)
        yield from ([value] for value in unfit(arm["items"], parts) if value not in (None, ""))


FIELDS = [(name, field) for name, tool in TOOLS.items() for field in input_schema(tool)["properties"]]


@pytest.fixture(scope="module")
def lasting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Kernel, Any]]:
    """A kernel for all the bad calls, since none of them may leave anything; and how to call it."""
    running = open_kernel(Config(data=tmp_path_factory.mktemp("lasting") / "data"))
    keep_rows(running)
    with asyncio.Runner() as runner:

        def call(name: str, raw: bytes) -> Any:
            return runner.run(running.dispatch.call(running.dispatch.tools[name], raw, TESTER))

        call("save_memory", json.dumps(EXAMPLES["save_memory"][0]).encode())
        yield running, call
    forget_rows()
    running.store.close()


def refused(lasting: tuple[Kernel, Any], name: str, raw: bytes) -> str:
    """The message of an invalid call that changed nothing."""
    running, call = lasting
    before = everything(running)
    reply = call(name, raw)
    assert everything(running) == before
    assert reply.fault == "invalid", reply.body
    message = read(reply)
    assert message.startswith("Error: Invalid arguments: ")
    return message


@pytest.mark.parametrize(("name", "field"), FIELDS)
def test_values_that_do_not_fit_are_refused_by_the_name_of_their_field(
    lasting: tuple[Kernel, Any], name: str, field: str
) -> None:
    schema = input_schema(TOOLS[name])
    values = list(unfit(schema["properties"][field], schema.get("$defs", {})))
    assert len(values) > 3
    for value in values:
        assert field in refused(lasting, name, json.dumps({**EXAMPLES[name][0], field: value}).encode())


NEEDED = [(name, field) for name, tool in TOOLS.items() for field in input_schema(tool).get("required", [])]


@pytest.mark.parametrize(("name", "field"), NEEDED)
def test_what_is_missing_is_named(lasting: tuple[Kernel, Any], name: str, field: str) -> None:
    rest = {key: value for key, value in EXAMPLES[name][0].items() if key != field}

    assert f"`{field}`" in refused(lasting, name, json.dumps(rest).encode())


@pytest.mark.parametrize("name", TOOLS)
def test_what_is_unknown_is_named(lasting: tuple[Kernel, Any], name: str) -> None:
    assert "`extra`" in refused(lasting, name, json.dumps({**EXAMPLES[name][0], "extra": 1}).encode())


BROKEN = [b"[]", b"null", b'"a"', b"{", b"\xff", b'{"db":"\\ud800"}', b'{"db":NaN}', b'{"limit":1e999}', b"[" * 9000]


@pytest.mark.parametrize("name", TOOLS)
def test_what_is_no_object_is_refused(lasting: tuple[Kernel, Any], name: str) -> None:
    for raw in BROKEN:
        refused(lasting, name, raw)


HOSTILE = [
    "'; DROP TABLE brain_memory; --",
    '"',
    "*",
    "title:x",
    "NEAR(a b)",
    "(" * 99,
    "\u202e\u200b",
    "../..",
    "%",
]


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_hostile_words_are_plain_words(call: Call, text: str) -> None:
    saved = read(call("save_memory", db="core", content=text, category="fact", tags=[text], subcategory=text))
    assert (saved["content"], saved["subcategory"]) == (text, text)
    for name, arguments in (
        ("get_memories", {"tags": [text]}),
        ("get_entities", {"status": text}),
        ("smart_save_memory", {"content": text, "category": "fact"}),
        ("handle_correction", {"wrong_content": text, "correct_content": text}),
        ("get_notes", {"category": text}),
    ):
        assert call(name, db="core", **arguments).fault is None
    for name in ("delete_memory", "delete_entity", "delete_link", "get_entity_full"):
        assert call(name, db="core", id=text).fault == "not_found"
    assert call("get_links", db="core", source_id=text).fault == "not_found"
    assert call("get_memory_history", memory_id=text).fault is None
    assert call("get_config", prefix=text).fault is None


def test_an_unknown_database_is_refused_by_every_tool_that_takes_one(lasting: tuple[Kernel, Any], clock: Clock) -> None:
    asked = [name for name, tool in TOOLS.items() if "db" in input_schema(tool)["properties"]]
    assert len(asked) > 20
    for name in asked:
        message = refused(lasting, name, json.dumps({**EXAMPLES[name][0], "db": "nowhere"}).encode())
        assert message == "Error: Invalid arguments: db is one of core, therapy, dnd, hlg"
