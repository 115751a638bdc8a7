"""Strength: how likely a document answers a query, from evidence that does not depend on the other hits."""

from typing import TYPE_CHECKING, Literal

from kernel.search.hits import Candidates

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

Verdict = Literal["strong", "weak", "none"]
# A logistic of the cosine and the share of the query's tokens that the text holds; of BM25 over `information`
# where nothing has a vector. Fitted by `make quality ARGS=--leave-one-out`, see loadtests/quality/README.md.
BIAS, MEANING, EXACT = -9.5, 20.1, 4.2
WORDS_BIAS, WORDS = -1.5, 5.4
WEAK = 0.002  # from here on a hit may answer: 2 % of the right answers of each collection are weaker
STRONG = 0.93  # from here on it most likely does: precision .9 at a recall of .6 and more
_MOST_WORDS = 1.5  # of `information`: short texts score more
_FAR = 9.0  # log odds behind the best hit from which on a hit counts nothing; 1 % of the right answers on LoCoMo
_MUCH = 0.5  # of the query; a hit that holds so much of it always counts


def strengths(found: Candidates) -> "Floats":
    """The strength of each candidate, in [0, 1]; 0 for what is far behind the best and does not hold the query."""
    import numpy as np

    words = (
        np.fmax(found.words, 0.0) / found.query.information
        if found.query.information > 0
        else np.zeros(len(found.docs))
    )
    words = np.where(np.isnan(words), 0.0, np.minimum(words, _MOST_WORDS))
    if np.isnan(found.meaning).all():
        return _logistic(WORDS_BIAS + WORDS * words)
    known = np.sort(found.exact[~np.isnan(found.exact)])
    unknown = known[len(known) // 2] if len(known) else np.minimum(words, 1.0)  # the median, as in fusion
    exact = np.where(np.isnan(found.exact), unknown, found.exact)
    meaning = np.where(np.isnan(found.meaning), 0.0, found.meaning)
    odds = BIAS + MEANING * meaning + EXACT * exact
    far = (odds < odds.max(initial=-np.inf) - _FAR) & (exact < _MUCH)
    return np.where(far, 0.0, _logistic(odds))


def verdict(strength: float) -> Verdict:
    """The strength in a word."""
    return "strong" if strength >= STRONG else "weak" if strength >= WEAK else "none"


def least(floor: Verdict | float) -> float:
    """The strength that a floor asks for."""
    levels = {"none": 0.0, "weak": WEAK, "strong": STRONG}
    return levels[floor] if isinstance(floor, str) else floor


def _logistic(odds: "Floats") -> "Floats":
    import numpy as np

    return 1 / (1 + np.exp(-odds))
