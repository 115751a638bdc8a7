"""Whether two questions ask the same: a network of a few hundred weights over what their words and vectors share.

`python -m loadtests.quality.paraphrase_fit` writes the weights.
"""

import itertools
import math
from typing import TYPE_CHECKING, Any, NamedTuple

from kernel.embed.model import Embedder
from kernel.lazy_regex import regex
from kernel.search import paraphrase_weights
from kernel.search.query import STOP_WORDS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

SIGNALS = (
    *("shared words that matter", "their share", "of the fewer", "most that one lacks", "shared stop words"),
    *("shared pairs of words", "shared trigrams", "of the fewer trigrams", "words of the shorter", "question marks"),
    *("both why", "both what", "one how", "a number in both"),
    *("heaviest token of one alone", "of the other", "all tokens of one alone", "share of the least matched"),
    *("last tokens", "first tokens", "numbers differ", "negation differs", "names differ"),
)
"""What the network reads, in this order; none depends on the order of the two questions."""
_QUESTION_MARKS = ("?", "\uff1f", "\u061f")
_CLOSING = " \t\r\n\"'\u2019\u201d)"
_MOST_TOKENS = 256  # of a question, and letters times eight; bounds the cost; not measured
_LIGHT = 0.5  # of the mean weight: punctuation weighs less, words more
_LEAST = 1e-9  # avoids division by zero
_WORD = regex(r"[^\W_]+(?:['\u2019][^\W_]+)*")
_ASKING = frozenset("what which how why who whom whose where when".split())


class Question(NamedTuple):
    """A question, as it is compared."""

    words: list[str]
    content: frozenset[str]
    common: frozenset[str]
    pairs: frozenset[tuple[str, str]]
    trigrams: frozenset[str]
    asks: str
    marks: int
    vectors: "Floats"
    weights: "Floats"
    total: float
    last: int


class Apart(NamedTuple):
    """In which of three kinds two texts differ."""

    numbers: bool
    negation: bool
    names: bool


def is_question(text: str) -> bool:
    """Whether a text ends with a question mark."""
    return text.rstrip(_CLOSING).endswith(_QUESTION_MARKS)


def question(embedder: Embedder, text: str, tokens: bytes) -> Question:
    """What a question is compared by; `tokens` are those of its `Embedding`."""
    text = text[: 8 * _MOST_TOKENS].lower()
    words = _WORD.findall(text)
    distinct = frozenset(words)
    vectors, weights = embedder.token_vectors(tokens, _MOST_TOKENS)
    heavy = weights.tolist()
    total = sum(heavy)
    least = _LIGHT * total / max(1, len(heavy))
    return Question(
        words,
        distinct - STOP_WORDS,
        distinct & STOP_WORDS,
        frozenset(itertools.pairwise(words)),
        frozenset([text[at : at + 3] for at in range(len(text) - 2)]),
        next(("what" if word == "which" else word for word in words if word in _ASKING), ""),
        sum(map(text.count, _QUESTION_MARKS)),
        vectors,
        weights,
        total,
        next((at for at in reversed(range(len(heavy))) if heavy[at] > least), 0),
    )


def asks_the_same(one: Question, other: Question) -> bool:
    """Whether two questions ask the same, if nothing tells them apart; precision counts more than recall."""
    if not one.weights.size or not other.weights.size:
        return False
    return odds(signals(one, other, Apart(False, False, False))) >= paraphrase_weights.LEAST


def signals(one: Question, other: Question, apart: Apart) -> list[float]:
    """The `SIGNALS` of two questions that have tokens."""
    shared = one.content & other.content
    content, trigrams = _overlap(one.content, other.content), _overlap(one.trigrams, other.trigrams)
    return [
        len(shared),
        *content,
        max(len(one.content), len(other.content)) - len(shared),
        _overlap(one.common, other.common)[0],
        _overlap(one.pairs, other.pairs)[0],
        *trigrams,
        math.log(1 + min(len(one.words), len(other.words))),
        abs(one.marks - other.marks),
        one.asks == other.asks == "why",
        one.asks == other.asks == "what",
        (one.asks == "how") != (other.asks == "how"),
        any(map(str.isdigit, shared)),
        *_token_signals(one, other),
        *apart,
    ]


def odds(found: "list[float] | NDArray[Any]") -> Any:
    """The log odds that questions with such signals ask the same."""
    import numpy as np

    bounds, first, second, last = paraphrase_weights.network()
    scaled = ((np.array(found, np.float64) - bounds[0]) / bounds[1]).clip(-4, 4)
    hidden = np.tanh(scaled @ first[:-1] + first[-1])
    return hidden @ second + scaled @ last[:-1] + last[-1]


def _overlap(one: frozenset[Any], other: frozenset[Any]) -> tuple[float, float]:
    """The share of what both have in all, and in what the smaller has."""
    both = len(one & other)
    return both / max(1, len(one) + len(other) - both), both / max(1, min(len(one), len(other)))


def _token_signals(one: Question, other: Question) -> list[float]:
    import numpy as np

    weights, others = one.weights, other.weights
    cosines = (one.vectors @ other.vectors.T) / np.maximum(weights[:, None] * others, _LEAST)
    alone, other_alone = weights * (1 - cosines.max(axis=1)), others * (1 - cosines.max(axis=0))
    mean = max((one.total + other.total) / (len(weights) + len(others)), _LEAST)
    left, right = float(alone.max()) / mean, float(other_alone.max()) / mean
    lacking, other_lacking = float(alone.sum()), float(other_alone.sum())
    return [
        max(left, right),
        min(left, right),
        max(lacking, other_lacking) / mean,
        1 - max(lacking / max(one.total, _LEAST), other_lacking / max(other.total, _LEAST)),
        float(cosines[one.last, other.last]),
        float(cosines[0, 0]),
    ]
