"""Strength: how likely a document answers a query, from evidence that does not depend on the other hits."""

from typing import Literal

from kernel.core.lazy_numpy import Floats, Ids, np
from kernel.search.extra_terms import pair_terms
from kernel.search.hits import Candidates

Verdict = Literal["strong", "weak", "none"]
# A logistic of the cosine and the share of the query's subject that the text nearly holds; of BM25 over `information`
# if nothing has a vector. Fitted by `make quality ARGS=--leave-one-out`, see loadtests/quality/README.md.
BIAS, MEANING, NEAR = -11.8, 17.7, 10.0
# A hit in its store: the more words of the query it holds, and the rarer they are there, the less chance has put them
# there, and the more documents there are, the likelier is one that is like any query. No hit is stronger than the best.
HELD, RARE, DOCUMENTS, PAGE = 5.5, 2.0, -1.75, 2.5
REQUEST = 2.0  # a taste that bears on a request is less like it than an answer is like its question
INSTRUCTION = 3.0  # besides, of a standing instruction, which is less like it again
# Of texts in English; of other texts and an English query; of both in other languages; of English texts and another
# query. Cosines of translations are lower: .2 to .45. Words that a question shares with a text say little in other
# languages, whose endings are pieces of many words. Fitted to odd lines of loadtests/quality/facts, languages.py and
# stores of 600 further texts; even lines judge.
_BIASES, _MEANINGS, _NEARS = (BIAS, -8.0, -4.3, -6.8), (MEANING, 14.0, 4.0, 14.0), (NEAR, 15.0, 9.0, 15.0)
_HELDS = (HELD, HELD, 0.5, HELD)
WORDS_BIAS, WORDS = -1.5, 5.4
WEAK = 0.05  # from here on a hit may answer
STRONG = 0.93  # from here on it most likely does: precision .9 at a recall of .6 and more
_OTHER_VALUE = 0.5  # at most, of a text with another value than the question names
_USUAL_SHARE = 0.3  # if the tokens of no hit were compared
_USUALLY_RARE = 2.0  # ln(1 + BM25) if nothing was searched by words
_MOST_WORDS = 1.5  # of `information`: short texts score more
# Of the query's subject: a text with so much of it may answer. So may a text with a part or a form of a single word.
_MOST = 0.8


def strengths(matches: Candidates, languages: Ids | None = None) -> Floats:
    values = _of_the_value(matches, languages)
    return np.where(matches.value == 0, np.minimum(values, _OTHER_VALUE if matches.query.names_value else 0.0), values)


def _of_the_value(matches: Candidates, languages: Ids | None) -> Floats:
    """Return the strengths of texts that are about no other value than is asked for."""
    unread = np.isnan(matches.meaning)  # texts that the model cannot read have no vector
    if unread.all():
        return _logistic(WORDS_BIAS + WORDS * _words(matches))
    query = matches.query
    is_word = len(query.text.split()) == 1 and not pair_terms(query.text)
    pool = ~np.isnan(matches.near)
    # The likeness of a single word to other languages is chance if the vocabulary has only pieces of it.
    if languages is None or is_word:
        bias, meaning, near, held = BIAS, MEANING, NEAR, HELD
        documents = query.documents
    else:
        bias, meaning, near, held = np.array((_BIASES, _MEANINGS, _NEARS, _HELDS)).take(languages, 1)
        # Of the documents in the pool, those in the language of the query alone are like it by chance.
        own = languages % 2 == 0
        documents = query.documents * np.where(own, own[pool].mean() if pool.any() else 1.0, 1.0)
    odds = bias + meaning * np.where(unread, 0.0, matches.meaning) + near * _filled(matches.near)
    rare = np.log1p(np.fmax(matches.words, 0.0)) if query.by_words else _USUALLY_RARE
    # Parts of a single word are like it; they are the evidence for a compound that no text has as a word.
    share = held * np.log1p(_filled(matches.near if is_word else matches.exact) * query.words) + RARE * rare
    within = odds + share + DOCUMENTS * np.log(np.maximum(documents, 1)) + PAGE
    page = np.where(pool, within, -np.inf).max(initial=-np.inf)
    if len(query.instructions):
        odds = odds + np.where(np.isin(matches.docs, query.instructions), INSTRUCTION, 0.0)
    if query.is_request:
        odds += REQUEST
    elif np.isfinite(page):
        odds = np.minimum(np.maximum(odds, within), page)
    has_words, by_meaning = ~np.isnan(matches.words), _logistic(odds)
    may = has_words & ((matches.exact >= _MOST) | is_word)
    by_meaning[may] = np.maximum(by_meaning[may], WEAK)
    if not unread.any():
        return by_meaning
    return np.where(unread, np.where(has_words, _logistic(WORDS_BIAS + WORDS * _words(matches)), 0.0), by_meaning)


def _filled(shares: Floats) -> Floats:
    """Return shares with the median, as in fusion, for candidates whose tokens were not compared."""
    values = shares[~np.isnan(shares)]
    values.sort()
    usual = values[len(values) // 2] if len(values) else _USUAL_SHARE
    return np.where(np.isnan(shares), usual, shares)


def _words(matches: Candidates) -> Floats:
    return np.clip(np.fmax(matches.words, 0.0) / max(matches.query.information, 1e-9), 0.0, _MOST_WORDS)


def verdict(strength: float) -> Verdict:
    return "strong" if strength >= STRONG else "weak" if strength >= WEAK else "none"


def least(floor: Verdict | float) -> float:
    levels = {"none": 0.0, "weak": WEAK, "strong": STRONG}
    return levels[floor] if isinstance(floor, str) else floor


def _logistic(odds: Floats) -> Floats:
    return 1 / (1 + np.exp(-odds))
