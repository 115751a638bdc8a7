"""Fusion: one score from several signals, each scaled by its maximum, weighted, and a share of neighbours' scores.

Conversations: the turn after a question that matches often answers it, and long answers hide short turns. Texts are
turns of a conversation if some of them are short questions. The strength of a hit tells how likely it answers a query,
from evidence that does not depend on the other hits.
"""

import math
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import repeat
from typing import Any, Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from kernel.core.lazy_numpy import Array, Floats, Ids, np
from kernel.search.extra_terms import pair_terms


class Hit(Struct, frozen=True, order=True, gc=False):
    """Evidence for one document; None if a signal did not run or did not find it.

    `text_rank` is BM25, larger is better; `similarity` the cosine in [-1, 1]; `distance` the L2 distance of the unit
    vectors in [0, 2]; `late` the late-interaction score. `space` and `id` are empty if they were not read.
    """

    doc: int
    space: str = ""
    id: str = ""
    text_rank: float | None = None
    distance: float | None = None
    similarity: float | None = None
    late: float | None = None


class Reading(NamedTuple):
    """A query as it was read, the BM25 of a text of mean length that holds each of its words once, the number of its
    words but for function words, and that of the documents searched; whether it was searched for by words, whether
    it asks for something to be done or advised, the documents of the days that it names, whether it names a value, and
    the standing instructions that may bear on it.
    """

    text: str = ""
    information: float = 0.0
    words: int = 1
    documents: int = 1
    by_words: bool = True
    is_request: bool = False
    dated: Sequence[int] = ()
    names_value: bool = False
    instructions: Sequence[int] = ()


class Candidates(NamedTuple):
    """Documents in rising order of their ids, with BM25, cosine, late interaction, the shares of the query's subject
    that they hold, exactly and nearly, and that of the value that the query is or names, 0 for another value; NaN if a
    signal found none.
    """

    docs: Ids
    words: Floats
    meaning: Floats
    late: Floats
    exact: Floats
    near: Floats
    value: Floats
    query: Reading = Reading()

    @property
    def columns(self) -> tuple[Ids, Floats, Floats, Floats, Floats, Floats, Floats]:
        """Return ids and evidence, without the query that they share."""
        return self.docs, self.words, self.meaning, self.late, self.exact, self.near, self.value

    def take(self, at: Array | Sequence[int]) -> "Candidates":
        """Return the documents at these positions or of a mask."""
        evidence = [column[at] for column in self.columns[1:]]
        return Candidates(self.docs[at], *evidence, query=self.query)

    def joined(self, more: "Candidates") -> "Candidates":
        """Both, in rising order of their ids."""
        pairs: Any = zip(self.columns, more.columns, strict=True)
        docs, *evidence = map(np.concatenate, pairs)
        return Candidates(docs, *evidence, query=self.query).sorted()

    def sorted(self) -> "Candidates":
        """Return the same in rising order of their ids."""
        return self.take(self.docs.argsort())


def candidates(ranks: Mapping[int, float], cosines: Mapping[int, float], query: Reading = Reading()) -> Candidates:
    """Return the documents found by words, with their BM25, and those found by meaning, with their cosine."""
    docs, missing = sorted({*ranks, *cosines}), repeat(math.nan)
    words, meaning = [np.fromiter(map(evidence.get, docs, missing), np.float64) for evidence in (ranks, cosines)]
    return Candidates(np.array(docs, np.int64), words, meaning, *np.full((4, len(docs)), math.nan), query=query)


def positions(docs: Ids, ids: Ids) -> Ids:
    """Return the position of each of `ids` in the rising `docs`, -1 if it is absent."""
    at = docs.searchsorted(ids)
    return np.where(docs.take(at, mode="clip") == ids, at, -1) if len(docs) else at - 1


Verdict = Literal["strong", "weak", "none"]
# A logistic of the cosine and the share of the query's subject that the text nearly holds; of BM25 over `information`
# if nothing has a vector. A hit in its store: the more words of the query it holds, and the rarer they are there, the
# less chance has put them there, and the more documents there are, the likelier is one that is like any query. No hit
# is stronger than the best that is about no other value. The values are those of texts in English; of other texts and
# an English query; of both in other languages; of English texts and another query. Cosines of translations are lower:
# .2 to .45. Words that a question shares with a text say little in other languages, whose endings are pieces of many
# words. See README.md.
BIAS, MEANING, NEAR = (-13.0, -8.0, -4.3, -6.8), (23.0, 14.0, 4.0, 14.0), (12.5, 15.0, 9.0, 15.0)
HELD, RARE = (6.0, 5.5, 0.5, 5.5), (1.5, 2.0, 2.0, 2.0)
DOCUMENTS, PAGE = (-2.4, -1.75, -1.75, -1.75), (3.0, 2.5, 2.5, 2.5)
# Those of English of a second classifier, with the whole cosine, by which fewer hits of small stores are strong.
STRICT = (-11.8, 17.7, 10.0, 5.5, 2.0, -1.75, 2.5)
UNSURE = 0.1  # at most, if the second classifier says less
# Words of a long query are rarely together by chance, which counts the more the more documents there are.
LONG, _LONG_QUERY, _FEW, _MANY = 2.5, 8, 50, 5000  # words, documents
# The direction that all texts share, which small talk has most of, says nothing of what a text is about: the product of
# its cosines with a text and a query is taken off theirs.
USUALLY_COMMON = 0.11  # if it is not known, and of other languages and single words
# A taste that bears on a request is less like it than an answer is like its question: it is lifted, up to even odds.
REQUEST = 2.3
INSTRUCTION = 3.0  # besides, of a standing instruction, which is less like it again
WORDS_BIAS, WORDS = -1.5, 5.4
WEAK = 0.05  # from here on a hit may answer
STRONG = 0.93  # from here on it most likely does: precision .9 at a recall of .6 and more
# Evidence grows faster than its worth, so that odds beyond STRONG count half: of best hits at odds of 4 to 5 a
# seventh belong to no answer.
_WORTH = 0.5
_STRONG_ODDS = (1 - _WORTH) * math.log(STRONG / (1 - STRONG))
_OTHER_VALUE = 0.5  # at most, of a text with another value than the question names
_USUAL_SHARE = 0.3  # if the tokens of no hit were compared
_USUALLY_RARE = 2.0  # ln(1 + BM25) if nothing was searched by words
_MOST_WORDS = 1.5  # of `information`: short texts score more
# Of the query's subject: a text with so much of it may answer. So may a text with a part or a form of a single word.
_MOST = 0.8


def strengths(matches: Candidates, languages: Ids | None = None, common: Floats | float = USUALLY_COMMON) -> Floats:
    values = _of_the_value(matches, languages, common)
    return np.where(matches.value == 0, np.minimum(values, _OTHER_VALUE if matches.query.names_value else 0.0), values)


def _of_the_value(matches: Candidates, languages: Ids | None, common: Floats | float) -> Floats:
    """Return the strengths of texts that are about no other value than is asked for."""
    unread = np.isnan(matches.meaning)  # texts that the model cannot read have no vector
    is_any_unread = np.logical_or.reduce(unread)
    if is_any_unread and unread.all():
        return _logistic(WORDS_BIAS + WORDS * _words(matches))
    query = matches.query
    is_word = len(query.text.split()) == 1 and not pair_terms(query.text)
    pool = ~np.isnan(matches.near)
    # The likeness of a single word to other languages is chance if the vocabulary has only pieces of it.
    of = 0 if languages is None or is_word else languages
    constants, is_first = _classifiers()
    bias, meaning, near, held, rare, of_documents, of_page = constants[:, :, of].reshape(len(STRICT), 2, -1)
    documents: Floats | int = query.documents
    if is_word:
        common = USUALLY_COMMON
    elif languages is not None:
        # Of the documents in the pool, those in the language of the query alone are like it by chance.
        own = languages % 2 == 0
        documents = documents * np.where(own, own[pool].mean() if pool.any() else 1.0, 1.0)
        common = np.where(languages == 0, common, USUALLY_COMMON)
    cosines = np.where(unread, 0.0, matches.meaning) + is_first * (USUALLY_COMMON - common)
    odds = bias + meaning * cosines + near * _filled(matches.near)
    rarity = np.log1p(np.fmax(matches.words, 0.0)) if query.by_words else _USUALLY_RARE
    # Parts of a single word are like it; they are the evidence for a compound that no text has as a word.
    share = held * np.log1p(_filled(matches.near if is_word else matches.exact) * query.words) + rare * rarity
    within = odds + share + of_documents * np.log(np.minimum(np.maximum(documents, 1), _MANY)) + of_page
    within += LONG * math.log(max(query.words / _LONG_QUERY, 1)) * math.log(max(query.documents / _FEW, 1))
    page = np.maximum.reduce(within, 1, initial=-np.inf, where=pool & (matches.value != 0), keepdims=True)
    bearing = odds
    if len(query.instructions):
        bearing = odds + np.where(np.isin(matches.docs, query.instructions), INSTRUCTION, 0.0)
    if query.is_request:
        asked = np.where(matches.exact >= _SAYS, np.maximum(odds, within), odds)  # a request may ask for a fact
        odds = np.maximum(np.minimum(asked, page), np.minimum(bearing + REQUEST, 0.0))
    else:
        odds = np.minimum(np.maximum(bearing, within), page) if np.isfinite(page[0, 0]) else bearing
    first, second = _logistic(np.minimum(odds, _WORTH * odds + _STRONG_ODDS))
    has_words, by_meaning = ~np.isnan(matches.words), np.minimum(first, np.maximum(second, UNSURE))
    may = has_words & ((matches.exact >= _MOST) | is_word)
    np.maximum(by_meaning, WEAK, out=by_meaning, where=may)
    if not is_any_unread:
        return by_meaning
    return np.where(unread, np.where(has_words, _logistic(WORDS_BIAS + WORDS * _words(matches)), 0.0), by_meaning)


@cache
def _classifiers() -> tuple[Array, Array]:
    """Return the constants of both classifiers, each with a row for both and a column for each language; and 1 for the
    first of them, 0 for the second.
    """
    first = BIAS, MEANING, NEAR, HELD, RARE, DOCUMENTS, PAGE
    second = [(english, *row[1:]) for english, row in zip(STRICT, first, strict=True)]
    constants = np.array((first, second))
    return constants.swapaxes(0, 1), np.array([[1.0], [0.0]])


def _filled(shares: Floats) -> Floats:
    """Return shares with the median, as in fusion, for candidates whose tokens were not compared."""
    unknown = np.isnan(shares)
    values = shares[~unknown]
    values.sort()
    return np.where(unknown, values[len(values) // 2] if len(values) else _USUAL_SHARE, shares)


def _words(matches: Candidates) -> Floats:
    return np.clip(np.fmax(matches.words, 0.0) / max(matches.query.information, 1e-9), 0.0, _MOST_WORDS)


def verdict(strength: float) -> Verdict:
    return "strong" if strength >= STRONG else "weak" if strength >= WEAK else "none"


def least(floor: Verdict | float) -> float:
    levels = {"none": 0.0, "weak": WEAK, "strong": STRONG}
    return levels[floor] if isinstance(floor, str) else floor


def _logistic(odds: Floats) -> Floats:
    return 1 / (1 + np.exp(-odds))


_LEAST_QUESTIONS = 0.1  # of the texts in a conversation
_MOST_BYTES = 350  # of a reply; a longer text is an essay
_REPLY = 1.15  # of the question's own score, times the weight of neighbours
_LONG, _LONG_LOSS = 500, 0.1  # bytes of a turn; of its score, times ln of the bytes over these


class Turns(NamedTuple):
    """The bytes of each text in the middle of a window, and of the text after it if it is a short question, else 0."""

    sizes: Ids
    replies: Ids


def turns_of(sizes: Ids, replies: Ids) -> Turns | None:
    """Return the texts as turns of a conversation, None if they are none."""
    is_conversation = len(replies) and np.count_nonzero(replies > 0) / len(replies) >= _LEAST_QUESTIONS
    return Turns(sizes, replies) if is_conversation else None


def reply_scores(docs: Ids, own: Floats, windows: Ids, replies: Ids) -> Floats:
    """Return what each document gains from the question before it."""
    questions, answers = positions(docs, windows[:, 2:4]).T
    mask = (replies > 0) & (replies <= _MOST_BYTES) & (questions >= 0) & (answers >= 0)
    gains = np.zeros(len(docs))
    gains[answers[mask]] = _REPLY * own[questions[mask]]
    return gains


def turn_factors(sizes: Ids) -> Floats:
    """Return the factor of the score of a turn of so many bytes."""
    return np.maximum(0.0, 1 - _LONG_LOSS * np.log(np.maximum(sizes / _LONG, 1)))


_CLEAR_SHARE = 0.85  # of the best own score: only if others reach it may neighbours change who is first
_OTHER_LANGUAGE = 0.9  # of the score of a text that is in English if the query is not, or the other way round
_DATED = 2.0  # times the score of a text of a day that the question names
_INSTRUCTION = 1.5  # times that of a standing instruction, if the question is a request
_MEANING_OF_REQUEST, _HALF = 2.0, 0.5  # times its weight, if no text has half of the subject of a request in English
_SAYS = 0.4  # of the subject of a request, in a text that may state the fact
_NEIGHBOUR_DECAY = (1.0, 0.6)  # share of a neighbour's score at distances 1 and 2; not measured singly


class Weights(NamedTuple):
    """The weight of each signal; the defaults are chosen on development data (see README.md)."""

    words: float = 0.4
    meaning: float = 0.3
    late: float = 0.4
    neighbours: float = 0.35


class Parts(Struct, frozen=True, gc=False):
    """The contribution of each signal to a score."""

    words: float = 0.0
    meaning: float = 0.0
    late: float = 0.0
    neighbours: float = 0.0


class Scored(Struct, frozen=True):
    """A hit with its score in [0, 1], the sum of its parts, and its strength (see `strength`)."""

    score: float
    hit: Hit
    parts: Parts
    strength: float = 1.0


class Fused(NamedTuple):
    """Documents best first, with evidence, scores, the parts of these (a column for each signal) and strengths."""

    found: Candidates
    scores: Floats
    parts: Floats
    strengths: Floats

    def at_least(self, strength: float) -> "Fused":
        mask = self.strengths >= strength
        if mask.all():
            return self
        return Fused(self.found.take(mask), self.scores[mask], self.parts[mask], self.strengths[mask])

    def scored(self, count: int) -> list[Scored]:
        """Return the first `count` as records; `space`, `id` and `distance` of their hits are not set."""
        columns = (*self.found.columns[:4], self.scores, self.parts, self.strengths)
        return [
            Scored(
                score,
                # NaN is not equal to itself.
                Hit(
                    doc,
                    text_rank=words if words == words else None,
                    similarity=meaning if meaning == meaning else None,
                    late=late if late == late else None,
                ),
                Parts(*parts),
                strength,
            )
            for doc, words, meaning, late, score, parts, strength in zip(
                *[column[:count].tolist() for column in columns], strict=True
            )
        ]


def preliminary_order(matches: Candidates, weights: Weights) -> Ids:
    """Return the positions of the candidates by BM25 and cosine only, best first; ties go to the older document."""
    scores = _scaled(matches.words, weights.words) + _scaled(matches.meaning, weights.meaning)
    return (-scores * _factors(matches)).argsort(kind="stable")


def _factors(matches: Candidates) -> Floats | float:
    """Return the factor of each score: of texts of days that the question names, and of instructions for a request."""
    factors: Floats | float = 1.0
    for docs, factor in ((matches.query.dated, _DATED), (matches.query.instructions, _INSTRUCTION)):
        if len(docs):
            factors = factors * np.where(np.isin(matches.docs, docs), factor, 1.0)
    return factors


def fuse(hits: Sequence[Hit], weights: Weights) -> list[Scored]:
    """Return `fuse_candidates` of hits, without neighbours."""
    by_doc = {hit.doc: hit for hit in sorted(hits)}
    evidence = [(hit.text_rank, hit.similarity, hit.late) for hit in by_doc.values()]
    words, meaning, late = np.array(evidence, np.float64).reshape(-1, 3).T
    matches = candidates(dict.fromkeys(by_doc, 0.0), {})._replace(words=words, meaning=meaning, late=late)
    ranking = fuse_candidates(matches, weights)
    return [replace(scored, hit=by_doc[scored.hit.doc]) for scored in ranking.scored(len(hits))]


def fuse_candidates(
    matches: Candidates,
    weights: Weights,
    windows: Ids | None = None,
    neighbours: float = 0.0,
    languages: Ids | None = None,
    turns: Turns | None = None,
    common: Floats | float = USUALLY_COMMON,
) -> Fused:
    """Return candidates with their scores, best first; ties go to the older document.

    A score is the weighted mean of the signals, each over its largest value; a signal without any value is left out.
    A candidate without a late-interaction score gets the median. Then the scores of the neighbours in `windows` are
    added, times `neighbours` and decaying with distance. A window is a document between the two before and the two
    after it in its partition, by insertion; 0 for none. `languages` and `common` are those of `strengths`; the
    documents of windows are `turns` in a conversation.
    """
    # The median for hits outside the reranked pool: LoCoMo R@10 .754; with the minimum .750.
    if matches.query.is_request and languages is None and np.fmax.reduce(matches.exact, initial=0.0) < _HALF:
        weights = weights._replace(meaning=_MEANING_OF_REQUEST * weights.meaning)
    unknown = np.isnan(matches.late)
    known_late = matches.late[~unknown]
    known_late.sort()
    late = np.where(unknown, known_late[len(known_late) // 2] if len(known_late) else 0.0, matches.late)
    parts = np.zeros((4, len(late)))
    for part, values, weight in zip(parts, (matches.words, matches.meaning, late), weights, strict=False):
        part[:] = _scaled(values, weight)
    if languages is not None:
        parts[:, languages % 2 == 1] *= _OTHER_LANGUAGE
    if turns and windows is not None:
        parts[:, matches.docs.searchsorted(windows[:, 2])] *= turn_factors(turns.sizes)
    total = float(np.dot(np.logical_or.reduce(parts[:3], axis=1), weights[:3])) or 1.0
    own = np.add.reduce(parts[:3]) / total
    if neighbours > 0 and windows is not None and len(windows):
        extra = neighbours * _neighbour_scores(matches.docs, own, windows)
        extra = _with_a_clear_first(own, extra)
        if turns:
            extra += neighbours * reply_scores(matches.docs, own, windows, turns.replies)
        parts[3] = total * extra
    factors = _factors(matches)
    scores = (own + parts[3] / total) * factors
    parts *= factors
    largest = max(1.0, float(np.maximum.reduce(scores, initial=0.0)))
    scores = np.minimum(1.0, scores / largest)
    order = (-scores).argsort(kind="stable")
    parts /= total * largest
    return Fused(matches.take(order), scores[order], parts.T[order], strengths(matches, languages, common)[order])


def _with_a_clear_first(own: Floats, extra: Floats) -> Floats:
    """Return the scores that neighbours add; a document clearly first by its own evidence stays as clearly first."""
    first = int(own.argmax())
    before = own[first]
    own[first] = -1.0
    if np.maximum.reduce(own) < _CLEAR_SHARE * before:
        extra[first] = max(extra[first], (own + extra).max() / _CLEAR_SHARE - before)
    own[first] = before
    return extra


def _neighbour_scores(docs: Ids, scores: Floats, windows: Ids) -> Floats:
    """Return the decayed sum of neighbours' scores for each document, as far as the windows reach."""
    at = positions(docs, windows)
    at = np.take_along_axis(
        at, np.argsort(at < 0, axis=1, kind="stable"), 1
    )  # documents that are no candidates go to the end
    pairs: list[Any] = []
    for distance in range(1, len(_NEIGHBOUR_DECAY) + 1):
        first, second = at[:, :-distance].ravel(), at[:, distance:].ravel()
        pairs.append((((distance - 1) * len(docs) + first) * len(docs) + second)[second >= 0])
    pair, second = np.divmod(np.unique(np.concatenate(pairs)), len(docs))  # overlapping windows contain the same pair
    distance, first = np.divmod(pair, len(docs))
    decay = np.array(_NEIGHBOUR_DECAY)[distance]
    extra = np.zeros(len(docs))
    for receiver, giver in ((first, second), (second, first)):
        extra += np.bincount(receiver, decay * scores[giver], len(docs))
    return extra


def _scaled(values: Floats, weight: float) -> Floats:
    """Return each value over the largest, times `weight`; 0 for values below 0 and none."""
    positive = np.fmax(values, 0.0)
    best = float(np.maximum.reduce(positive, initial=0.0))  # as `max`, without Python around it
    return positive * (weight / best) if best > 0 else positive
