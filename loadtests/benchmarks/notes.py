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
from kernel import app
from kernel.config import Config
from kernel.store.context import CallContext
from kernel.store.sqlite.connection import Connection
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
            complaints = _served(server, folder, files, turns)
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


def _served(server: Server, folder: Path, files: Sequence[Path], turns: int) -> list[str]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=600)
    words = (f"quipumark{number}" for number in count())
    question = corpus.question(len(files) // 2).text
    complaints: list[str] = []

    def recall(query: str, **more: Any) -> list[Any]:
        body = json.dumps({"query": query, **more})
        connection.request("POST", "/tools/memory_recall", body, {"content-type": "application/json"})
        answer = json.loads(connection.getresponse().read())
        return answer["memories"]

    first = _timed(lambda: recall(question))
    time.sleep(_QUIET)
    recall(question)  # takes the freshest files for settled
    if len(recall("bench", type="search", limit=1000)) != min(1000, len(files)):
        complaints.append("not every file was found")

    def edited(word: str, file: Path) -> float:
        with file.open("a", encoding="utf-8") as opened:
            opened.write(f"{word}\n")
        time.sleep(0.01)
        taken = _timed(lambda: recall(question))
        found = recall(word, type="search", limit=5)
        if [memory["path"] for memory in found] != [str(file)]:
            complaints.append(f"{word} was not found in {file.name}")
        return taken

    turn = iter(range(len(files)))
    seen = rounds(
        turns,
        {
            "recall": lambda: _timed(lambda: recall(question)),
            "recall after one hand edit": lambda: edited(next(words), files[next(turn)]),
        },
    )
    plain, after = seen["recall"], seen["recall after one hand edit"]
    rate = len(files) / first
    table(
        f"{len(files):,} files over HTTP",
        ("", "ms"),
        [
            (f"first recall, which reads and indexes them all ({rate:,.0f} files/s)", first * 1e3),
            ("recall, nothing changed", median(plain) * 1e3),
            ("recall after one hand edit", median(after) * 1e3),
        ],
    )
    budgets([budget("recall after one manual edit / recall", paired(after, plain), 1.5)])
    return complaints


def _inside(data: Path, turns: int) -> None:
    """The scan before a recall, in this process: file stamps alone, and compared with the rows."""
    root, config = data / "notes", Config(data)
    db = Connection(config.file, app.context_of(config), readonly=True)
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
