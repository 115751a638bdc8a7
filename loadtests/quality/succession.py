"""Old and new: `python -m loadtests.quality.succession` tells how often the newer of two statements is the first hit.

With names of files it asks about these sets alone.

The pairs are stored over HTTP, all older ones first, then each question is asked. Of a control the older statement
answers, and the newer one is about another subject. succession.txt was in sight while the rule was chosen; every second
of its lines was for choosing. changes.txt was written after the rule, by wordings; corrections.txt after that, in other
domains and languages: its first half was judged once, then the rules were mended, and its second half was judged once.
Of subjects.txt, written after those, every second line was for choosing; counts and texts of the others were seen while
the rules were mended. domains.txt was judged once, by what failed the rules were mended again. everyday.txt is the half
of a set that was judged once, after the rules were mended by the other half. mixed.txt was written last and judged
once, and nothing was changed by what it shows. By more_languages.txt the words of change were chosen. Misses are
printed but those of a half for judging.
"""

import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from loadtests.lib.servers import quipu, table
from loadtests.quality.mcp_client import Caller

_FOLDER = Path(__file__).parent
_SETS = (
    ("succession.txt", ("choosing", "judging")),
    ("changes.txt", ("judging",)),
    ("corrections.txt", ("judging",)),
    ("subjects.txt", ("choosing", "judging")),
    ("qualified.txt", ("choosing",)),
    ("domains.txt", ("judging",)),
    ("everyday.txt", ("judging",)),
    ("mixed.txt", ("judging",)),
    ("more_languages.txt", ("choosing",)),
)


class Pair(NamedTuple):
    """Two statements and a question; of a control the first answers it, else the second."""

    kind: str
    older: str
    newer: str
    question: str = ""


def pairs(name: str) -> list[Pair]:
    """Return the pairs of a file, in order."""
    lines = (_FOLDER / name).read_text(encoding="utf-8").splitlines()
    return [Pair(*(part.strip() for part in line.split("|"))) for line in lines if "|" in line and line[0] != "#"]


def main() -> None:
    """Store, ask, and print a row for each kind of each file, and each half of the first."""
    rows: list[tuple[str, ...]] = []
    for name, halves in _SETS:
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        with tempfile.TemporaryDirectory() as data, quipu(Path(data)) as server:
            caller = Caller(server.port)
            rows += [(name, *row) for row in _judged(caller, pairs(name), halves)]
            caller.close()
    table("succession", ("set", "kind", "half", "questions", "right first", "in the answer"), rows)


def _judged(caller: Caller, everything: list[Pair], halves: tuple[str, ...]) -> list[tuple[str, ...]]:
    for name in ("older", "newer"):
        for number, pair in enumerate(everything):
            caller.call("add_memory", path=f"{pair.kind}/{number}/{name}", content=getattr(pair, name))
    rows: list[tuple[str, ...]] = []
    for kind in dict.fromkeys(pair.kind for pair in everything):
        wanted = "older" if kind == "control" else "newer"
        chosen = [(number, pair) for number, pair in enumerate(everything) if pair.kind == kind]
        for half, half_name in enumerate(halves):
            answers = [(pair, number, _ids(caller, pair)) for number, pair in chosen[half :: len(halves)]]
            first = sum(f"paths/{kind}/{number}/{wanted}" == ids[0] for _, number, ids in answers if ids)
            within = sum(f"paths/{kind}/{number}/{wanted}" in ids for _, number, ids in answers)
            for pair, number, ids in answers if half_name == halves[0] else ():
                if not ids or ids[0] != f"paths/{kind}/{number}/{wanted}":
                    print(f"  {pair.question}: {ids[:2]}")
            share = f"{first / len(answers):.2f}", f"{within / len(answers):.2f}"
            rows.append((kind, half_name, str(len(answers)), *share))
    return rows


def _ids(caller: Caller, pair: Pair) -> list[str]:
    return [memory["id"] for memory in caller.call("recall", query=pair.question)["memories"]]


if __name__ == "__main__":
    main()
