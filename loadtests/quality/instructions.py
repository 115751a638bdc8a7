"""Standing instructions: `python -m loadtests.quality.instructions` asks requests on which one bears, and questions of
the same subjects that another memory answers.

All stand in one store among the statements of succession.py, and those of a collection if FOLDER is named. Every second
line of instructions.txt was for choosing, the others judge.
"""

import sys
import tempfile
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from loadtests.lib.servers import quipu, table
from loadtests.quality.dataset import read
from loadtests.quality.mcp_client import Caller
from loadtests.quality.succession import pairs

_LINES = Path(__file__).with_name("instructions.txt")
_OTHERS = ("succession.txt", "changes.txt", "corrections.txt")


class Line(NamedTuple):
    """An instruction, a request on which it bears, and a question of its subject with the fact that answers it."""

    instruction: str
    request: str
    question: str
    fact: str


def main() -> None:
    """Store, ask, and print a row for each half."""
    lines = [
        Line(*(part.strip() for part in line.split("|")))
        for line in _LINES.read_text(encoding="utf-8").splitlines()
        if line[0] != "#"
    ]
    with tempfile.TemporaryDirectory() as data, quipu(Path(data)) as server:
        caller = Caller(server.port)
        others = chain.from_iterable((pair.older, pair.newer) for name in _OTHERS for pair in pairs(name))
        collection = (doc.text for folder in sys.argv[1:] for doc in read(Path(folder)).docs)
        for number, text in enumerate(chain(others, collection)):
            caller.call("add_memory", path=f"other/{number}", content=text)
        for number, line in enumerate(lines):
            caller.call("add_memory", path=f"instruction/{number}", content=line.instruction)
            caller.call("add_memory", path=f"fact/{number}", content=line.fact)
        rows = [_row(caller, lines, half) for half in range(2)]
        caller.close()
    header = (
        "half",
        "requests",
        "bearing first",
        "in three",
        "in ten",
        "all",
        "questions",
        "fact first",
        "instructions",
    )
    table("instructions", header, rows)


def _row(caller: Caller, lines: list[Line], half: int) -> tuple[str, ...]:
    chosen = [*enumerate(lines)][half::2]
    places = [(_ids(caller, line.request), f"paths/instruction/{number}") for number, line in chosen]
    within = [sum(wanted in ids[:most] for ids, wanted in places) for most in (1, 3, 10)]
    answers = [(_ids(caller, line.question), f"paths/fact/{number}") for number, line in chosen]
    first = sum(ids[:1] == [fact] for ids, fact in answers)
    all_, beside = (
        sum(id_.startswith("paths/instruction/") for ids, _ in asked for id_ in ids) for asked in (places, answers)
    )
    for ids, wanted in (*places, *answers):
        if wanted not in ids[: 1 if "fact" in wanted else 10]:
            print(f"  {wanted}: {ids[:3]}")
    counts = (len(chosen), *within, all_, len(chosen), first, beside)
    return (("choosing", "judging")[half], *map(str, counts))


def _ids(caller: Caller, question: str) -> list[str]:
    return [memory["id"] for memory in caller.call("recall", query=question)["memories"]]


if __name__ == "__main__":
    main()
