"""Replays a thousand first prompts of developers: how often a hook adds memories where one answers, and elsewhere.

`python -m loadtests.benchmarks.first_prompt` opens a store with the facts of `loadtests/lib/developer_prompts.py`, and
for each prompt runs a session: session-start in the folder of the project, then first-prompt. It prints for each kind
of prompt the share of sessions that got memories and the share that got the one that answers, and what a session costs.
With --natural it asks the English questions of `loadtests/quality/facts` as people ask them, each in a store with the
fact that answers and in one without it.
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
from kernel.calls.dispatch import ToolEntry
from kernel.calls.tools import Reply
from kernel.core.config import Config
from kernel.security.permissions import ANONYMOUS_CALLER
from kernel.server import app
from loadtests.lib.developer_prompts import SEED, Prompt, Replay, make
from loadtests.quality.facts import KINDS, facts


class _Row(msgspec.Struct):
    prompts: int = 0
    injected: int = 0
    answered: int = 0
    tokens: int = 0


def natural() -> list[Replay]:
    """Return two halves of the facts as stores, each with the questions of all: of its own, and of the other half."""
    everything = [fact for kind in KINDS for fact in facts("english", kind)]
    stores = list[Replay]()
    for half in (0, 1):
        memories = {f"fact/{number}": fact.text for number, fact in enumerate(everything) if number % 2 == half}
        prompts = [
            Prompt(fact.question, f"fact/{number}", "stored")
            if number % 2 == half
            else Prompt(fact.question, "", "absent")
            for number, fact in enumerate(everything)
        ]
        stores.append(Replay(memories, prompts))
    return stores


async def replay(kernel: app.Kernel, replayed: Replay, rows: dict[str, _Row]) -> None:
    """Runs every session, and counts it by kind of prompt."""
    dispatch = kernel.dispatch
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
    for number, prompt in enumerate(replayed.prompts):
        named = {"client": "opencode", "session_id": str(number), "root": "/home/ada/shop"}
        began = _text(await call("hook session-start", source="startup", **named))
        found = _text(await call("hook first-prompt", prompt=prompt.text, **named))
        _count(rows[prompt.kind], prompt, began, found)


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
    parser.add_argument("--natural", action="store_true", help="questions as people ask them")
    arguments = parser.parse_args()
    rows: dict[str, _Row] = defaultdict(_Row)
    for replayed in natural() if arguments.natural else [make(arguments.seed)]:
        with tempfile.TemporaryDirectory() as folder:
            kernel = app.open_kernel(Config(data=Path(folder) / "data"))
            try:
                asyncio.run(replay(kernel, replayed, rows))
            finally:
                kernel.store.close()
    report(rows)


if __name__ == "__main__":
    main()
