"""Words that the tokenizer of the full-text index misses: parts of names, emoji, scripts with vowel signs.

FTS5's unicode61 takes letters and digits only. So it keeps `getUserById` whole, drops emoji, and cuts words of Hindi or
Thai at each vowel sign. The words it misses are indexed beside the text, in letters of private use if it takes no
others.

A request seldom shares a word with the standing instruction that bears on it, such as "Always answer in German", so
search by likeness alone passes it over: instructions are marked when they are written, and lifted for requests.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice

from msgspec import Struct
from msgspec.structs import replace

from kernel.core.lazy_regex import regex
from kernel.core.text import CHANGES_OF_NAMES, distinct_words, normalized
from kernel.search import word_forms
from kernel.search.named_values import named_values, value_of
from kernel.search.query import Term, grams, query_grams, query_words, words_beside_cjk
from kernel.search.word_forms import private
from kernel.security.rules.injection import short_text

MARK = "\U000f0002"  # beside the text of an instruction: of private use, a letter for unicode61
# A word of each instruction, with the part of it there.
_INSTRUCTION_PARTS = {
    "never": "ever ",
    "ever": "ever ",
    "whenever": "ever ",
    "'whenever": "ever ",
    "always": "lways ",
    "ask": " ask",
    "ask'": " ask",
    "now": "now on",
    "time": "time you ",
    "future": "future",
    "forward": "going forward",
}
_INSTRUCTION_WORDS = frozenset(_INSTRUCTION_PARTS)
_INSTRUCTION = regex(
    r"(?<![^\s\"'(])(?:(?:i|we) ask(?: you)?\b|from now on\b|going forward,|(?:whenever|every time|each time) you "
    r"|in (?:the )?future,)"
    r"|(?<![^.!?:;\n] )(?<!\S)(?:please )?(?:always|never|don'?t ever|do not ever) "
    r"(?!(?:i|we|he|she|they|it|the|been|had|was|here|there)\b)"
)
# Characters searched around a part, which is repeated all over some texts, and more than an instruction has around it.
_BEFORE_PART, _AFTER_PART, _INSTRUCTION_LENGTH = 24, 168, 40
_MAX_NAME_LENGTH = 64  # characters; longer names are keys and encoded data; not measured
_MAX_QUERY_PARTS = 2000  # of names in a query; not measured
_MAX_NAME_PARTS = 8  # with more changes between letters and digits it is an id or a digest; not measured

_COMPOUND = regex(rf"[A-Z0-9_](?:{CHANGES_OF_NAMES})")
_NAME = regex(r"[^\W_]+(?:_[^\W_]+)*")
_BLANK = regex("[ \n]")
_BREAK = regex(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z][a-z])|(?<=[A-Za-z])(?=[0-9])|(?<=[0-9])(?=[A-Za-z])|_")
# Thai, Lao, Burmese and Khmer write no blanks between words.
_UNSPACED = r"\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ece\u1000-\u103f\u1050-\u109d\u1780-\u17d3\ua9e0-\ua9ef\uaa60-\uaa7f"
# From Devanagari to Sinhala, and Tibetan, without digits and punctuation: words hold vowel signs.
_WITH_VOWEL_SIGNS = (
    r"\u0900-\u0963\u0971-\u09e5\u09f0-\u0a65\u0a70-\u0ae5\u0af9-\u0b65\u0b71-\u0be5\u0c00-\u0c65\u0c80-\u0ce5"
    r"\u0cf1-\u0d65\u0d7a-\u0de5\u0df2-\u0df3\u0f40-\u0fbc"
)
# Hebrew, Arabic and Syriac words are mostly written without their points.
_POINTS = (
    r"\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06dc"
    r"\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed\u0711\u0730-\u074a"
)
# A search begins at the start of a run: from each of its characters it would take quadratic time.
_POINTED = regex(f"(?<![^\\W_{_UNSPACED}])[^\\W_{_UNSPACED}]*[{_POINTS}](?:[{_POINTS}]|[^\\W_])*")
_POINT = regex(f"[{_POINTS}]+")
_JOINERS = regex("[\u200b-\u200d]+")
_OF_SIGNED = f"{_WITH_VOWEL_SIGNS}\u200c\u200d"
_SIGNED = regex(f"(?<![{_OF_SIGNED}])[{_OF_SIGNED}]*[{_WITH_VOWEL_SIGNS}][{_OF_SIGNED}]*")
_RUN = regex(f"[{_UNSPACED}]+")
_CUT = _UNSPACED + _WITH_VOWEL_SIGNS
_ATTACHED = regex(f"(?<=[{_CUT}])[^\\W_{_CUT}]+|(?<![^\\W_{_CUT}])[^\\W_{_CUT}]++(?=[{_CUT}])")
# Flags are two letters; a tone of skin is no emoji of its own.
_EMOJI = regex(
    "[\U0001f1e6-\U0001f1ff]{2}|[\u203c\u2049\u231a\u231b\u23e9-\u23fa\u2600-\u27bf\u2b05-\u2b07\u2b1b-\u2b55"
    "\U0001f000-\U0001f1e5\U0001f200-\U0001f3fa\U0001f400-\U0001faff]"
)
_MISSED = regex(f"[{_UNSPACED}{_WITH_VOWEL_SIGNS}{_POINTS}\u203c\u2049\u231a-\u27bf\u2b05-\u2b55\U0001f000-\U0001faff]")

_MARKED = regex(r"[.,'\u2019\u00a0\u202f]\d{3}")  # in few texts, and soon looked for
_GROUPED = regex(r"(?<![\d.,'\u2019])\d{1,3}(?:(?:,\d{3})+|(?:\.\d{3})+|(?:['\u2019\u00a0\u202f]\d{3})+)(?!\d)")
_NO_DIGIT = regex(r"\D")
_DIGEST = regex(r"(?<![^\W_])[0-9a-f]{7,64}(?![^\W_])")
_SHORT = (7, 8, 10, 12)  # characters of a digest that git and others show
_MAX_DIGESTS = 8  # of a query; not measured

_PARTED = regex(r"(?<![^\W_])[^\W\d_]{2,20}(?:[-.][^\W\d_]{2,20}){1,3}(?![^\W_])")  # such as node-fetch
_NOT_IN_WORDS = regex("[-.]")

Tokenize = Callable[[str], Sequence[tuple[int, int, str]]]


class OwnWords(Struct, frozen=True):
    """The words beside a text that depend on the text alone, and whether it is an instruction."""

    stems: str
    parts: list[str]
    is_instruction: bool


def own_words(text: str) -> OwnWords:
    short = short_text(text)
    if short is not None and not short.changes:
        return OwnWords(" ".join(word_forms.stems(text)), [], is_instruction(text))
    stems = " ".join((*_whole_numbers(text), *word_forms.stems(_without_points(text))))
    return OwnWords(stems, [*name_parts(text)], is_instruction(text))


def indexed_words(text: str, words: str = "", own: OwnWords | None = None) -> str:
    """Return the words of a document that the index holds besides its text: character pairs, further words, and words
    that the tokenizer misses. `own` are the `own_words` of the text, if they were computed before.
    """
    if text.isascii() and not words:
        return completed(text, "", own)
    return completed(text, " ".join(part for part in (grams(text), words, grams(words)) if part), own)


def completed(text: str, beside: str, own: OwnWords | None = None) -> str:
    """Return `beside`, the words beside a text as the first format has them, and those that came to it later."""
    own = own or own_words(text)
    words = _completed(text, own, beside.removeprefix(MARK).lstrip())
    return f"{MARK} {words}".rstrip() if own.is_instruction else words


def _completed(text: str, own: OwnWords, beside: str) -> str:
    stems = own.stems
    if not beside and text.isascii():
        parts = " ".join(own.parts)
        if not parts:
            return stems
        return " ".join((*dict.fromkeys((*parts.split(), *name_parts(parts))), *([stems] if stems else ())))
    beside = f" {beside}".removesuffix(f" {stems}").strip() if stems else beside
    parts = " ".join((*own.parts, *name_parts(beside)))
    # A part may be a name, as 0aa of 0A_A is.
    further = " ".join(dict.fromkeys((*parts.split(), *name_parts(parts), *_missed(text), *_missed(beside))))
    words = beside if beside.endswith(further) else f"{beside} {further}".lstrip()
    return f"{words} {stems}".strip()


def is_instruction(text: str) -> bool:
    """Return whether a text says how to answer or to work from now on, in English."""
    folded, short = text.lower(), short_text(text)
    words = _INSTRUCTION_WORDS if short is None else _INSTRUCTION_WORDS.intersection(short.words)
    parts = [part for part in {_INSTRUCTION_PARTS[word] for word in words} if part in folded]
    if not parts:
        return False
    windows = ((max(0, at - _BEFORE_PART), at + _AFTER_PART) for part in parts for at in _places(folded, part))
    matches = (_INSTRUCTION.search(folded, *window) for window in windows)
    # Once more, with the words behind the window.
    return any(match is not None and _INSTRUCTION.match(folded, match.start()) for match in matches)


def _places(text: str, part: str) -> Iterator[int]:
    at = text.find(part)
    while at >= 0:
        yield at
        at = text.find(part, at + _AFTER_PART - _INSTRUCTION_LENGTH)


def name_parts(text: str) -> Iterable[str]:
    """Return the parts of names such as getUserById and utf8, in small letters, and get_user_by_id in one word."""
    if not _COMPOUND.search(text):
        return ()
    words = chain.from_iterable(map(_with_names, distinct_words(text)))
    names = filter(_COMPOUND.search, dict.fromkeys(chain.from_iterable(map(_NAME.findall, words))))
    return chain.from_iterable(_parts(name) for name in names if len(name) <= _MAX_NAME_LENGTH and name.isascii())


def _with_names(text: str) -> Iterator[str]:
    """Yield the parts of a text between blanks that have a change within a name."""
    end = 0
    while change := _COMPOUND.search(text, end):
        begin = max(text.rfind(" ", end, change.start()), text.rfind("\n", end, change.start()), end - 1) + 1
        blank = _BLANK.search(text, change.end())
        end = blank.start() if blank else len(text)
        yield text[begin:end]


def query_terms(text: str, tokenize: Tokenize, *, spelled_otherwise: bool = True) -> list[Term]:
    """Return the distinct terms of a query: its words without stop words, parts of names, and character pairs; and
    other spellings of these unless they are not wanted.
    """
    text = text.replace("\0", " ")  # FTS5 reads an expression up to its first NUL
    beside = words_beside_cjk(text)
    words = text if text.isascii() else f"{_without_cut_words(text)} {beside}"
    # Without numbers: 8, of utf8, is in many texts that are about something else.
    parts = (part for part in chain(name_parts(text), name_parts(beside)) if not part.isdigit())
    stems, stop_words = word_forms.query_forms(_without_points(text))
    digests = [name for name in dict.fromkeys(_DIGEST.findall(text.lower())) if not (name.isdigit() or name.isalpha())]
    digests = digests[:_MAX_DIGESTS]
    beginnings = [digest[:length] for digest in digests if len(digest) > _SHORT[-1] for length in _SHORT]
    further = (
        *_whole_words(text),
        *_whole_numbers(text),
        *beginnings,
        *stems[:_MAX_QUERY_PARTS],
    )
    words = " ".join((words, *islice(parts, _MAX_QUERY_PARTS), *further))
    short = [Term(digest, digest, True) for digest in digests if len(digest) <= _SHORT[-1]]
    terms = {term.stem: term for term in query_words(words, tokenize(words), stop_words)}
    if spelled_otherwise and (names := " ".join(other_spellings(text))):
        for term in query_words(names, tokenize(names), stop_words):
            terms.setdefault(term.stem, replace(term, derived=True))
    return [*terms.values(), *pair_terms(text), *short]


def other_spellings(text: str) -> list[str]:
    """Return names such as node-fetch in one word, and further words by which a number or a date is found."""
    value = value_of(text) or named_values(text)
    joined = (_NOT_IN_WORDS.sub("", name) for name in _PARTED.findall(text))
    words = text.lower().split()
    compound = ["".join(words)] if len(words) == 2 and all(map(str.isalpha, words)) else []
    return [*(value.words if value and not value.parts else ()), *joined, *compound]


def pair_terms(text: str) -> list[Term]:
    """Return the terms that match character pairs in the index; a single character is a prefix."""
    terms = {term.stem: term for term in query_grams(text)}
    if not text.isascii():
        for run in _RUN.findall(normalized("NFKC", text)):
            for pair in [run[at : at + 2] for at in range(len(run) - 1)] or [run]:
                letters = private(pair)
                terms[letters] = Term(letters, letters, len(run) == 1)
    return list(terms.values())


def character_pairs(text: str) -> set[str]:
    """Return the pairs of characters of a text in scripts that write no blanks between words."""
    return {term.stem for term in pair_terms(text)}


def _whole_numbers(text: str) -> list[str]:
    if not _MARKED.search(text):
        return []
    numbers = chain.from_iterable(map(_GROUPED.findall, filter(_MARKED.search, distinct_words(text))))
    return [*dict.fromkeys(_NO_DIGIT.sub("", number) for number in numbers)]


def _parts(name: str) -> Iterator[str]:
    parts = [part for part in _BREAK.split(name) if part]
    if len(parts) > _MAX_NAME_PARTS and any(map(str.isdigit, parts)):
        return
    within = set(name.lower().split("_"))  # which the tokenizer finds
    has_words = any(len(part) > 1 and part.isalpha() for part in parts)  # unlike p1
    for part in map(str.lower, parts):
        if part not in within and (has_words if part.isdigit() else len(part) > 1):
            yield part
    if "_" in name:
        yield name.replace("_", "").lower()


def _missed(text: str) -> Iterable[str]:
    if text.isascii() or not _MISSED.search(text):
        return []
    attachments = _ATTACHED.findall(text)
    text = normalized("NFKC", text)
    pairs = [private(run[at : at + 2]) for run in _RUN.findall(text) for at in range(len(run))]
    return [*_whole_words(text), *pairs, *attachments]


def _whole_words(text: str) -> list[str]:
    """Emoji, words with vowel signs, and words without their points."""
    if text.isascii() or not _MISSED.search(text):
        return []
    text = normalized("NFKC", text)
    with_signs = [private(_JOINERS.sub("", word)) for word in _SIGNED.findall(text)]
    without_points = [_POINT.sub("", word) for word in _POINTED.findall(text)]
    return [*with_signs, *without_points, *map(private, _EMOJI.findall(text))]


def _without_cut_words(text: str) -> str:
    if not _MISSED.search(text):
        return text
    return _POINTED.sub(" ", _SIGNED.sub(" ", _RUN.sub(" ", text)))


def _without_points(text: str) -> str:
    return text if text.isascii() else _POINT.sub("", text)
