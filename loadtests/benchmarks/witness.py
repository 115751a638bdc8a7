"""Processor time of the words on files that memories name: of a hook in a large checkout, and of a recall.

Hooks start sessions in a checkout of 100,000 files that git has made, with and without the words: where nothing has
changed, where three files are gone, so that git's index is searched, and where all places are met for the first time
and are younger than their memories, so that git's history is read. With `--against` the server of another checkout
answers the same recalls of memories that name files, and the ratio of processor time is printed.
"""

import http.client
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import NamedTuple

from kernel.cli.witness import CHANGED, FRESH, GONE
from loadtests.lib import corpus, http_requests
from loadtests.lib.http_load import drive
from loadtests.lib.servers import (
    ROOT,
    Server,
    budget,
    budgets,
    clean_environ,
    finish,
    machine,
    options,
    paired,
    quipu,
    rounds,
    table,
)

_MEMORIES, _PLACES = 20, 3  # places that each names; a session shows the newest five memories
_RECALLED, _QUESTIONS = 2000, 200
_FOLDER_FILES, _LINES = 100, 12
_DAY = 86_400
_HOOK = """
import json, sys
from kernel.cli import hook_client, witness
if {plain}:
    post = hook_client.post
    def plainly(url, path, key, body, *rest):
        return post(url, path, key, json.dumps({{**json.loads(body), "mark": ""}}).encode(), *rest)
    hook_client.post, witness.judged = plainly, lambda answer, mark, folder: (answer, b"")
hook_client.main(sys.argv[1:])
"""


class Spent(NamedTuple):
    """Milliseconds of one hook: of its processor time, and by the clock."""

    cpu: float
    wall: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; return 1 if an answer was wrong."""
    chosen = options(
        __doc__,
        arguments,
        rounds=200,
        files={"type": int, "default": 100_000, "help": "files of the checkout"},
        against={"type": Path, "help": "another checkout, whose server answers the same recalls"},
    )
    machine()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary).resolve()
        if chosen.against:
            return _recalls(folder, chosen.against, max(3, chosen.rounds // 10))
        return _hooks(folder, 3000 if chosen.quick else chosen.files, max(3, chosen.rounds))


def _hooks(folder: Path, files: int, count: int) -> int:
    checkout = Checkout(folder / "web", files)
    complaints: list[str] = []
    rows: list[tuple[str, float, float, float, float]] = []
    surplus: list[tuple[str, str, str, str]] = []
    with quipu(folder / "data") as server:
        hook = partial(_hook, server, folder)
        for title, word, before_each in (
            ("nothing has changed", FRESH, bytes),
            ("met for the first time", CHANGED, partial(_meet_anew, server, checkout)),
            ("three files are gone", GONE, checkout.remove),
        ):
            if title == "nothing has changed":
                _meet_anew(server, checkout)
            before_each()
            said = hook(plain=False)[1]
            complaints += [] if word in said else [f"{title}: {said}"]
            sides = {"with": False, "without": True}
            runs = {name: partial(_prepared, before_each, partial(hook, plain=plain)) for name, plain in sides.items()}
            spent = rounds(count, runs)
            both = [_percentile([one[at] for one in spent[name]]) for at in range(2) for name in sides]
            rows.append((title, both[0], both[1], both[2], both[3]))
            surplus.append(budget(f"ms of processor time more, {title}", both[0] - both[1], 10))
    table(
        f"a session in a checkout of {files:,} files, {count} rounds, ms at the 99th percentile",
        ("", "processor, with", "without", "clock, with", "without"),
        rows,
    )
    budgets(surplus)
    return finish(complaints)


class Checkout:
    """A checkout with two commits, between which all files change."""

    def __init__(self, root: Path, files: int) -> None:
        self.root = root
        step = files // (_MEMORIES * _PLACES)
        self.cited = [_path(number * step) for number in range(_MEMORIES * _PLACES)]
        self.edits = 0
        root.mkdir()
        self._git("init", "--quiet", "--initial-branch=main")
        self._git("fast-import", "--quiet", sent=b"".join(_commit(files, value) for value in (1, 2)))
        self._git("reset", "--quiet", "--hard")
        first, second = self._git("rev-list", "--reverse", "main").decode().split()
        now = int(time.time())
        moves = ((first, first, now - _DAY), (first, first, now + _DAY), (first, second, now + 2 * _DAY))
        log = "".join(f"{old} {new} a <a@b.c> {at} +0000\tcommit: x\n" for old, new, at in moves)
        (root / ".git" / "logs").mkdir(exist_ok=True)
        (root / ".git" / "logs" / "HEAD").write_text(log, encoding="utf-8")

    def _git(self, *words: str, sent: bytes = b"") -> bytes:
        return subprocess.run(["git", *words], cwd=self.root, input=sent, capture_output=True, check=True).stdout

    def remove(self) -> None:
        """Remove three files that the newest memory names."""
        for path in self.cited[-_PLACES:]:
            (self.root / path).unlink(missing_ok=True)

    def age(self) -> None:
        """Make all files younger than any memory, so that git's history tells whether they have changed."""
        later = time.time() + 3 * _DAY
        for path in self.cited:
            os.utime(self.root / path, (later, later))


def _commit(files: int, value: int) -> bytes:
    parts = [b"commit refs/heads/main\ncommitter a <a@b.c> %d +0000\ndata 1\nx\n" % (1_700_000_000 + value)]
    for number in range(files):
        lines = "".join(f"name_{number}_{line} = {line}\n" for line in range(_LINES))
        text = f"def run():\n    return {value}, {number}\n\n\n{lines}".encode()
        parts.append(b"M 644 inline %b\ndata %d\n%b\n" % (_path(number).encode(), len(text), text))
    return b"".join(parts)


def _path(number: int) -> str:
    return f"src/part_{number // _FOLDER_FILES}/module_{number}.py"


def _meet_anew(server: Server, checkout: Checkout) -> None:
    """Store the memories, or edit them, after which their places are met anew."""
    if checkout.edits:
        checkout.age()
    for number in range(_MEMORIES):
        names = checkout.cited[number * _PLACES : (number + 1) * _PLACES]
        text = f"Edit {checkout.edits} of fact {number}: {', '.join(f'`run()` of {name}' for name in names)}."
        tool = "replace_memory" if checkout.edits else "add_memory"
        connection = http.client.HTTPConnection("127.0.0.1", server.port)
        body = json.dumps({"path": f"web/{number}", "content": text})
        connection.request("POST", f"/tools/{tool}", body, {"content-type": "application/json"})
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
        connection.close()
    checkout.edits += 1


def _prepared(prepare: Callable[[], object], run: Callable[[], tuple[Spent, str]]) -> Spent:
    prepare()
    return run()[0]


def _hook(server: Server, folder: Path, *, plain: bool) -> tuple[Spent, str]:
    """Start a session as a client does; return its cost and its output."""
    words = ["session-start", "--client", "claude", "--url", f"http://127.0.0.1:{server.port}"]
    words += ["--data", str(folder / "data")]
    event = {"session_id": os.urandom(8).hex(), "source": "startup", "cwd": str(folder / "web")}
    before, begun = _children(), time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", _HOOK.format(plain=plain), *words],
        input=json.dumps(event).encode(),
        capture_output=True,
        cwd=ROOT,
        env=clean_environ(),
        check=True,
    )
    wall = time.perf_counter() - begun
    return Spent((_children() - before) * 1000, wall * 1000), done.stdout.decode()


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _percentile(values: Sequence[float], share: float = 0.99) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def _recalls(folder: Path, other: Path, count: int) -> int:
    requests = [
        http_requests.mcp("modern", "recall", {"query": question.text}, b'"memories":')
        for question in corpus.questions(_QUESTIONS, _RECALLED)
    ]
    complaints: list[str] = []
    with ExitStack() as stack:
        servers = {
            name: stack.enter_context(quipu(folder / name, checkout=checkout))
            for name, checkout in (("this", None), ("the other", other))
        }
        for server in servers.values():
            texts = [(one.path, f"{one.text} See src/a{at}.py.") for at, one in enumerate(corpus.memories(_RECALLED))]
            adding = [http_requests.mcp("modern", "add_memory", {"path": at, "content": it}, b"") for at, it in texts]
            drive(server.port, adding, callers=16)

        def asked(server: Server) -> float:
            before = server.cpu()
            seen = drive(server.port, requests, callers=1)
            complaints.extend([seen.complaint] if seen.errors else [])
            return (server.cpu() - before) / max(1, seen.replies)

        for server in servers.values():
            asked(server)
        cpu = rounds(count, {name: partial(asked, server) for name, server in servers.items()})
    rows = [(name, min(each) * 1e6, sorted(each)[len(each) // 2] * 1e6) for name, each in cpu.items()]
    table(
        f"recalls of {_RECALLED:,} memories that name files, {count} rounds", ("server", "least cpu us", "median"), rows
    )
    budgets([budget("processor time of a recall over the other's", paired(*cpu.values()), 1.03)])
    return finish(complaints)


if __name__ == "__main__":
    raise SystemExit(main())
