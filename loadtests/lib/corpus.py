"""Synthetic memories of agents and questions about them, from `vocabulary`; the same on every machine.

A memory keeps to one field of life. Its words follow a Zipf-like law: mostly those of the field, some general ones, and
a long tail of coined ones, so that full-text frequencies and the spread of embeddings look like those of real notes.
"""

import itertools
import math
import random
from bisect import bisect
from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

from loadtests.lib.vocabulary import (
    FIELDS,
    GENERAL,
    LANGUAGES,
    MORE,
    OPENINGS,
    PEOPLE,
    PREFIXES,
    QUESTIONS,
    ROOTS,
    SUFFIXES,
)

_KINDS = (("notes", 0.36), ("decisions", 0.62), ("preferences", 0.78), ("incidents", 0.91), ("snippets", 1.0))
_OWN, _SHARED = 0.72, 0.88
_NAMED = 0.7  # the share of memories that are about something with a name of its own
_ASKED = 4
_TAIL = 40_000
_LEAN, _SHIFT = 0.9, 6.0


class Memory(NamedTuple):
    """One memory: its path, its text, and its topic words."""

    path: str
    text: str
    topic: tuple[str, ...]


class Question(NamedTuple):
    """A question in plain words, and the path of the memory that answers it."""

    text: str
    path: str


def memory(number: int) -> Memory:
    """The memory of a number; memories of different numbers are independent."""
    chance = random.Random(number * 2_654_435_761 + 17)
    share = chance.random()
    kind = next(name for name, upto in _KINDS if share <= upto)
    field = _pick(chance, _fields())
    words = [_word(chance, field) for _ in range(6)]
    if chance.random() < _NAMED:
        words[int(chance.random() * _ASKED)] = _of(chance, _tail())
    parts = [_pick(chance, OPENINGS[kind]).format(**_slots(chance, words))]
    for _ in range(min(9, int(math.exp(chance.gauss(1.2, 0.6))))):
        more = [_word(chance, field) for _ in range(4)]
        parts.append(_pick(chance, MORE).format(**_slots(chance, more + words[:2])))
    return Memory(f"{kind}/{field}/{_slug(number)}", " ".join(parts), tuple(words[:_ASKED]))


def memories(count: int, first: int = 0) -> Iterator[Memory]:
    """`count` memories from the number `first` on."""
    return (memory(number) for number in range(first, first + count))


def question(number: int) -> Question:
    """A question about the memory of a number."""
    chance = random.Random(number * 40_503 + 5)
    about = memory(number)
    return Question(_pick(chance, QUESTIONS).format(*about.topic), about.path)


def questions(count: int, among: int) -> list[Question]:
    """`count` questions spread over the first `among` memories."""
    step = max(1, among // count)
    return [question(number * step) for number in range(count)]


def _pick(chance: random.Random, choices: Sequence[str]) -> str:
    return choices[int(chance.random() * len(choices))]


def _word(chance: random.Random, field: str) -> str:
    kind = chance.random()
    return _of(chance, FIELDS[field] if kind < _OWN else GENERAL if kind < _SHARED else _tail())


def _of(chance: random.Random, words: Sequence[str]) -> str:
    weights = _weights(len(words))
    return words[bisect(weights, chance.random() * weights[-1], hi=len(words) - 1)]


@cache
def _fields() -> tuple[str, ...]:
    # The first fields stand in there more often, as some are talked about more than others.
    return tuple(name for rank, name in enumerate(FIELDS) for _ in range(max(1, 12 // (rank + 1))))


@cache
def _tail() -> tuple[str, ...]:
    coined = sorted({"".join(parts) for parts in itertools.product(PREFIXES, ROOTS, SUFFIXES)} - set(GENERAL))
    random.Random(7).shuffle(coined)
    return tuple(coined[:_TAIL])


@cache
def _weights(count: int) -> Sequence[float]:
    return list(itertools.accumulate((rank + _SHIFT) ** -_LEAN for rank in range(count)))


def _slug(number: int) -> str:
    """The number spelled in words, so that paths consist of words."""
    digits: list[str] = []
    while number or not digits:
        number, digit = divmod(number, len(GENERAL))
        digits.append(GENERAL[digit])
    return "-".join(digits)


def _slots(chance: random.Random, words: Sequence[str]) -> dict[str, str]:
    slots = dict(zip("abcdfg", words, strict=True))
    slots["n"] = str(int(chance.random() * 500) + 1)
    slots["person"] = _pick(chance, PEOPLE)
    slots["language"] = _pick(chance, LANGUAGES)
    slots["day"] = f"2026-{int(chance.random() * 12) + 1:02d}-{int(chance.random() * 28) + 1:02d}"
    slots["code"] = f"E{int(chance.random() * 9000) + 1000}"
    return slots  # pyrefly: ignore[bad-return]
