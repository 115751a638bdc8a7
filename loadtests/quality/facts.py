"""Forty facts in each language, with questions in other words: `python -m loadtests.quality.facts [LANGUAGE ...]`.

Line n of every file in a folder of `facts/` says the same, `fact | question`: in `natural/` as people ask, with few
words of the fact; in `hard/`, asked with `--hard`, without any of its nouns and verbs. Each language's facts are in a
store of their own and are asked by `recall` in that language and in English, and the English ones in every language;
then again without the right one. Odd lines are for choosing constants, even ones judge them; `--wrong` shows what the
odd ones miss.
"""

import argparse
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from handlers.common import retrieval
from handlers.common.schemas import Floor, Recall
from kernel.search import index
from kernel.server.app import Kernel
from kernel.store.transaction import Tx
from loadtests.lib.servers import table
from loadtests.quality import in_process
from loadtests.quality.dataset import Collection, Doc

FOLDER = Path(__file__).with_suffix("")
KINDS = ("natural", "hard")
ENGLISH = "english"
_SPACE = "sessions"
_SHOWN = 3
_FACTS = 40
# Same language; then a question in it over the English facts, an English one over its facts, and both together.
_HEADER = (
    "",
    "first",
    "hit@3",
    "empty",
    "asks English",
    "asked in it",
    "shown",
    "silent",
    "same silent",
    "wrong, strong",
)


class Fact(NamedTuple):
    """A statement, and a question that it answers in other words."""

    text: str
    question: str


class Answer(NamedTuple):
    """The hits of a question that reach the floor, best first, and those without the right one: number and strength."""

    line: int
    asked: str
    stored: str
    hits: list[tuple[int, float]]
    without: list[tuple[int, float]]

    @property
    def rank(self) -> int:
        """The position of the right one, from 0; as many as there could be if it is not there."""
        return next((at for at, (line, _) in enumerate(self.hits) if line == self.line), _FACTS)

    @property
    def strong(self) -> int:
        """The number of wrong hits that are strong."""
        wrong = [strength for line, strength in [*self.hits, *self.without] if line != self.line]
        return sum(strength >= index.least("strong") for strength in wrong)


def names() -> list[str]:
    """The languages, English first."""
    files = (FOLDER / KINDS[0]).glob("*.txt")
    return sorted((file.stem for file in files), key=lambda name: (name != ENGLISH, name))


def facts(language: str, kind: str = KINDS[0]) -> list[Fact]:
    """The facts of a language, in order."""
    lines = (FOLDER / kind / f"{language}.txt").read_text(encoding="utf-8").splitlines()
    return [Fact(*line.split(" | ")) for line in lines]


def ask(stored: str, languages: Iterable[str], floor: Floor = "weak", kind: str = KINDS[0]) -> list[Answer]:
    """Ask for each fact of a language in each of several languages."""
    docs = [Doc(str(line), fact.text, "home") for line, fact in enumerate(facts(stored, kind))]
    asked = {name: facts(name, kind) for name in languages}
    answers: list[Answer] = []
    with in_process.filled(Collection(stored, docs, [])) as (kernel, _):
        whole = {name: [_hits(kernel, fact.question, floor) for fact in every] for name, every in asked.items()}
        for line, doc in enumerate(docs):
            kernel.store.write_sync(partial(index.drop, space=_SPACE, key=doc.id))
            for name, every in asked.items():
                without = _hits(kernel, every[line].question, floor)
                answers.append(Answer(line, name, stored, whole[name][line], without))
            kernel.store.write_sync(partial(index.put, space=_SPACE, key=doc.id, text=doc.text, scope=doc.scope))
    return answers


def main() -> None:
    """Ask, and print a row for each language and the means of both halves."""
    parser = argparse.ArgumentParser(description="Forty facts in each language")
    parser.add_argument("languages", nargs="*", default=names())
    parser.add_argument("--wrong", action="store_true", help="show the questions of odd lines whose fact is not first")
    parser.add_argument("--hard", action="store_const", dest="kind", const="hard", default="natural")
    parser.add_argument("--floor", choices=("none", "weak", "strong"), default="weak")
    options = parser.parse_args()
    others = [name for name in options.languages if name != ENGLISH]
    answers = ask(ENGLISH, [ENGLISH, *others], options.floor, options.kind)
    for name in others:
        answers += ask(name, [name, ENGLISH], options.floor, options.kind)
    if options.wrong:
        for answer in answers:
            if answer.rank and not answer.line % 2:
                _show(answer, options.kind)
    rows = [(name, *figures(answers, name)) for name in options.languages]
    for half, title in enumerate(("mean of the odd lines", "mean of the even lines")):
        halves = [answer for answer in answers if answer.line % 2 == half]
        *shares, strong = zip(*(figures(halves, name) for name in others), strict=True)
        rows.append((title, *map(fmean, shares), sum(strong)))
    table(f"forty facts, {options.kind} questions", _HEADER, rows)


def figures(answers: Sequence[Answer], name: str) -> tuple[float, ...]:
    """The columns of the table for a language."""
    same, to_english, of_english = (
        [answer for answer in answers if (answer.asked, answer.stored) == pair]
        for pair in ((name, name), (name, ENGLISH), (ENGLISH, name))
    )
    across = [*to_english, *of_english]
    return (
        _share(answer.rank == 0 for answer in same),
        _share(answer.rank < _SHOWN for answer in same),
        _share(not answer.hits for answer in same),
        _share(answer.rank == 0 for answer in to_english),
        _share(answer.rank == 0 for answer in of_english),
        _share(answer.rank < _FACTS for answer in across),
        _share(not answer.without for answer in across),
        _share(not answer.without for answer in same),
        sum(answer.strong for answer in [*same, *(across if name != ENGLISH else [])]),
    )


def _share(values: Iterable[bool]) -> float:
    return fmean(map(float, values))


def _show(answer: Answer, kind: str) -> None:
    known = facts(answer.stored, kind)
    print(f"{answer.asked}: {facts(answer.asked, kind)[answer.line].question} -> {known[answer.line].text}")
    for line, strength in answer.hits[:_SHOWN]:
        print(f"    {strength:.2f} {known[line].text}")


def _hits(kernel: Kernel, question: str, floor: Floor) -> list[tuple[int, float]]:
    def recalled(tx: Tx) -> list[tuple[int, float]]:
        request = Recall(query=question, floor=floor, limit=_FACTS)
        ranked = retrieval.find(tx, retrieval.prepare(tx, request, None))[1]
        return [(int(item.document.key), item.scored.strength if item.scored else 0.0) for item in ranked.items]

    return kernel.store.read_sync(recalled)


if __name__ == "__main__":
    main()
