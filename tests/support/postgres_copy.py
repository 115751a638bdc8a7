"""Calls, values and checks that several tests of copy share."""

import asyncio
from typing import Any

import msgspec

from kernel.core.config import Config
from kernel.security.permissions import ANONYMOUS_CALLER
from kernel.server import app

CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("add_memory", {"path": "a/b", "content": "a cat\0 sat \ue000 on the mat 日本語"}),
    ("add_memory", {"path": "a/c", "content": "dogs run"}),
    ("drop_memory", {"path": "a/c"}),
    ("save_memory", {"db": "core", "content": "likes tea", "category": "fact", "tags": ["x", "\0"]}),
    ("remember", {"text": "the build takes four minutes"}),
)


def fill(config: Config) -> None:
    kernel = app.open_kernel(config)

    async def calls() -> None:
        for tool, arguments in CALLS:
            if tool in kernel.dispatch.tools:
                entry = kernel.dispatch.tools[tool]
                await kernel.dispatch.call(entry, msgspec.json.encode(arguments), ANONYMOUS_CALLER)

    try:
        asyncio.run(calls())
    finally:
        kernel.store.close()
