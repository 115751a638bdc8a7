"""A store with memories of every kind goes into PostgreSQL and back; COPIED_MEMORIES sets how many there are."""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kernel.cli.main import main
from kernel.core.config import Config
from kernel.security.permissions import ANONYMOUS_CALLER
from kernel.server import app

pytestmark = pytest.mark.postgres
COPIED = int(os.environ.get("COPIED_MEMORIES", "280"))
CALLERS = 64
TOPICS = ("the build takes four minutes", "日本語の天気", "ends with \0 and \ue000", "likes 🍵 \\u0000 'quoted' \"so\"")


def calls(number: int) -> tuple[str, dict[str, Any]]:
    """The call that writes the memory of a number; seven kinds take turns."""
    text = f"{number}: {TOPICS[number % len(TOPICS)]} and {number * 7919 % 1000} more"
    plain = text.replace("\0", "")  # some tools refuse NUL
    scope = {"action": "add", "scopeType": "global", "content": plain}
    return (
        ("add_memory", {"path": f"places/{number % 50}/{number}", "content": text}),
        ("save_memory", {"db": "core", "content": plain, "category": "fact", "tags": [f"tag {number % 9}"]}),
        ("remember", {"content": text, "session_id": f"session {number % 20}", "tags": f"a,{number % 5}"}),
        ("create_entities", {"entities": [{"name": f"e{number}", "entityType": "t", "observations": [text, "two"]}]}),
        ("memory", {"command": "create", "path": f"/memories/{number % 30}/{number}.txt", "file_text": text}),
        ("memory_knowledge", {**scope, "title": f"fact {number}"}),
        ("memory_guideline", {**scope, "name": f"rule {number}", "priority": number % 100}),
    )[number % 7]


async def fill(kernel: app.Kernel) -> None:
    """Writes the memories, then changes and deletes some, so that they have a history."""

    async def call(tool: str, arguments: dict[str, Any]) -> None:
        entry = kernel.dispatch.tools[tool]
        answer: Any = await kernel.dispatch.call(entry, msgspec.json.encode(arguments), ANONYMOUS_CALLER)
        assert answer.fault is None, answer.body

    async def caller(work: Iterator[tuple[str, dict[str, Any]]]) -> None:
        for tool, arguments in work:
            await call(tool, arguments)

    work = map(calls, range(COPIED))
    await asyncio.gather(*(caller(work) for _ in range(CALLERS)))
    for number in range(0, COPIED, 70):  # all of add_memory
        await call("replace_memory", {"path": f"places/{number % 50}/{number}", "content": f"changed \0 {number}"})
    for number in range(7, COPIED, 140):
        await call("drop_memory", {"path": f"places/{number % 50}/{number}"})


def exported(target: Path, config: Config) -> bytes:
    options = ["--store", config.store] if config.store else []
    assert main(["export", "jsonl", str(target), "--data", str(config.data), *options]) == 0
    return target.read_bytes()


def test_an_export_is_the_same_before_on_postgresql_and_back_in_a_file(address: str, tmp_path: Path) -> None:
    original, returned = Config(data=tmp_path / "original"), Config(data=tmp_path / "returned")
    shared = Config(data=tmp_path / "shared", store=address)
    kernel = app.open_kernel(original)
    try:
        asyncio.run(fill(kernel))
    finally:
        kernel.store.close()

    assert main(["store", "copy", str(original.data), address]) == 0
    assert main(["store", "copy", address, str(returned.data)]) == 0

    before = exported(tmp_path / "original.jsonl", original)
    assert exported(tmp_path / "shared.jsonl", shared) == before
    assert exported(tmp_path / "returned.jsonl", returned) == before
    assert before.count(b"\n") > 2 * COPIED
