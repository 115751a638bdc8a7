"""Strength: how likely a document answers a query, from evidence that does not depend on the other hits."""

from typing import TYPE_CHECKING, Literal

from kernel.search.hits import Candidates

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

Verdict = Literal["strong", "weak", "none"]
# A logistic of the cosine, the share of the query's tokens that the text holds, and BM25 over `information`. Fitted by
# `python -m loadtests.quality --leave-one-out`; loadtests/quality/README.md has the figures.
BIAS, MEANING, EXACT, WORDS = -8.7, 15.8, 7.2, 1.7
WORDS_BIAS, WORDS_ALONE = -2.5, 5.0  # the same of words alone, where nothing has a vector
WEAK = 0.006  # from here on a hit may answer
STRONG = 0.95  # from here on it most likely does
_MOST_WORDS = 1.5  # of `information`: short texts score more


def strengths(found: Candidates) -> "Floats":
    """The strength of each candidate, in [0, 1]."""
    import numpy as np

    words = np.fmax(found.words, 0.0) / found.information if found.information > 0 else np.zeros(len(found.docs))
    words = np.where(np.isnan(words), 0.0, np.minimum(words, _MOST_WORDS))
    if np.isnan(found.meaning).all():
        return _logistic(WORDS_BIAS + WORDS_ALONE * words)
    known = np.sort(found.exact[~np.isnan(found.exact)])
    unknown = (
        known[len(known) // 2] if len(known) else np.minimum(words, 1.0)
    )  # as the late score of those is in fusion
    exact = np.where(np.isnan(found.exact), unknown, found.exact)
    meaning = np.where(np.isnan(found.meaning), 0.0, found.meaning)
    return _logistic(BIAS + MEANING * meaning + EXACT * exact + WORDS * words)


def verdict(strength: float) -> Verdict:
    """The strength in a word."""
    return "strong" if strength >= STRONG else "weak" if strength >= WEAK else "none"


def least(floor: Verdict | float) -> float:
    """The strength that a floor asks for."""
    levels = {"none": 0.0, "weak": WEAK, "strong": STRONG}
    return levels[floor] if isinstance(floor, str) else floor


def _logistic(values: "Floats") -> "Floats":
    import numpy as np

    return 1 / (1 + np.exp(-values))
