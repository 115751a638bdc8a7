"""Every tool, called with values that its schema allows, with the edges of these, and with a wrong value."""

import json
import logging
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from jsonschema import Draft202012Validator

from kernel.calls.dispatch import Dispatch
from kernel.calls.schema import input_schema, output_schema
from kernel.calls.tools import Reply
from kernel.core.config import Config
from kernel.server import app
from kernel.server.app import open_kernel
from tests.catalogue import Catalogue
from tests.conftest import Call
from tests.security.calls import CALLS
from tests.security.schemas import fitting, unfit

EXAMPLES = int(os.environ.get("SCHEMA_EXAMPLES", "12"))
REFUSED = {None, "invalid", "not_found", "conflict", "blocked", "disabled"}
TOOLS = {tool.name: tool for dialect in app.DIALECTS for tool in dialect.tools}
LEGAL = settings(
    max_examples=EXAMPLES,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.filter_too_much],
)


@pytest.fixture(scope="module")
def dispatch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dispatch]:
    """One kernel for all tools, with the graph on."""
    folder: Path = tmp_path_factory.mktemp("schemas")
    running = open_kernel(Config(data=folder / "data", environment={"CODE_MEMORY_ENABLE_GRAPH": "1"}))
    yield running.dispatch
    running.store.close()


def judged(reply: Reply, log: pytest.LogCaptureFixture) -> None:
    """Whether an answer is one that is declared."""
    assert reply.fault in REFUSED, reply
    assert b"Traceback" not in reply.body
    assert not [record for record in log.records if record.levelno >= logging.ERROR]


@pytest.mark.parametrize("name", TOOLS)
def test_what_a_schema_allows_is_answered_as_declared(
    dispatch: Dispatch, caller: Callable[[Dispatch], Call], name: str, caplog: Any, catalogue: Catalogue
) -> None:
    call, tool = caller(dispatch), TOOLS[name]
    schema, shown = input_schema(tool), output_schema(tool)
    output = Draft202012Validator(shown) if shown else None
    seen = {"answered": 0, "refused": 0}

    @LEGAL
    @given(fitting(schema))
    def check(arguments: Mapping[str, Any]) -> None:
        reply = call(name, **arguments)
        judged(reply, caplog)
        seen["refused" if reply.fault else "answered"] += 1
        if output is not None and reply.fault is None:
            output.validate(json.loads(reply.structured or reply.body))

    check()
    outcome = f"{seen['answered']} answered, {seen['refused']} refused, none failed"
    catalogue("S25", injected=f"what {name} allows", times=sum(seen.values()), outcome=outcome)


def mistakes(name: str) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Yield the fault, its field, and the arguments."""
    schema = input_schema(TOOLS[name])
    for (tool, action), usual in CALLS.items():
        if tool != name:
            continue
        fields = [field for field in schema["properties"] if not action or field in usual]
        for field in fields:
            for value in unfit(schema["properties"][field], schema):
                yield f"{value!r:.20} as {field}", field, {**usual, field: value}
        for field in schema.get("required", []):
            yield f"no {field}", field, {key: value for key, value in usual.items() if key != field}
        if schema.get("additionalProperties") is False:
            yield "an unknown field", "unheard_of", {**usual, "unheard_of": 1}


@pytest.mark.parametrize("name", TOOLS)
def test_what_a_schema_does_not_allow_is_refused_by_name(
    dispatch: Dispatch, caller: Callable[[Dispatch], Call], name: str, caplog: Any, catalogue: Catalogue
) -> None:
    call, wrong, times = caller(dispatch), [], 0
    for what, field, arguments in mistakes(name):
        reply = call(name, **arguments)
        judged(reply, caplog)
        times += 1
        if reply.fault != "invalid" or field not in reply.body.decode():
            wrong.append((what, reply))
    assert wrong == []
    catalogue("S25", injected=f"what {name} does not allow", times=times, outcome="refused, the field named")


@pytest.mark.parametrize("name", TOOLS)
def test_only_what_fits_is_drawn_and_something_wrong_is_known_of_every_field(name: str) -> None:
    schema = input_schema(TOOLS[name])
    fits = Draft202012Validator(schema).is_valid

    @settings(max_examples=10, derandomize=True, database=None)
    @given(fitting(schema))
    def check(arguments: Any) -> None:
        assert fits(arguments)

    check()
    assert [field for field, shape in schema["properties"].items() if not unfit(shape, schema)] == []
