"""Choose the threshold of smart_save_memory: precision and recall of near-duplicate detection by distance.

Half of the arriving texts are rewordings of stored ones, the other half are new but similar. A text is flagged if a
stored text that says the same is closer than the threshold. The texts are facts about people (`paraphrases.py`),
questions (`question_families.py`) and the notes of `loadtests/lib/corpus.py`.

`--pairs FILE` judges pairs of texts, JSON lines with `a`, `b` and a `label` of 0 or 1.

`--docs FILE` adds texts written by people, as JSON lines with `scope` and `text`: half of each scope is stored, the
other half and small edits of the first arrive. Half of the families and scopes choose the threshold, the rest is held
out.
"""

import random
from collections.abc import Sequence
from itertools import groupby, islice
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from kernel.core.config import MODEL
from kernel.embed.model import Embedder
from kernel.search.equivalence import is_same_to, tell_apart
from loadtests.lib import corpus
from loadtests.lib.servers import options, table
from loadtests.quality import paraphrases, question_families

STEPS = tuple(round(0.2 + 0.05 * step, 2) for step in range(15))
_CANDIDATES = 20  # as in smart_save_memory
_LEAST_COSINE = 0.5  # a distance of 1, beyond all steps
_FAR = 2.0  # the distance where nothing says the same
WANTED = 0.95
_SHORTEST = 6
_NOTES = 2000
_OPENINGS = ("Note: {}", "Remember that {}", "{} (as of today)", "As far as I know, {}")


class Set(NamedTuple):
    """Stored texts, arriving duplicates, and arriving new texts."""

    name: str
    stored: list[str]
    known: list[str]
    new: list[str]


class Curve(NamedTuple):
    """Distances to the nearest stored text, of duplicates and of new texts."""

    name: str
    known: list[float]
    new: list[float]


class Pair(msgspec.Struct):
    """Two texts, and whether they are equal."""

    a: str
    b: str
    label: int


class Text(msgspec.Struct):
    """One text written by a person."""

    scope: str
    text: str


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the curves, and the highest threshold with the wanted precision on every training set."""
    chosen = options(
        __doc__,
        arguments,
        docs={"type": Path, "nargs": "*", "default": [], "help": "texts written by people"},
        pairs={"type": Path, "nargs": "*", "default": [], "help": "pairs of texts with labels"},
    )
    notes = [
        [memory.text for memory in islice(corpus.memories(2 * _NOTES), start, _NOTES + start)] for start in (0, _NOTES)
    ]
    fitted = [
        built("facts, fitted", paraphrases.FITTED),
        asked("questions, fitted", question_families.FITTED),
        edited("notes, fitted", notes[:1]),
    ]
    held_out = [
        built("facts, held out", paraphrases.HELD_OUT),
        asked("questions, held out", question_families.HELD_OUT),
        edited("notes, held out", notes[1:]),
    ]
    for file in chosen.docs:
        scopes = by_scope(file)
        half = (len(scopes) + 1) // 2
        fitted.append(edited(f"{file.parent.name}, fitted", scopes[:half]))
        held_out.append(edited(f"{file.parent.name}, held out", scopes[half:]))
    embedder = Embedder(MODEL)
    fit, rest = [curve(embedder, one) for one in fitted], [curve(embedder, one) for one in held_out]
    rest += [curve_of_pairs(embedder, file) for file in chosen.pairs]
    for one in (*fit, *rest):
        rows = [(f"{step:.2f}", *measured(one, step)) for step in STEPS]
        table(
            f"{one.name}: {len(one.known)} duplicates, {len(one.new)} new", ("distance <", "precision", "recall"), rows
        )
    picked = max((step for step in STEPS if all(measured(one, step)[0] >= WANTED for one in fit)), default=0.0)
    print(f"\nhighest threshold with a precision of {WANTED} on every training set: {picked:.2f}")
    table("held out, at that threshold", ("set", "precision", "recall"), [(c.name, *measured(c, picked)) for c in rest])
    return 0


def built(name: str, families: str) -> Set:
    """Facts about half of the people are stored. Duplicates are their facts reworded or with an opening; new texts are
    newer values, and the same facts about the other half, in every wording.
    """
    every = paraphrases.facts(families)
    people = set(paraphrases.PEOPLE[::2])
    stored = [fact for fact in every if fact.who in people]
    known: list[str] = []
    for at, fact in enumerate(stored):
        opened = _OPENINGS[at % len(_OPENINGS)].format(fact.wordings[0])
        known.append((fact.wordings[1], fact.wordings[2], opened)[at % 3])
    others = [fact for fact in every if fact.who not in people]
    others += [paraphrases.newer(families, fact) for fact in stored[::3]]
    new = [fact.wordings[at % 3] for at, fact in enumerate(others)]
    return Set(name, [fact.wordings[0] for fact in stored], known, new)


def asked(name: str, families: str) -> Set:
    """One wording of every question is stored. Duplicates are the other wordings; new are other questions."""
    stored, known, new = list[str](), list[str](), list[str]()
    for family in question_families.read(families):
        stored += [family.same[0].format(v=value) for value in family.values[::2]]
        known += [wording.format(v=value) for value in family.values[::2] for wording in family.same[1:]]
        new += [wording.format(v=value) for value in family.values[::2] for wording in family.others]
        new += [wording.format(v=value) for value in family.values[1::2] for wording in family.same]
    return Set(name, stored, known, new)


def edited(name: str, scopes: list[list[str]]) -> Set:
    """Texts written by people: every second one of a scope is stored; duplicates drop words or add an opening."""
    chance = random.Random(7)
    stored = [text for scope in scopes for text in scope[::2]]
    return Set(
        name, stored, [edit(text, chance) for text in stored], [text for scope in scopes for text in scope[1::2]]
    )


def edit(text: str, chance: random.Random) -> str:
    """A reworded text: one word in eight dropped, sentences reordered, and sometimes an opening added."""
    sentences = [part.strip() for part in text.replace("!", ".").replace("?", ".").split(".") if part.strip()]
    words = ". ".join(reversed(sentences)).split()
    gone = set(chance.sample(range(len(words)), len(words) // 8))
    kept = " ".join(word for at, word in enumerate(words) if at not in gone)
    return chance.choice(_OPENINGS).format(kept) if chance.random() < 0.5 else kept


def by_scope(file: Path) -> list[list[str]]:
    """The distinct texts of each scope, of a few words at least; a single big scope is split in ten."""
    decoded = [msgspec.json.decode(line, type=Text) for line in file.read_bytes().splitlines()]
    scopes = [
        [text for text in dict.fromkeys(row.text for row in group) if len(text.split()) >= _SHORTEST]
        for _, group in groupby(decoded, key=lambda row: row.scope)
    ]
    if len(scopes) > 1:
        return scopes
    size = len(scopes[0]) // 10
    return [scopes[0][at * size : (at + 1) * size] for at in range(10)]


def curve(embedder: Embedder, one: Set) -> Curve:
    """The distance of every arriving text to the nearest stored one that says the same."""
    stored = _unit(embedder, one.stored)

    def nearest(text: str) -> float:
        cosines = stored @ _unit(embedder, [text])[0]
        near = [int(at) for at in np.argsort(-cosines, kind="stable")[:_CANDIDATES] if cosines[at] > _LEAST_COSINE]
        same = next((at for at in near if is_same(embedder, text, one.stored[at])), None)
        return _FAR if same is None else _distance(float(cosines[same]))

    return Curve(one.name, [nearest(text) for text in one.known], [nearest(text) for text in one.new])


def curve_of_pairs(embedder: Embedder, file: Path) -> Curve:
    """The distances of pairs that say the same, by their labels."""
    found: tuple[list[float], list[float]] = ([], [])
    for line in file.read_bytes().splitlines():
        pair = msgspec.json.decode(line, type=Pair)
        one, other = _unit(embedder, [pair.a, pair.b])
        found[pair.label].append(_distance(float(one @ other)) if is_same(embedder, pair.a, pair.b) else _FAR)
    return Curve(file.parent.name, found[1], found[0])


def is_same(embedder: Embedder, one: str, other: str) -> bool:
    """The decision of the server, whatever the distance."""
    first, second = embedder.embed([one, other])
    return not tell_apart(one, other) and is_same_to(embedder, one, first, within=_FAR)(other, second)


def measured(one: Curve, threshold: float) -> tuple[float, float]:
    """Precision and recall at a threshold, weighted to as many new texts as duplicates."""
    hit = sum(distance < threshold for distance in one.known) / len(one.known)
    wrong = sum(distance < threshold for distance in one.new) / len(one.new)
    return (hit / (hit + wrong) if hit + wrong else 1.0), hit


def _distance(cosine: float) -> float:
    return float(np.sqrt(max(0.0, 2.0 - 2.0 * cosine)))


def _unit(embedder: Embedder, texts: list[str]) -> np.ndarray:
    rows = [np.frombuffer(one.vector, np.int8).astype(np.float32) for one in embedder.embed(texts)]
    matrix = np.array(rows)
    return matrix / np.maximum(np.linalg.norm(matrix, axis=1, keepdims=True), 1e-9)


if __name__ == "__main__":
    raise SystemExit(main())
