"""Names and abbreviations: `python -m loadtests.quality.names` tells how often the memory with that name is the first.

Of the statements in names.txt each group has one form, and names that the tokenizer of the index hardly tells apart.
The abbreviations are those of the kernel's own list, so that set is in sight: of each a statement has the words and the
question the abbreviation, or the reverse.
"""

import random
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from loadtests.lib.servers import quipu, table
from loadtests.quality.mcp_client import Caller

_FOLDER = Path(__file__).parent
_ABBREVIATIONS = _FOLDER.parents[1] / "kernel" / "search" / "abbreviations.txt"
_PEOPLE = "Anna Bodo Carl Dora Emil Frida Gerd Hans Ines".split()


class Case(NamedTuple):
    """A statement, and (kind, question) pairs that it alone answers."""

    text: str
    questions: Sequence[tuple[str, str]]


def main() -> None:
    """Store the statements of each set in a store of their own, ask, and print a row for each kind."""
    sets = {
        "names": [*_names()],
        "words": [*_abbreviations(asked_short=True)],
        "abbreviations": [*_abbreviations(asked_short=False)],
    }
    rows: list[tuple[str, ...]] = []
    for name, cases in sets.items():
        with tempfile.TemporaryDirectory() as data, quipu(Path(data)) as server:
            caller = Caller(server.port)
            rows += [(name, *row) for row in _judged(caller, cases)]
            caller.close()
    table("names", ("stored", "kind", "questions", "right first", "nothing"), rows)


def _judged(caller: Caller, cases: list[Case]) -> Iterator[tuple[str, ...]]:
    # Neighbours in time count, and neighbours that are alike would count for each other.
    for case in random.Random(5).sample(cases, len(cases)):
        caller.call("save_memory", db="core", content=case.text, category="fact")
    asked = [(kind, case.text, question) for case in cases for kind, question in case.questions]
    for kind in dict.fromkeys(kind for kind, *_ in asked):
        pairs = [(text, question) for own, text, question in asked if own == kind]
        answers = [
            (text, [memory["text"] for memory in caller.call("recall", query=question, limit=3)["memories"]])
            for text, question in pairs
        ]
        first = sum(texts[:1] == [text] for text, texts in answers)
        yield kind, str(len(answers)), str(first), str(sum(not texts for _, texts in answers))


def _names() -> Iterator[Case]:
    for line in (_FOLDER / "names.txt").read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            kind, form, question, names = map(str.strip, line.split("|", 3))
            for person, name in zip(_PEOPLE, (name.replace("~", " ") for name in names.split()), strict=False):
                asked = question.replace("NAME", name)
                text = form.replace("PERSON", person).replace("NAME", name)
                yield Case(text, [(kind, form) for form in (asked, asked.split(" ", 2)[-1], f"{asked}?")])


def _abbreviations(*, asked_short: bool) -> Iterator[Case]:
    lines = (line.partition(" ") for line in _ABBREVIATIONS.read_text(encoding="utf-8").splitlines())
    seen = set[str]()
    for number, (short, _, names) in enumerate(lines):
        words = names.split("|")[0]
        if words not in seen:
            seen.add(words)
            stored, asked = (words, short) if asked_short else (short, words)
            questions = [("alone", asked), ("in a question", f"who gets the {asked} matter")]
            yield Case(f"The {stored} matter goes to person{number}.", questions)


if __name__ == "__main__":
    main()
