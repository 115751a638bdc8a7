"""Replays a thousand first prompts of developers: how often a hook adds memories where one answers, and elsewhere.

`python -m loadtests.benchmarks.first_prompt` opens a store with the facts of `loadtests/lib/developer_prompts.py`, and
for each prompt runs a session: session-start in the folder of the project, then first-prompt. It prints for each kind
of prompt the share of sessions that got memories and the share that got the one that answers, and what a session costs.
"""

import argparse
import asyncio
import json
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

import msgspec

from handlers.common.fence import tokens
from kernel.calls.call import ToolEntry
from kernel.calls.tools import Reply
from kernel.core.config import Config
from kernel.security.permissions import ANONYMOUS_CALLER
from kernel.server import app
from loadtests.lib.developer_prompts import SEED, Prompt, make


class _Row(msgspec.Struct):
    prompts: int = 0
    injected: int = 0
    answered: int = 0
    tokens: int = 0


async def replay(kernel: app.Kernel, seed: int) -> dict[str, _Row]:
    """Runs every session; the counts by kind of prompt."""
    replayed, dispatch = make(seed), kernel.dispatch
    hooks = {
        method.tool.name: ToolEntry(dialect, method.tool) for dialect in dispatch.dialects for method in dialect.rest
    }

    async def call(name: str, **arguments: Any) -> str:
        entry = dispatch.tools.get(name) or hooks[name]
        answer = await dispatch.call(entry, msgspec.json.encode(arguments), ANONYMOUS_CALLER)
        assert isinstance(answer, Reply)
        assert answer.fault is None, answer
        return answer.body.decode()

    for path, content in replayed.memories.items():
        await call("add_memory", path=path, content=content)
    rows: dict[str, _Row] = defaultdict(_Row)
    for number, prompt in enumerate(replayed.prompts):
        named = {"client": "opencode", "session_id": str(number), "root": "/home/ada/shop"}
        began = _text(await call("hook session-start", source="startup", **named))
        found = _text(await call("hook first-prompt", prompt=prompt.text, **named))
        _count(rows[prompt.kind], prompt, began, found)
    return rows


def _text(body: str) -> str:
    return json.loads(body)["text"] if body else ""


def _count(row: _Row, prompt: Prompt, began: str, found: str) -> None:
    row.prompts += 1
    row.injected += bool(found)
    row.answered += bool(prompt.answer) and f"[paths/{prompt.answer}," in began + found
    row.tokens += tokens(began) + tokens(found)


def report(rows: dict[str, _Row]) -> None:
    """Prints one line for each kind of prompt, then the three figures."""
    print("prompts      number  got memories  the right one  tokens a session")
    for kind, row in sorted(rows.items()):
        right = f"{row.answered / row.prompts:.1%}" if kind == "stored" else ""
        print(
            f"{kind:12} {row.prompts:6} {row.injected / row.prompts:13.1%} {right:>14} {row.tokens / row.prompts:17.0f}"
        )
    rest = [row for kind, row in rows.items() if kind != "stored"]
    unwanted = sum(row.injected for row in rest) / sum(row.prompts for row in rest)
    mean = sum(row.tokens for row in rows.values()) / sum(row.prompts for row in rows.values())
    print(
        f"injected where one answers {rows['stored'].injected / rows['stored'].prompts:.1%}, of the rest {unwanted:.1%}"
    )
    print(f"tokens a session {mean:.0f}")


def main() -> None:
    """Replays the prompts on a new store."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=SEED, help="another set of prompts, made the same way")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        kernel = app.open_kernel(Config(data=Path(folder) / "data"))
        try:
            report(asyncio.run(replay(kernel, arguments.seed)))
        finally:
            kernel.store.close()


if __name__ == "__main__":
    main()
