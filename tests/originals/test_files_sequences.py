"""Random sequences of commands: the vendor's local memory tool and the dialect `files` answer and keep the same.

Parts in the table of deviations are taken out of the answers, or does not come up. `make originals` installs the SDK;
SEQUENCES lengthens the run.
"""

import json
import os
import random
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kernel.server.app import Kernel
from tests.conftest import Call

pytestmark = [pytest.mark.originals, pytest.mark.xdist_group("originals")]
COMMAND = os.environ.get("ORIGINAL_FILES", "")
SEQUENCES = int(os.environ.get("SEQUENCES", "10"))
COMMANDS = 50
PATHS = ["a", "b.txt", "d", "d/a", "d/e", "d/e/f", "d/e/f/g", "d-1", ".h/x", "é", "🙂/a", ""]
TEXTS = ["", "one", "one\n", "one\ntwo\nthree\nfour\nfive\n", "a a\na", "x\r\ny\n", "\n", "\n\n", "é\u2028\t\x01"]
PARTS = ["one", "a", "a a", "two\nthree", "\n", "x\r", "no", "é", "five\n"]
INSERTED = ["one", "a\nb", "x\n", "\r", " "]


class Original:
    """The local tool of the SDK in a process of its own."""

    def __init__(self, folder: Path) -> None:
        self._process = subprocess.Popen(
            [*shlex.split(COMMAND), str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )

    def empty(self) -> None:
        self._send(None)

    def ask(self, command: dict[str, Any]) -> Any:
        self._send(command)
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())

    def _send(self, command: dict[str, Any] | None) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()

    def close(self) -> None:
        self._process.communicate(timeout=60)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Original]:
    if not COMMAND:
        pytest.skip("ORIGINAL_FILES names no command; `make originals` sets it")
    tool = Original(tmp_path_factory.mktemp("original"))
    yield tool
    tool.close()


def command(source: random.Random) -> dict[str, Any]:
    path = f"/memories/{source.choice(PATHS)}".removesuffix("/")
    kind = source.choice(["view", "create", "create", "str_replace", "insert", "delete", "rename", "rename"])
    first = source.randint(1, 6)
    more: dict[str, dict[str, Any]] = {
        "view": source.choice([{}, {"view_range": [first, source.choice([-1, *range(first, 7)])]}]),
        "create": {"file_text": source.choice(TEXTS)},
        "str_replace": {"old_str": source.choice(PARTS), "new_str": source.choice(["", "new", "n\ne\nw\n"])},
        "insert": {"insert_line": source.randint(-1, 5), "insert_text": source.choice(INSERTED)},
        "delete": {},
    }
    if kind == "rename":
        other = f"/memories/{source.choice(PATHS)}".removesuffix("/")
        return {"command": kind, "old_path": path, "new_path": other}
    return {"command": kind, "path": path, **more[kind]}


def comparable(text: str, kind: str) -> str:
    """Return an answer without the parts in the table of deviations."""
    text = text.removeprefix("Error: ").replace(" and node_modules:", ":")
    if kind == "view" and text.startswith("Here're the files"):
        header, top, *lines = text.split("\n")
        lines = [re.sub(r"^\S+(?=\t.*/$)", "SIZE", line) for line in lines]
        return "\n".join([header, top.partition("\t")[2], *lines])
    if kind in {"insert", "str_replace"}:
        text = re.sub(r"^(The path \S+) (?:is not a file|does not exist).*", r"\1 is no file", text)
        text = re.sub(r"(parameter: -?\d+)\. .*", r"\1", text)
    if "Multiple occurrences" in text:
        before, _, numbers = text.partition(" in lines: ")
        text = f"{before} {sorted({*re.findall(r'[0-9]+', numbers)})}"
    return text


@pytest.mark.parametrize("seed", range(SEQUENCES))
def test_every_command_of_a_sequence_is_answered_and_done_alike(
    original: Original, kernel: Kernel, call: Call, seed: int
) -> None:
    original.empty()
    source = random.Random(seed)
    for number in range(COMMANDS):
        given = command(source)
        if given["command"] == "insert" and ends_in_an_empty_line(
            stored(kernel).get(given["path"][len("/memories") :])
        ):
            continue  # the original loses that line
        theirs, ours = original.ask(given), call("memory", **given)
        said = f"command {number}: {given}: {theirs['text']!r}, {ours.body!r}"
        assert (ours.fault is not None) == theirs["refused"], said
        if not theirs["host"]:  # an error with a path of the host
            kind = given["command"]
            assert comparable(ours.body.decode(), kind) == comparable(theirs["text"], kind), said
        assert stored(kernel) == theirs["files"], said


def ends_in_an_empty_line(text: str | None) -> bool:
    return text is not None and (text == "\n" or text.endswith("\n\n"))


def stored(kernel: Kernel) -> dict[str, str]:
    def row(store: str, number: str, path: str, content: str) -> tuple[str, str]:
        return path, content

    return dict(kernel.store.read_sync(lambda tx: tx.all("files.memories.all_for_index", row)))
