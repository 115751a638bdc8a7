"""Whether a hit about the thing of a question says what is asked of it: one that does not is weak.

Words that several hits hold name the thing, the rest of the question its relation. A question that asks for a number,
a time, a person or a place can do without them, by the kind of its answer. English only: in other languages the words
of a relation are not near enough those of a question.
"""

from collections.abc import Callable, Container, Mapping, Sequence
from functools import partial
from itertools import filterfalse
from typing import NamedTuple

from kernel.core.lazy_numpy import Array, Bools, Ids, Matrix, np
from kernel.core.lazy_regex import regex
from kernel.search.fusion import STRONG, Fused
from kernel.search.lexical import knows_word
from kernel.search.query import STOP_WORDS
from kernel.store.transaction import Tx

_FIRST, _LOOKED_AT = 12, 40  # hits, near-duplicates apart, and with them
_COMMON, _ABOUT, _LEAST_OTHERS = 3, 0.7, 2  # hits that hold a common word; share of these, and others that hold it
_MET, _LEAST_REST = 0.15, 0.1  # of what is asked, by cosines; of the question
_LINES = 2
_SAME = 0.999  # the cosine of a token and itself
_LESS = 0.8  # of the strength, so that the order stays
_MOST_READ = 1 << 20  # bytes of texts
_MOST_BYTES = 240  # of a statement; longer texts hold a number or name of something
_AUXILIARIES = "are can could did do does had has have is may might must shall should was were will would"
_NUMBER = regex(
    r"\bhow (?:big|deep|far|heavy|high|large|many|much|tall|wide)\b|\b(?:phone|port) number\b"
    r"|\b(?:what|which) (?:number|percentage|port)\b|\bwhat (?:do|does|did) .{1,80} cost\b"
)
_TIME = regex(
    r"\bhow (?:fast|long|often|old)\b|\b(?:what|which) (?:date|day|month|time|year)\b(?! zone)"
    rf"|\bwhen (?:{_AUXILIARIES.replace(' ', '|')})\b"
)
_PERSON, _PLACE = regex(r"\bwho(?:m|se)?\b"), regex(r"\bwhere\b")
_NUMBERS = frozenset(
    """all both couple double dozen dozens each eight eighteen eighth eighty eleven enough every few fifteen fifth fifty
    first five forty four fourteen fourth free half hundred hundreds many million millions more much nine nineteen
    ninety ninth no none once one pair per quarter second seven seventeen seventh seventy several single six sixteen
    sixth sixty ten tenth third thirteen thirty thousand thousands three thrice triple twelve twenty twice two unlimited
    zero""".split()
)
_TIMES = _NUMBERS | frozenset(
    """after ago always annually april august autumn before breakfast century christmas daily dawn day days december
    decade dinner during dusk early easter evening evenings february forever friday fridays hour hourly hours if
    immediately january july june last late lunch march may midnight minute minutes monday mondays month monthly months
    morning mornings never next night nightly nights noon november now october often quarterly rarely regularly saturday
    saturdays seconds seldom september since sometimes soon spring summer sunday sundays supper thursday thursdays till
    today tomorrow tonight tuesday tuesdays until wednesday wednesdays week weekday weekdays weekend weekends weekly
    weeks whenever winter year yearly years yesterday""".split()
)
_PLACES = frozenset(
    "above at behind below beside between from in inside into near on over through to under via".split()
)
_AFTER_NOUN = _PLACES | {"for", "of"}
_NO_NAMES = STOP_WORDS | _TIMES
_WORD = regex(r"[^\W_]+")


class Compared(NamedTuple):
    """Documents whose tokens were compared with a query's, the best cosine of each (a row) and each token, the share of
    the query's subject that a token has, and the bytes of the texts.
    """

    docs: Sequence[int]
    cosines: Matrix
    shares: Matrix
    sizes: Ids


class _Judged(NamedTuple):
    """A strong hit: its position, its document and the first of its near-duplicates."""

    at: int
    doc: int
    group: int


def answering(
    tx: Tx, question: str, fused: Fused, compared: Compared, leaders: Mapping[int, int], foreign: Container[int]
) -> Fused:
    """Return the hits with less strength for strong ones that say nothing of what is asked.

    `leaders` maps near-duplicates to the first of each group; documents in `foreign` are not judged.
    """
    is_strong = np.maximum.reduce(fused.strengths, initial=0.0) >= STRONG
    if not is_strong or fused.found.query.is_request or not np.isnan(fused.found.value).all():
        return fused
    strong_hits, groups = _strong(fused, compared, leaders, foreign)
    if not strong_hits:
        return fused
    lower_question = question.lower()
    amounts = _TIMES if _TIME.search(lower_question) else _NUMBERS if _NUMBER.search(lower_question) else None
    if not amounts:
        unmet = dict(zip(groups, _unmet(compared.cosines[[*groups.values()]], compared.shares).tolist(), strict=True))
        strong_hits = [hit for hit in strong_hits if unmet.get(hit.group)]
    if strong_hits and (may_answer := _of_kind(tx, lower_question, amounts)):
        texts = dict(tx.all("kernel.rerank.bodies", _statement, ids=[hit.doc for hit in strong_hits], most=_MOST_READ))
        strong_hits = [hit for hit in strong_hits if not may_answer(texts.get(hit.doc, ""))]
    if not strong_hits:
        return fused
    strengths = fused.strengths.copy()
    strengths[[hit.at for hit in strong_hits]] *= _LESS
    return fused._replace(strengths=strengths)


def _strong(
    fused: Fused, compared: Compared, leaders: Mapping[int, int], foreign: Container[int]
) -> tuple[list[_Judged], dict[int, int]]:
    """Return the strong hits that are short, and of the first hits the rows in `compared`, near-duplicates apart."""
    strong_hits, groups = list[_Judged](), dict[int, int]()
    row_of = dict(zip(compared.docs, range(len(compared.docs)), strict=True))
    strengths, sizes = fused.strengths[:_LOOKED_AT].tolist(), compared.sizes.tolist()
    for at, (doc, strength) in enumerate(zip(fused.found.docs[:_LOOKED_AT].tolist(), strengths, strict=True)):
        group = leaders.get(doc, doc)
        row = row_of.get(doc)
        if row is None and (row := row_of.get(group)) is None:
            continue
        if group not in groups:
            if len(groups) == _FIRST:
                break
            groups[group] = row
        if strength >= STRONG and sizes[row] <= _MOST_BYTES and doc not in foreign:
            strong_hits.append(_Judged(at, doc, group))
    return strong_hits, groups


def _unmet(cosines: Matrix, shares: Matrix) -> Bools:
    """Return of each hit (a row) whether others are about the same thing and it holds nothing near the rest of a
    question.
    """
    is_held = cosines > _SAME
    common = np.where(np.add.reduce(is_held) - is_held >= _COMMON, shares, 0.0)
    rest = shares - common
    thing, left = np.add.reduce(common, 1), np.add.reduce(rest, 1)
    about = is_held.astype(np.float32) @ common.T >= _ABOUT * thing
    other_count: Array = np.add.reduce(about) - about.diagonal()
    met_share = np.add.reduce(np.maximum(cosines, 0) * rest, 1)
    return (thing > 0) & (other_count >= _LEAST_OTHERS) & (left > _LEAST_REST) & (met_share < _MET * left)


def _of_kind(tx: Tx, lower_question: str, amounts: frozenset[str] | None) -> Callable[[str], bool] | None:
    """Return a test for texts with something of the kind that is asked for and that the question does not name: an
    amount or a time, a name, a place. None if any text may say it, or none without its words.

    A text without a word of the question that the model does not read, as a misspelt word, is not judged either.
    """
    question_words = frozenset(_WORD.findall(lower_question))
    if amounts:
        return partial(_has_amount, amounts=amounts - question_words, question_words=question_words)
    unread = frozenset(filterfalse(knows_word(tx), question_words))
    if _PERSON.search(lower_question):
        return partial(_has_name, question_words=question_words, unread=unread)
    if _PLACE.search(lower_question) or unread:
        places = _PLACES - question_words if _PLACE.search(lower_question) else frozenset[str]()
        return partial(_has_place, places=places, unread=unread)
    return None


def _has_amount(text: str, amounts: frozenset[str], question_words: frozenset[str]) -> bool:
    words = _WORD.findall(text.lower())
    return not amounts.isdisjoint(words) or any(not word.isalpha() and word not in question_words for word in words)


def _has_name(text: str, question_words: frozenset[str], unread: frozenset[str]) -> bool:
    if not unread.issubset(_WORD.findall(text.lower())):
        return True
    words = [word for word in _WORD.findall(text) if word.lower() not in question_words]
    # "Errors of the billing service ..." begins with no name.
    names = words[1:] if not _AFTER_NOUN.isdisjoint(words[1:2]) else words
    return any(word[0].isupper() and word.lower() not in _NO_NAMES for word in names)


def _has_place(text: str, places: frozenset[str], unread: frozenset[str]) -> bool:
    words = frozenset(_WORD.findall(text.lower()))
    return not places.isdisjoint(words) or not unread.issubset(words)


def _statement(doc: int, text: str, _words: str) -> tuple[int, str]:
    """Return a text without the name or path that may stand above it."""
    lines = text.strip().splitlines()
    return doc, lines[-1] if len(lines) == _LINES else text
