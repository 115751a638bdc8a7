"""Old and new: `python -m loadtests.quality.succession` tells how often the newer of two statements is the first hit.

The pairs of succession.txt are stored over HTTP, all older ones first, then each question is asked. Of a control the
older statement answers, and the newer one is about another subject.
"""

import tempfile
from pathlib import Path
from typing import NamedTuple

from loadtests.lib.servers import quipu, table
from loadtests.quality.mcp_client import Caller

_FILE = Path(__file__).with_suffix(".txt")


class Pair(NamedTuple):
    """Two statements and a question; of a control the first answers it, else the second."""

    kind: str
    older: str
    newer: str
    question: str


def pairs() -> list[Pair]:
    """Return the pairs of the file, in order."""
    lines = _FILE.read_text(encoding="utf-8").splitlines()
    return [Pair(*(part.strip() for part in line.split("|"))) for line in lines if "|" in line and line[0] != "#"]


def main() -> None:
    """Store, ask, and print a row for each half and kind."""
    rows: list[tuple[str, ...]] = []
    with tempfile.TemporaryDirectory() as data, quipu(Path(data)) as server:
        caller = Caller(server.port)
        everything = pairs()
        for name in ("older", "newer"):
            for number, pair in enumerate(everything):
                caller.call("add_memory", path=f"{pair.kind}/{number}/{name}", content=getattr(pair, name))
        for kind, wanted in (("old", "newer"), ("control", "older")):
            chosen = [(number, pair) for number, pair in enumerate(everything) if pair.kind == kind]
            for half in (0, 1):
                answers = [(pair, number, _ids(caller, pair)) for number, pair in chosen[half::2]]
                first = sum(f"paths/{kind}/{number}/{wanted}" == ids[0] for _, number, ids in answers if ids)
                within = sum(f"paths/{kind}/{number}/{wanted}" in ids for _, number, ids in answers)
                for pair, number, ids in answers:
                    if not ids or ids[0] != f"paths/{kind}/{number}/{wanted}":
                        print(f"  {pair.question}: {ids[:2]}")
                half_name = ("choosing", "judging")[half]
                share = f"{first / len(answers):.2f}", f"{within / len(answers):.2f}"
                rows.append((kind, half_name, str(len(answers)), *share))
        caller.close()
    table("succession", ("kind", "half", "questions", "right first", "in the answer"), rows)


def _ids(caller: Caller, pair: Pair) -> list[str]:
    return [memory["id"] for memory in caller.call("recall", query=pair.question)["memories"]]


if __name__ == "__main__":
    main()
