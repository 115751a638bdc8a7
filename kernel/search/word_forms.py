"""Stems of words beside a text, for languages with endings: a question seldom has the form that the memory has.

FTS5's porter tokenizer stems English. A script other than Latin tells the language, or a language whose stems are near
(Ukrainian is stemmed as Russian); the language of Latin letters is that of most of the function words.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache, lru_cache
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import Stemmer  # at once: it cannot be mapped any more at the end of the memory

from kernel.core.lazy_regex import regex
from kernel.core.text import distinct_words, normalized
from kernel.search.query import CJK_FUNCTION_WORDS, STOP_WORDS, acronyms
from kernel.security.rules.injection import short_text

_MARK = "\U000f0001"  # of private use, a letter for unicode61: no stem is taken for a word
_PRIVATE = 0xF0000  # plane 15: unicode61 takes its characters for letters
_LOW = 0xFFFF
_FIRST_OF_PLANE_1 = 0xF000  # of the lower 16 bits: emoji beyond have them, signs and letters of plane 0 less
_WITHOUT_ENDINGS = ("vietnamese", "bengali")  # or without a stemmer
_WITH_VOWEL_SIGNS = ("hindi", "bengali", "tamil")  # unicode61 cuts their words
_WITH_COMPOUNDS = ("german", "dutch", "swedish", "danish", "norwegian", "finnish", "hungarian")
_MIN_STEM = 2  # letters
_CACHED_QUERIES = 8  # of which several steps of a search ask for the same
_MAX_WORD = 40  # letters; longer words are no words
_WORD = regex(
    "(?P<latin>[A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u1e00-\u1eff]+)|(?P<russian>[\u0400-\u052f]+)"
    "|(?P<greek>[\u0370-\u03ff\u1f00-\u1fff]+)|(?P<arabic>[\u0620-\u064a\u066e-\u06d3]+)|(?P<hebrew>[\u05d0-\u05ea]+)"
    "|(?P<hindi>[\u0900-\u0963\u0971-\u097f]+)|(?P<bengali>[\u0980-\u09e3\u09f0-\u09fe]+)"
    "|(?P<tamil>[\u0b80-\u0bff]+)|(?P<armenian>[\u0531-\u0587]+)"
)
_AROUND_WORDS = "?!.,;:()\"'¿¡…«»“”„‚‘’؟،؛।？！。、，"
_OTHER_SCRIPTS = ("russian", "greek", "arabic", "persian", "hebrew", "hindi", "bengali")
# Question words and pronouns of Korean.
_KOREAN_FUNCTION_WORDS = regex(
    "(?<![가-힣])(?:무엇(?:인가요|이|을|인지)?|언제(?:부터|까지)?|어디(?:인가요|에서|에|로|서)?|왜|어떤|어떻게|어느|누가|누구(?:의|인가요)?|무슨"
    "|얼마나|얼마|몇|우리(?:는|의)?|나는|내|그는|그녀는)(?![가-힣])"
)
_ELISION = regex("(?<=\\w)['\u2019-](?=\\w)")  # as in l'eau and a-t-il
_PERSIAN_LETTERS = frozenset("پچژگکی")
# Function words tell the language of a text in Latin letters, and no question searches by them: a language a line.
_STOP_WORDS = {
    language: frozenset(normalized("NFKC", " ".join(words)).split())
    for language, *words in map(
        str.split, Path(__file__).with_name("function_words.txt").read_text(encoding="utf-8").splitlines()
    )
}
_BETWEEN_LETTERS = bytes(code for code in range(128) if not chr(code).islower())
_TO_BLANKS = bytes.maketrans(_BETWEEN_LETTERS, b" " * len(_BETWEEN_LETTERS))
# Letters of few languages.
_LETTERS = {
    language: frozenset(letters)
    for language, letters in {
        "german": "äöüß",
        "french": "àâçèêëîïôùûœ",
        "spanish": "ñáíóú",
        "portuguese": "ãõçáâêôí",
        "italian": "àèìòù",
        "polish": "ąćęłńśźżó",
        "czech": "ěščřžýáíéůúťďň",
        "turkish": "ğışçöü",
        "swedish": "åäö",
        "danish": "æøå",
        "norwegian": "æøå",
        "finnish": "äö",
        "hungarian": "őűáéíóöúü",
        "romanian": "ăâîșțşţ",
        "vietnamese": "ăđơưạảấầẩẫậắằẳẵặẹẻẽếềểễệỉịọỏốồổỗộớờởỡợụủứừửữựỳỵỷỹ",
    }.items()
}


class QueryForms(NamedTuple):
    """The stems of a query, and the function words of its languages as the tokenizer has them."""

    stems: list[str]
    stop_words: set[str]


def stems(text: str) -> list[str]:
    """Return the distinct marked stems of the words of a text without vowel points, in languages with endings."""
    words = _words(text)
    return _stems_of(words) if words else []


@lru_cache(_CACHED_QUERIES)
def query_forms(text: str) -> QueryForms:
    """Return the same of a query, with the words by which it does not search."""
    stop_words = set[str]()
    if not (words := _words(text)):
        return QueryForms([], stop_words)
    for language in {language for language, _ in words}:
        own = _STOP_WORDS.get(language, ())
        stop_words.update(map(private, own) if language in _WITH_VOWEL_SIGNS else own)
    return QueryForms(_stems_of(words), stop_words)


def compound_stems(word: str) -> set[str]:
    """Return the stems of a word in the languages that write compounds as words."""
    return {_stemmer(language)(word) for language in _WITH_COMPOUNDS}


def subject_of(text: str) -> str:
    """Return a query without its function words; all of it if it has no others."""
    foreign, names = query_forms(text).stop_words, acronyms(text)
    plain = text if text.isascii() else _KOREAN_FUNCTION_WORDS.sub(" ", CJK_FUNCTION_WORDS.sub(" ", text))
    plain = _ELISION.sub(" ", plain) if foreign else plain
    words = [(word, word.strip(_AROUND_WORDS).lower()) for word in plain.split()]
    left = [(word, bare) for word, bare in words if bare in names or (bare not in STOP_WORDS and bare not in foreign)]
    return " ".join([word for word, bare in left if bare.isascii() or private(bare) not in foreign]) or text


def as_written(word: str) -> str:
    """Return a word of the index as a text has it: without a mark, and without letters of private use."""
    if word.isascii():
        return word
    word = word.removeprefix(_MARK)
    return "".join(_written(ord(letter)) if ord(letter) >= _PRIVATE else letter for letter in word)


def is_stem(word: str) -> bool:
    """Return whether a word of the index stands beside the text, as the stem of a word of it."""
    return word.startswith(_MARK)


def private(text: str) -> str:
    """Return a text in letters of private use, which the tokenizer keeps together."""
    return "".join(chr(_PRIVATE + (ord(letter) & _LOW)) for letter in text)


def _written(code: int) -> str:
    low = code & _LOW
    return chr(low + 0x10000 if low >= _FIRST_OF_PLANE_1 else low)


def _stems_of(words: Iterable[tuple[str, str]]) -> list[str]:
    return [*dict.fromkeys(stem for language, word in words if (stem := _stem(language, word)))]


def _words(text: str) -> list[tuple[str, str]]:
    """Return the languages and distinct words of a text that are not English."""
    short = short_text(text)  # its words are those between blanks, and more
    if short is not None and _FOREIGN_WORDS.isdisjoint(short.words):
        return []
    if text.isascii():
        if _FOREIGN_WORDS.isdisjoint(text.lower().split()):
            return []
        distinct = dict.fromkeys(chain.from_iterable(map(_ascii_words, distinct_words(text.lower()))))
        names = acronyms(text)
        words = [word for word in distinct if word not in names] if names else [*distinct]
        # A language other than English has at most so many words more than English, and so many less.
        if len(_FOREIGN_WORDS.intersection(words)) <= len(_ENGLISH_WORDS.intersection(words)):
            return []
        language = _latin_language(words)
        return [(language, word) for word in words] if language else []
    text = normalized("NFKC", text).replace("İ", "i").lower()
    # Distinct words only: a long text has millions of words, and few of them are distinct.
    matches = (match for word in distinct_words(text) for match in _WORD.finditer(word))
    words = dict.fromkeys((match.lastgroup or "", match.group()) for match in matches)
    latin = _latin_language([word for script, word in words if script == "latin"])
    persian = not _PERSIAN_LETTERS.isdisjoint(text)
    languages = {"latin": latin, "arabic": "persian" if persian else "arabic"}
    by_language = ((languages.get(script, script), word) for script, word in words)
    return [(language, word) for language, word in by_language if language]


def _ascii_words(folded: str) -> list[str]:
    return folded.encode().translate(_TO_BLANKS).decode().split()  # in a third of the time of a regular expression


def _latin_language(words: Iterable[str]) -> str:
    """Return the language that most of the words speak for; "" for English or none."""
    votes = Counter(chain.from_iterable(map(_languages_of, words)))
    best = max(votes, key=lambda language: (votes[language], -_LATIN.index(language)), default="english")
    return "" if best == "english" else best


def _languages_of(word: str) -> Iterable[str]:
    languages = _LANGUAGES_OF.get(word, ())
    if word.isascii():
        return languages
    return chain(languages, (language for language, letters in _LETTERS.items() if not letters.isdisjoint(word)))


def _stem(language: str, word: str) -> str:
    if language in _WITHOUT_ENDINGS or len(word) > _MAX_WORD or word in _STOP_WORDS.get(language, ()):
        return ""
    stem = _hebrew(word) if language == "hebrew" else _stemmer(language)(word)
    if len(stem) < _MIN_STEM:
        return ""
    return _MARK + (private(stem) if language in _WITH_VOWEL_SIGNS else stem.replace("ё", "е"))


def _hebrew(word: str) -> str:
    """Return a word without the endings of plural and gender, and without prefixed particles, as far as three letters
    are left.
    """
    for ending in ("ים", "ות", "ה"):
        if word.endswith(ending) and len(word) >= 3 + len(ending):
            word = word.removesuffix(ending)
            break
    for _ in range(2):
        if len(word) > 3 and word[0] in "והבלכמש":
            word = word[1:]
    return word


@cache
def _stemmer(language: str) -> Callable[[str], str]:
    module: Any = Stemmer
    try:
        return module.Stemmer(language, 0).stemWord  # without a cache, which threads would share
    except KeyError as error:  # for want of memory: every language of this module is there
        raise MemoryError from error


def _by_word() -> dict[str, tuple[str, ...]]:
    languages: dict[str, tuple[str, ...]] = {}
    for language in _LATIN:
        for word in STOP_WORDS if language == "english" else _STOP_WORDS[language]:
            languages[word] = (*languages.get(word, ()), language)
    return languages


_LATIN = ("english", *(language for language in _STOP_WORDS if language not in _OTHER_SCRIPTS))
_LANGUAGES_OF = _by_word()
_FOREIGN_WORDS = frozenset(_LANGUAGES_OF.keys() - STOP_WORDS)
_ENGLISH_WORDS = frozenset(word for word, languages in _LANGUAGES_OF.items() if languages == ("english",))
