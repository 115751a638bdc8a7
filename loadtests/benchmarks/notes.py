"""Memories in files: the first index, recall after a manual edit, the file scan against a full read."""

import http.client
import json
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any

from handlers.notes.files import read_all
from handlers.notes.memory_types import BUILT_IN
from handlers.notes.scan import scan
from kernel.core.config import Config
from kernel.engines.sqlite.connection import Connection
from kernel.server import app
from kernel.store.context import CallContext
from loadtests.lib import corpus
from loadtests.lib.servers import Server, budget, budgets, finish, machine, options, paired, quipu, rounds, table

_SIZE = 10_000
_QUIET = 2.5  # seconds after which the stamp of a file proves that it has not changed
_NOON = "2026-02-16T10:30:00.000Z"
_HEAD = f"---\nmemory_type: {{kind}}\ntags: [bench]\ncreated: {_NOON}\nmodified: {_NOON}\n---\n\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; return 1 if an answer was wrong."""
    chosen = options(__doc__, arguments, size={"type": int, "default": _SIZE, "help": "files in the project"})
    machine()
    size = 500 if chosen.quick else chosen.size
    turns = chosen.rounds or (3 if chosen.quick else 15)
    with tempfile.TemporaryDirectory() as temporary:
        data = Path(temporary)
        folder = data / "notes" / ".mnemonics"
        files = _filled(folder, size)
        with quipu(data) as server:
            complaints = _served(server, files, turns)
        _inside(data, turns)
    return finish(complaints)


def _filled(folder: Path, size: int) -> list[Path]:
    files: list[Path] = []
    for number, memory in enumerate(corpus.memories(size)):
        kind = BUILT_IN[number % len(BUILT_IN)].name
        file = folder / kind / f"{memory.path.rpartition('/')[2]}-{number}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(_HEAD.format(kind=kind) + memory.text + "\n", encoding="utf-8")
        files.append(file)
    return files


class _Recalls:
    """Recalls over HTTP, each timed where it counts; `complaints` has the answers that were wrong."""

    def __init__(self, port: int, question: str) -> None:
        self.complaints: list[str] = []
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
        self._question = question
        self._words = (f"quipumark{number}" for number in count())

    def asked(self, query: str, **more: Any) -> list[Any]:
        """The memories found."""
        body = json.dumps({"query": query, **more})
        self._connection.request("POST", "/tools/memory_recall", body, {"content-type": "application/json"})
        return json.loads(self._connection.getresponse().read())["memories"]

    def seconds(self) -> float:
        """How long the recall of the question takes."""
        return _timed(lambda: self.asked(self._question))

    def seconds_after_edit(self, file: Path) -> float:
        """The same after a line was added to a file, which the next recall must find."""
        word = next(self._words)
        with file.open("a", encoding="utf-8") as opened:
            opened.write(f"{word}\n")
        time.sleep(0.01)
        taken = self.seconds()
        if [memory["path"] for memory in self.asked(word, type="search", limit=1)] != [str(file)]:
            self.complaints.append(f"{word} was not found in {file.name}")
        return taken


def _served(server: Server, files: Sequence[Path], turns: int) -> list[str]:
    recalls = _Recalls(server.port, corpus.question(len(files) // 2).text)
    first = recalls.seconds()
    time.sleep(_QUIET)
    recalls.seconds()  # takes the freshest files for settled
    if len(recalls.asked("bench", type="search", limit=1000)) != min(1000, len(files)):
        recalls.complaints.append("not every file was found")
    turn = iter(files)
    plain, after = rounds(
        turns, {"plain": recalls.seconds, "after": lambda: recalls.seconds_after_edit(next(turn))}
    ).values()
    rate = len(files) / first
    rows = [
        (f"first recall, which reads and indexes them all ({rate:,.0f} files/s)", first * 1e3),
        ("recall, nothing changed", median(plain) * 1e3),
        ("recall after one hand edit", median(after) * 1e3),
    ]
    table(f"{len(files):,} files over HTTP", ("", "ms"), rows)
    budgets([budget("recall after one manual edit / recall", paired(after, plain), 1.5)])
    return recalls.complaints


def _inside(data: Path, turns: int) -> None:
    """The scan before a recall, in this process: file stamps alone, and compared with the rows."""
    root, config = data / "notes", Config(data)
    db = Connection(config.file, app.context_of(config), readonly=True)
    db.load_vectors()
    paths = list(_stamps(root))

    def checked(name: str) -> Callable[[], float]:
        first = next(tool.hooks.precheck for dialect in app.DIALECTS for tool in dialect.tools if tool.name == name)
        return lambda: _timed(lambda: db.read(CallContext(), lambda tx: first and first.check(tx, None)))

    sides: dict[str, Callable[[], float]] = {
        "look at every entry": lambda: _timed(lambda: scan(root)),
        "read every file": lambda: _timed(lambda: sum(1 for _ in read_all(root, paths))),
        "the check of a recall: look and compare": checked("memory_recall"),
        "the check of a sync: look, read and compare": checked("memory_sync"),
    }
    seen = rounds(turns, sides)
    db.close()
    table("in one process", ("", "ms"), [(name, median(side) * 1e3) for name, side in seen.items()])
    look, full, check, check_all = seen.values()
    budgets(
        [budget("look / read", paired(look, full), 0.5), budget("check / full check", paired(check, check_all), 0.35)]
    )


def _stamps(root: Path) -> Iterator[str]:
    seen = scan(root)
    yield from seen.stamps if seen else ()


def _timed(work: Callable[[], Any]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


if __name__ == "__main__":
    raise SystemExit(main())
