"""Recalls of the same memories from a file and from PostgreSQL: the times, and whether the answers are equal."""

from contextlib import redirect_stdout
from functools import partial
from io import StringIO
from pathlib import Path

from kernel.cli.main import main as command
from loadtests.lib import corpus, store_fixtures
from loadtests.lib.engines import TIMED, Asker, Database, on, tidied
from loadtests.lib.servers import budget, paired, rounds, table

_COMPARED = 300
_BOUND = 1.7


def compared(
    folder: Path, database: Database, sizes: list[int], count: int
) -> tuple[list[tuple[str, str, str, str]], list[str]]:
    """The budgets of recalls, and which answers differ."""
    rows: list[tuple[str, str, str, str]] = []
    wrong: list[str] = []
    for size in sizes:
        address = database.new(f"recall_{size}")
        data = store_fixtures.alone(folder, size)
        copied(data, address)
        questions = [question.text for question in corpus.questions(min(_COMPARED, size), size)]
        with on(data) as file, on(folder / f"postgres-{size}", address) as shared:
            sides = {"SQLite": Asker(file), "PostgreSQL": Asker(shared)}
            ours, theirs = (side.answers(questions) for side in sides.values())
            before = database.cpu()
            found = rounds(count, {name: partial(side.median, size) for name, side in sides.items()})
            used = (database.cpu() - before) / (count * TIMED) * 1000
        _show(size, found, used)
        same = sum(one == other for one, other in zip(ours, theirs, strict=True))
        times = {name: [ms for ms, _ in runs] for name, runs in found.items()}
        over = paired(times["PostgreSQL"], times["SQLite"])
        rows.append(budget(f"p50 of recall over SQLite's, {size:,} memories", over, _BOUND))
        rows.append(budget(f"equal answers, share of {len(questions)}", same / len(questions), 1, least=True))
        if same != len(questions):
            wrong.append(f"{len(questions) - same} of {len(questions)} answers differ over {size:,} memories")
    return rows, wrong


def copied(data: Path, address: str) -> None:
    """Copies a data directory into a database, where a vacuum then has been."""
    with redirect_stdout(StringIO()):
        if command(["store", "copy", str(data), address]):
            raise RuntimeError(f"{data} was not copied")
    tidied(address)


def _show(size: int, found: dict[str, list[tuple[float, float]]], used: float) -> None:
    rows = [
        (name, min(ms for ms, _ in runs), min(cpu for _, cpu in runs), used if name == "PostgreSQL" else 0.0)
        for name, runs in found.items()
    ]
    header = ("side", "p50 ms", "cpu ms of the server", "of the database")
    table(f"recall over {size:,} memories, {len(found['SQLite'])} rounds (the least)", header, rows)
