"""A kernel with its own settings, and a function that calls tools by name and returns JSON."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from handlers import sessions
from kernel.core.config import Config
from kernel.server.app import Kernel, open_kernel
from tests.conftest import TESTER, validator_of

Ask = Callable[..., Any]
TOOLS = {tool.name: tool for tool in sessions.DIALECT.tools}
LISTS = {"search_memory", "list_recent", "list_entities"}
GRAPH = {"CODE_MEMORY_ENABLE_GRAPH": "1"}


@contextmanager
def opened(folder: Path, **settings: str) -> Iterator[tuple[Kernel, Ask]]:
    """A running kernel with these `CODE_MEMORY_` settings, and a function that calls its tools."""
    environment = {f"CODE_MEMORY_{name}": value for name, value in settings.items()}
    kernel = open_kernel(Config(data=folder, environment=environment))
    with asyncio.Runner() as runner:
        try:
            yield kernel, asking(kernel, runner)
        finally:
            kernel.store.close()


@cache
def validator(name: str) -> Any:
    """Checks the results of a tool."""
    return validator_of(TOOLS[name])


def asking(kernel: Kernel, runner: asyncio.Runner) -> Ask:
    """`ask("remember", content="x", session_id="s")` returns the result, checked against the output schema."""

    def ask(name: str, /, **arguments: Any) -> Any:
        raw = msgspec.json.encode(arguments)
        reply = runner.run(kernel.dispatch.call(kernel.dispatch.tools[name], raw, TESTER))
        body = msgspec.json.decode(reply.body)  # type: ignore[union-attr]
        if reply.fault is None:  # type: ignore[union-attr]
            structured = msgspec.json.decode(reply.structured)  # type: ignore[union-attr,arg-type]
            validator(name).validate(structured)
            assert structured == ({"result": body} if name in LISTS else body)
        return body

    return ask


def ids(found: list[dict[str, Any]]) -> list[int]:
    """The ids of memories, in the order of an answer."""
    return [memory["id"] for memory in found]
