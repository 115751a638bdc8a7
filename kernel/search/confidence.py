"""Strength: how likely a document answers a query, from evidence that does not depend on the other hits."""

from typing import TYPE_CHECKING, Literal

from kernel.search.extra_terms import pair_terms
from kernel.search.hits import Candidates

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Kinds = NDArray[np.int64]

Verdict = Literal["strong", "weak", "none"]
# A logistic of the cosine and the share of the query's tokens that the text holds; of BM25 over `information`
# if nothing has a vector. Fitted by `make quality ARGS=--leave-one-out`, see loadtests/quality/README.md.
BIAS, MEANING, EXACT = -9.5, 20.1, 4.2
# Of texts in English; of a question and a text of which one is in English; of those in other languages. Cosines of
# translations are lower: .2 to .45; fitted by hand to languages.py and checked with 48 facts in six other languages.
_BIASES, _MEANINGS = (BIAS, -6.7, -5.5), (MEANING, 19.8, 13.4)
WORDS_BIAS, WORDS = -1.5, 5.4
WEAK = 0.05  # from here on a hit may answer
STRONG = 0.93  # from here on it most likely does: precision .9 at a recall of .6 and more
_USUAL_EXACT = 0.3  # if the tokens of no hit were compared
_MOST_WORDS = 1.5  # of `information`: short texts score more
_FAR = 9.0  # log odds behind the best hit from which on a hit counts nothing; at 8 LoCoMo loses 1.7 % of its answers
_MUCH = 0.5  # of the query; a hit that holds so much of it always counts
# Of the query, by weight; a text with so much of it may answer: of other questions none came so far. So may a text
# with a part or a form of a query of a single word.
_SOME = 0.4
_WHOLE = 0.9  # of a query that is a number, a date or a digest: pieces of it are another
_DIGITS = 0.4  # of the characters of such a query; a digest has five of eight


def strengths(matches: Candidates, languages: "Kinds | None" = None) -> "Floats":
    """Return the strength of each candidate, in [0, 1]; 0 for a candidate far behind the best that does not hold the
    query.

    `languages` is 0 for a text in English if the query is, 2 if neither is, and 1 otherwise; by default 0.
    """
    import numpy as np

    unread = np.isnan(matches.meaning)  # texts that the model cannot read have no vector
    if unread.all():
        return _logistic(WORDS_BIAS + WORDS * _words(matches))
    known_exact = np.sort(matches.exact[~np.isnan(matches.exact)])
    usual_exact = known_exact[len(known_exact) // 2] if len(known_exact) else _USUAL_EXACT  # the median, as in fusion
    exact = np.where(np.isnan(matches.exact), usual_exact, matches.exact)
    bias, meaning = BIAS, MEANING
    if languages is not None:
        bias, meaning = np.array(_BIASES).take(languages), np.array(_MEANINGS).take(languages)
    odds = bias + meaning * np.where(unread, 0.0, matches.meaning) + EXACT * exact
    far = (odds < odds.max(initial=-np.inf) - _FAR) & (exact < _MUCH)
    by_meaning = np.where(far, 0.0, _logistic(odds))
    query = matches.query.text
    in_part = ~np.isnan(matches.words) & ((matches.exact >= _SOME) | _is_word(query))
    by_meaning[in_part] = np.maximum(by_meaning[in_part], WEAK)
    if _is_number(query):
        whole = ~np.isnan(matches.words) & ((matches.exact >= _WHOLE) | query.isalnum())
        return np.where(whole, by_meaning, 0.0)
    if not unread.any():
        return by_meaning
    by_words = np.where(np.isnan(matches.words), 0.0, _logistic(WORDS_BIAS + WORDS * _words(matches)))
    return np.where(unread, by_words, by_meaning)


def _words(matches: Candidates) -> "Floats":
    import numpy as np

    return np.clip(np.nan_to_num(matches.words) / max(matches.query.information, 1e-9), 0.0, _MOST_WORDS)


def _is_word(query: str) -> bool:
    """Return whether a query is a single word, in a script that writes blanks between words."""
    return len(query.split()) == 1 and not pair_terms(query)


def _is_number(query: str) -> bool:
    return sum(map(str.isdigit, query)) > _DIGITS * len(query) and all(
        any(map(str.isdigit, word)) for word in query.split()
    )


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
