"""Whether two texts say the same: no number, name or negation tells them apart, and no word that matters is missing."""

from collections.abc import Callable, Sequence
from itertools import takewhile
from typing import NamedTuple

from kernel.core.lazy_regex import regex
from kernel.embed.model import Embedder, Embedding
from kernel.search.named_values import MONTH_OF, days_of, folded
from kernel.search.query import STOP_WORDS
from kernel.search.vectors import embed_texts, l2_distance
from kernel.store.transaction import Tx

# Of unit vectors. Chosen with the next: of generated facts and questions 95 of 100
# pairs said to be the same are.
MAX_DISTANCE = 0.7
# The weight of the words that only one of two texts has, over the mean weight of their words.
MAX_UNMATCHED = 1.1
# A text of so many words may say a thing more than another that says the same; of notes and turns with one word in
# eight left out, .7 to .9 are found so, without it .2.
LONG_TEXT_WORDS = 16
_MOST_CHARS = 240  # of a statement
_LEAST_ALIKE = 3  # words, of which one is a subject and one is the predicate
_STEM_LETTERS = 4  # letters by which forms of a name, as of cases, are recognised; not measured
_MAX_ENDING = 3  # letters that they may differ in length; not measured
_LIKE = 0.6  # cosine of forms of a word, as "wrote" and "written"; of words of other meaning it is less than .4

_WORD = regex(r"[^\W_]+(?:['’][^\W_]+)*")
_POSSESSIVE = regex(r"['’]s\b")
_DIGITS = regex(r"\d+")
_DAY_NAMES = regex(
    r"(?<!\d)(\d{1,2})(?:st|nd|rd|th|er|\.)? (?:of |de )?([^\W\d_]{3,10})|([^\W\d_]{3,10}) (\d{1,2})(?!\d)"
)
_YEAR = regex(r"\b(?:19|20)\d\d\b")
_NUMBERS = {word: at for at, word in enumerate("two three four five six seven eight nine ten eleven twelve".split(), 2)}
_NEGATIONS = frozenset(
    """no not never none nobody nothing nowhere neither nor without cannot unable nicht kein keine keinen keinem keiner
    nie niemals ohne ne pas jamais sans nunca jamás sin não sem niet geen nooit zonder bez nigdy değil yok asla не нет
    без никогда ні немає ніколи δεν δε μην χωρίς ποτέ لا ليس ليست لم لن غير بدون לא אין בלי מעולם नहीं नही मत बिना 안 못
    không chưa""".split()
)
# Beside these "no" is "in the".
_PORTUGUESE = frozenset("agora ao aos da das do dos ele ela em fica foi na nas o os um uma é".split())
# Signs of denial but in names and words of another sense, as Wuxi, the future, wireless, different, only.
_NEGATED = regex(
    r"n['’]t\b|n(?<![^\W_]n)['’](?=[^\W_])|ません|(?<!少)ない|なかった|않|없|아니|不(?![但仅僅动動产産同久断斷管过過锈錆错錯])"
    r"|没|沒|無(?![印料線论論])|无(?![线锡论])|未(?![来來])|ไม่"
)


class _Names(NamedTuple):
    """The words of a text, and those that begin with a capital."""

    words: frozenset[str]
    names: frozenset[str]


def says_the_same(tx: Tx, text: str, texts: Sequence[str]) -> list[bool]:
    """Tell for each of the other texts whether it states the same as `text`; precision counts more than recall.

    Texts without a vector are only told apart.
    """
    near = [candidate for candidate in texts if not tell_apart(text, candidate)]
    embedder, vectors = tx.context.embedder, embed_texts(tx, [text, *near]) if near else None
    if embedder is None or not vectors:
        return [candidate in near for candidate in texts]
    same = is_same_to(embedder, text, vectors[0])
    verdicts = {candidate: same(candidate, vector) for candidate, vector in zip(near, vectors[1:], strict=True)}
    return [verdicts.get(candidate, False) for candidate in texts]


def is_same_to(
    embedder: Embedder, text: str, vector: Embedding, *, within: float = MAX_DISTANCE
) -> Callable[[str, Embedding], bool]:
    """Return a test for other texts that nothing tells apart: a distance, and no heavy word in one text alone."""

    def same(text_b: str, embedding: Embedding) -> bool:
        if text == text_b:
            return True
        near = l2_distance(vector.cosine(embedding)) < within
        return near and covers(embedder, (text, vector.tokens), (text_b, embedding.tokens))

    return same


def covers(embedder: Embedder, left_text: tuple[str, bytes], right_text: tuple[str, bytes]) -> bool:
    """Return whether no word that matters is in only one of two texts, or of long texts in each; with packed tokens."""
    weights = embedder.unmatched(left_text[1], right_text[1])
    return (min(weights) if _are_long(left_text[0], right_text[0]) else max(weights)) <= MAX_UNMATCHED


def tell_apart(left: str, right: str) -> bool:
    """Return whether two texts differ in their numbers, in a negation, or each in a name that the other lacks."""
    return is_negated(left) != is_negated(right) or _differ_in_numbers(left, right) or _differ_in_names(left, right)


def has_word_like(tx: Tx, text: str, word: str) -> bool:
    """Return whether a text has a word or another of its forms or of its meaning."""
    if word[:_STEM_LETTERS] in text.lower():
        return True
    embedder, vectors = tx.context.embedder, embed_texts(tx, [text])
    return embedder is not None and bool(vectors) and embedder.nearest(vectors[0].tokens, word) >= _LIKE


def begins_alike(left: str, right: str) -> bool:
    """Return whether two short statements say another thing of one subject: at least half of the shorter is the same
    beginning. "The landlord is Herr Brandt" and "The landlord is Frau Seidel" are far apart by meaning.
    """
    if max(len(left), len(right)) > _MOST_CHARS or _first_word(left) != _first_word(right):
        return False
    first, second = (_WORD.findall(text.lower()) for text in (left, right))
    shorter = min(len(first), len(second))
    pairs = zip(first, second, strict=False)
    alike = [word for word, _ in takewhile(lambda pair: pair[0] == pair[1], pairs)]
    return (
        _LEAST_ALIKE <= len(alike) < shorter <= 2 * len(alike)
        and max(len(first), len(second)) <= LONG_TEXT_WORDS
        and not all(word in STOP_WORDS or _is_of_date(word) for word in alike)
    )


def ends_alike(left: str, right: str) -> bool:
    """Return whether two statements differ in the name at their beginning alone, as "Ann leads the team" and "Bob leads
    the team" do.
    """
    first, second = _WORD.findall(left), _WORD.findall(right)
    pairs = zip(reversed(first), reversed(second), strict=False)
    alike = [word for word, _ in takewhile(lambda pair: pair[0] == pair[1], pairs)]
    names = first[: -len(alike)] + second[: -len(alike)] if alike else []
    return (
        _LEAST_ALIKE <= len(alike) < min(len(first), len(second))
        and all(name[0].isupper() for name in names)
        and not STOP_WORDS.issuperset(map(str.lower, alike))
    )


def are_about_others(left: str, right: str) -> bool:
    """Return whether each of two texts has names that the other lacks, and none that both have but months."""
    return _differ_in_names(left, right) and MONTH_OF.keys() >= _names(left).names & _names(right).names


def begin_apart(left: str, right: str) -> bool:
    """Return whether two statements begin with subjects that the other lacks, and say other numbers."""
    first, second = _WORD.findall(left.lower()), _WORD.findall(right.lower())
    subjects = [next((word for word in words if word not in STOP_WORDS), "") for words in (first, second)]
    return subjects[0] not in second and subjects[1] not in first and _numbers(left) != _numbers(right)


def share_half(left: str, right: str) -> bool:
    """Return whether two texts have half of the words that say the subject of the shorter in common."""
    first, second = ({*_WORD.findall(_POSSESSIVE.sub("", text.lower()))} - STOP_WORDS for text in (left, right))
    shorter = min(len(first), len(second))
    return 0 < shorter <= 2 * sum(not _is_of_date(word) for word in first & second)


def _is_of_date(word: str) -> bool:
    return word.isdigit() or word in MONTH_OF


def share_day(left: str, right: str) -> bool:
    """Return whether two short statements name one day of a year, but not the same year: "4 May 1990", "May 4th"."""
    if max(len(left), len(right)) > _MOST_CHARS or _YEAR.findall(left) == _YEAR.findall(right):
        return False
    return not _days(left).isdisjoint(_days(right)) and not are_about_others(left, right)


def _days(text: str) -> set[tuple[int, int]]:
    """Return the days in a text as month and day."""
    text = folded(text)
    named = (
        (month or month_after, day or day_after) for day, month, month_after, day_after in _DAY_NAMES.findall(text)
    )
    with_year = {(month, day) for _, month, day in days_of(text)}
    return with_year | {(MONTH_OF[month], int(day)) for month, day in named if month in MONTH_OF}


def _first_word(text: str) -> str:
    word = _WORD.search(text)
    return word[0].lower() if word else ""


def is_negated(text: str) -> bool:
    """Return whether a text denies something, in any of some twenty languages."""
    text = text.lower()
    return are_denying(_WORD.findall(text), text)


def are_denying(words: Sequence[str], text: str) -> bool:
    """Return whether a text in small letters, which has these words, denies something."""
    if not _NEGATIONS.isdisjoint(words):
        return {*words} & _NEGATIONS != {"no"} or _PORTUGUESE.isdisjoint(words)
    return ("'" in text or not text.isascii()) and _NEGATED.search(text) is not None


def is_common(text: str) -> bool:
    """Return whether a text has no word that says its subject."""
    return STOP_WORDS.issuperset(_WORD.findall(text.lower()))


def _are_long(left: str, right: str) -> bool:
    return max(len(left.split()), len(right.split())) >= LONG_TEXT_WORDS


def _differ_in_numbers(left: str, right: str) -> bool:
    first, second = _numbers(left), _numbers(right)
    return bool(first - second and second - first) if _are_long(left, right) else first != second


def _numbers(text: str) -> frozenset[int]:
    words = (_NUMBERS[word] for word in _WORD.findall(text.lower()) if word in _NUMBERS)
    # Longer numbers mostly differ at their end.
    return frozenset((*(int(digits[-18:]) for digits in _DIGITS.findall(text)), *words))


def _differ_in_names(left: str, right: str) -> bool:
    # A word at the beginning of a sentence may be a name too; a text that only says more is left to the words.
    first, second = _names(left), _names(right)
    return _lacks(second.words, first.names) and _lacks(first.words, second.names)


def _names(text: str) -> _Names:
    words = _WORD.findall(_POSSESSIVE.sub("", text))
    names = (word.lower() for word in words if word[0].isupper() and len(word) > 1)
    return _Names(frozenset(map(str.lower, words)), frozenset(names) - STOP_WORDS)


def _lacks(words: frozenset[str], names: frozenset[str]) -> bool:
    lengths: dict[str, set[int]] = {}  # of the words, by their first letters
    for word in words:
        lengths.setdefault(word[:_STEM_LETTERS], set()).add(len(word))
    near = range(-_MAX_ENDING, _MAX_ENDING + 1)
    forms = (name for name in names if name not in words)
    return any(lengths.get(name[:_STEM_LETTERS], set()).isdisjoint(len(name) + more for more in near) for name in forms)
