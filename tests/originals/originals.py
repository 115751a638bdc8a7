"""The original programs of the dialects, and their answers beside those of Quipu to the same calls on empty stores."""

import asyncio
import json
import os
import re
import shlex
import subprocess
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from mcp import Client, MCPError, StdioServerParameters
from mcp.client.stdio import stdio_client

from kernel.calls.dialect import Dialect
from tests.contracts.deviation_tables import Deviation, read_deviations
from tests.originals.comparison import Answer, Difference, Names, decoded, differences, layout
from tests.reliability.server_process import ROOT, serving

HERE = Path(__file__).resolve().parent


class Call(NamedTuple):
    """A tool, its arguments, in which `$name` is a kept value, and the kept parts of the answer: names and paths."""

    tool: str
    arguments: Mapping[str, Any] = {}
    keep: Mapping[str, str] = {}


def each(tool: str, *arguments: Mapping[str, Any]) -> tuple[Call, ...]:
    """Calls of one tool of which nothing is kept."""
    return tuple(Call(tool, given) for given in arguments)


class Rule(NamedTuple):
    """Differences that one row of the deviations table covers; every other field is a pattern, or several between
    `||`, in which `*` stands for anything.

    `row` is `what` of the row, or `tools: what` where several rows say the same.
    """

    row: str
    calls: str = "*"
    at: str = "*"
    kind: str = "*"
    original: str = "*"
    ours: str = "*"
    sometimes: bool = False  # the difference is one of time, which need not show in each run

    def covers(self, call: str, difference: Difference) -> bool:
        return all(map(matches, (call, *difference), (self.calls, *self[2:6])))


def matches(text: str, pattern: str) -> bool:
    return pattern == "*" or expression(pattern).fullmatch(text) is not None


@cache
def expression(pattern: str) -> re.Pattern[str]:
    return re.compile("|".join(re.escape(one).replace(r"\*", ".*") for one in pattern.split(" || ")), re.DOTALL)


class Original(NamedTuple):
    """An original: where its source is, how it is set up, the calls, and the rules for differences.

    `settings` are variables of its environment, `ours` those of the server beside it; `{data}` in them is a folder of
    its own with an empty folder `project`. `ids` is the form of the ids that either of the two makes. `recordable`
    takes uncopied texts out of an answer. Some originals end when they are started for the first time, and
    need more `starts`.
    """

    dialect: Dialect
    repository: str
    commit: str
    settings: Mapping[str, str]
    ours: Mapping[str, str]
    ids: str
    calls: Sequence[Call]
    rules: Sequence[Rule]
    recordable: Callable[[Any], Any] = lambda body: body
    starts: int = 1

    @property
    def variable(self) -> str:
        """The variable with the command that starts it over stdio."""
        return f"ORIGINAL_{self.dialect.name.upper()}"

    @property
    def recorded(self) -> Path:
        return HERE / "answers" / f"{self.dialect.name}.json"

    def names(self) -> list[str]:
        """Return the name of each call: the tool and its arguments, numbered where they repeat."""
        count: Counter[str] = Counter()
        names = []
        for call in self.calls:
            name = f"{call.tool} {json.dumps(call.arguments, ensure_ascii=False)}"
            name = name if len(name) <= 200 else f"{name[:200]}..."
            count[name] += 1
            names.append(name if count[name] == 1 else f"{name} ({count[name]})")
        return names

    @property
    def deviations(self) -> list[Deviation]:
        return read_deviations(self.dialect.name)

    def row(self, rule: Rule) -> Deviation:
        """Return the row of the table that a rule names."""
        rows = [row for row in self.deviations if rule.row in (row.what, f"{row.tools}: {row.what}")]
        assert len(rows) == 1, f"{len(rows)} rows are called {rule.row}"
        return rows[0]

    def of_row(self, rule: Rule, tool: str) -> bool:
        """Whether the row of a rule is one of this tool; a rule that names calls may be about its consequences."""
        tools = self.row(rule).tools
        return rule.calls != "*" or tools.startswith("every tool") or tool in tools.split(", ")


def answers(original: Original, scratch: Path) -> tuple[list[Answer], list[Answer]]:
    """Return the answers of the original, live or recorded, and those of Quipu."""
    own = scratch / "ours"
    (own / "project").mkdir(parents=True)
    settings = {name: value.format(data=own) for name, value in original.ours.items()}
    with serving(own, **settings) as server:
        address = f"http://127.0.0.1:{server.port}/mcp/{original.dialect.name}"
        ours = asyncio.run(asked(address, (own, ROOT), original))
    command = os.environ.get(original.variable)
    theirs = run(original, command, scratch) if command else read(original)
    if command and os.environ.get("RECORD"):
        record(original, theirs)
    return theirs, ours


def run(original: Original, command: str, scratch: Path) -> list[Answer]:
    """Return the answers of the original; its log is not shown."""
    data, folder = scratch / "original", scratch / "folder"
    (data / "project").mkdir(parents=True)
    folder.mkdir()
    given = parameters(original, command, data, folder)
    words = [given.command, *given.args]
    with Path(os.devnull).open("w", encoding="utf-8") as log:
        for _ in range(1, original.starts):
            subprocess.run(words, cwd=folder, env=given.env, stdin=subprocess.DEVNULL, stderr=log)
        return asyncio.run(asked(stdio_client(given, log), (data, folder), original))


def parameters(original: Original, command: str, data: Path, folder: Path) -> StdioServerParameters:
    """How the original is started: in a folder of its own, in UTC."""
    settings = {name: value.format(data=data) for name, value in original.settings.items()}
    program, *words = shlex.split(command)
    environment = {"PATH": os.environ["PATH"], "TZ": "UTC", "HOME": str(folder), **settings}
    return StdioServerParameters(command=program, args=words, cwd=folder, env=environment)


async def asked(target: Any, folders: tuple[Path, Path], original: Original) -> list[Answer]:
    """Return the answers of a server to the calls, one after the other."""
    names = Names(original.ids, *map(str, folders))
    found = []
    async with Client(target, mode="legacy") as client:
        for call in original.calls:
            texts, structured, refused = await result(client, call.tool, names.filled(call.arguments))
            body = decoded(texts)
            names.keep(call.keep, body)
            both = "none" if structured is None else "the same" if structured == body else "another"
            found.append(Answer(refused, layout(texts), both, names.neutral(body)))
    return found


async def result(client: Client, tool: str, arguments: Mapping[str, Any]) -> tuple[list[str], Any, bool]:
    """The texts and the structured content of one call, and whether it is an error."""
    try:
        found = await client.call_tool(tool, dict(arguments))
    except MCPError as error:
        return [f"protocol error {error.error.code}: {error.error.message}"], None, True
    return [item.model_dump()["text"] for item in found.content], found.structured_content, bool(found.is_error)


def record(original: Original, found: Sequence[Answer]) -> None:
    """Keeps the answers of the original, for those who have only this repository."""
    kept = [answer._replace(body=original.recordable(answer.body)) for answer in found]
    lines = [
        f"{json.dumps(name, ensure_ascii=False)}: {json.dumps(answer, ensure_ascii=False)}"
        for name, answer in zip(original.names(), kept, strict=True)
    ]
    original.recorded.parent.mkdir(exist_ok=True)
    original.recorded.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def read(original: Original) -> list[Answer]:
    """Return the recorded answers of the original, at the same calls."""
    recorded = json.loads(original.recorded.read_text(encoding="utf-8"))
    assert list(recorded) == original.names(), f"the calls have changed: record {original.dialect.name} again"
    return [Answer(*answer) for answer in recorded.values()]


class Compared(NamedTuple):
    """One call with its differences, and the rules that cover each of them."""

    name: str
    tool: str
    found: list[tuple[Difference, list[Rule]]]


def compare(original: Original, scratch: Path) -> list[Compared]:
    rows = []
    calls = zip(original.calls, original.names(), *answers(original, scratch), strict=True)
    for call, name, theirs, ours in calls:
        rules = [rule for rule in original.rules if original.of_row(rule, call.tool)]
        found = [(one, [rule for rule in rules if rule.covers(name, one)]) for one in differences(theirs, ours)]
        rows.append(Compared(name, call.tool, found))
    return rows
