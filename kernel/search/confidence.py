"""Strength: how likely a document answers a query, from evidence that does not depend on the other hits."""

from typing import TYPE_CHECKING, Literal

from kernel.search.hits import Candidates

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

Verdict = Literal["strong", "weak", "none"]
# A logistic of the cosine and the share of the query's tokens that the text holds; of BM25 over `information`
# if nothing has a vector. Fitted by `make quality ARGS=--leave-one-out`, see loadtests/quality/README.md.
BIAS, MEANING, EXACT = -9.5, 20.1, 4.2
WORDS_BIAS, WORDS = -1.5, 5.4
WEAK = 0.002  # from here on a hit may answer: 2 % of the right answers of each collection are weaker
STRONG = 0.93  # from here on it most likely does: precision .9 at a recall of .6 and more
_USUAL_EXACT = 0.3  # if the tokens of no hit were compared
_MOST_WORDS = 1.5  # of `information`: short texts score more
_FAR = 9.0  # log odds behind the best hit from which on a hit counts nothing; at 8 LoCoMo loses 1.7 % of its answers
_MUCH = 0.5  # of the query; a hit that holds so much of it always counts
_ALL = 0.99  # of the query, for rounding; a text with every word of it may answer, however long it is


def strengths(matches: Candidates) -> "Floats":
    """Return the strength of each candidate, in [0, 1]; 0 for a candidate far behind the best that does not hold the
    query.
    """
    import numpy as np

    unread = np.isnan(matches.meaning)  # texts that the model cannot read have no vector
    if unread.all():
        return _logistic(WORDS_BIAS + WORDS * _words(matches))
    known_exact = np.sort(matches.exact[~np.isnan(matches.exact)])
    usual_exact = known_exact[len(known_exact) // 2] if len(known_exact) else _USUAL_EXACT  # the median, as in fusion
    exact = np.where(np.isnan(matches.exact), usual_exact, matches.exact)
    odds = BIAS + MEANING * np.where(unread, 0.0, matches.meaning) + EXACT * exact
    far = (odds < odds.max(initial=-np.inf) - _FAR) & (exact < _MUCH)
    by_meaning = np.where(far, 0.0, _logistic(odds))
    whole = ~np.isnan(matches.words) & (matches.exact >= _ALL)
    by_meaning[whole] = np.maximum(by_meaning[whole], WEAK)
    if not unread.any():
        return by_meaning
    by_words = np.where(np.isnan(matches.words), 0.0, _logistic(WORDS_BIAS + WORDS * _words(matches)))
    return np.where(unread, by_words, by_meaning)


def _words(matches: Candidates) -> "Floats":
    import numpy as np

    return np.clip(np.nan_to_num(matches.words) / max(matches.query.information, 1e-9), 0.0, _MOST_WORDS)


def verdict(strength: float) -> Verdict:
    """Return the strength in a word."""
    return "strong" if strength >= STRONG else "weak" if strength >= WEAK else "none"


def least(floor: Verdict | float) -> float:
    """Return the strength that a floor asks for."""
    levels = {"none": 0.0, "weak": WEAK, "strong": STRONG}
    return levels[floor] if isinstance(floor, str) else floor


def _logistic(odds: "Floats") -> "Floats":
    import numpy as np

    return 1 / (1 + np.exp(-odds))
