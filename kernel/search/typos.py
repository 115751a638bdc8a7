"""Words of a query that neither the index nor the model knows: the words of the index one edit away stand for them."""

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from kernel.search.query import Term

_MIN_LENGTH = 5  # letters; most shorter words are one edit away from other words; not measured
_MAX_LENGTH = 24  # letters; bounds the look-ups, 54 for each letter; not measured
MAX_WORDS = 2  # of a query: .6 ms each in a store of 1,000 memories, 5 ms in one of 20,000
_MIN_PART = 3  # letters of each word of two written as one; not measured
_MAX_CORRECTIONS = 4  # of a word, those in most documents; not measured
_ALPHABETS = (
    "abcdefghijklmnopqrstuvwxyz",
    "абвгґдеєжзиіїйклмнопрстуфхцчшщъыьэюяё",
    "αβγδεζηθικλμνξοπρστυφχψωςάέήίόύώϊϋ",
    "אבגדהוזחטיכלמנסעפצקרשתםןףץך",
    "ابتثجحخدذرزسشصضطظعغفقكلمنهويةىءآأإ",
)

Count = Callable[[list[str]], dict[str, int]]
"""The number of documents that hold each of these stems, of those in the index."""


class Near(NamedTuple):
    """A word of the index near a word that looks misspelt, and the number of documents that hold it."""

    stem: str
    surface: str
    docs: int


def misspelt(terms: Sequence[Term], frequency: Mapping[str, int], knows: Callable[[str], bool]) -> list[Term]:
    """Return the terms that no document holds; `knows` tells words that are spelt right all the same."""
    unseen = (term for term in terms if not (frequency.get(term.stem) or term.derived or term.prefix))
    words = (term for term in unseen if _MIN_LENGTH <= len(term.surface) <= _MAX_LENGTH and term.surface.isalpha())
    return [term for term in words if not knows(term.surface)]


def near_words(word: str, stems: Callable[[str], Sequence[str]], count: Count) -> list[Near]:
    """Return the words of the index one edit away, those in most documents first."""
    words = sorted(one_edit_away(word))
    surfaces = dict(zip(stems(" ".join(words)), words, strict=True))
    near = sorted(count([*surfaces]).items(), key=lambda pair: (-pair[1], pair[0]))[:_MAX_CORRECTIONS]
    return [Near(stem, surfaces[stem], docs) for stem, docs in near] or _two_words(word.lower(), stems, count)


def _two_words(word: str, stems: Callable[[str], Sequence[str]], count: Count) -> list[Near]:
    splits = [(word[:at], word[at:]) for at in range(_MIN_PART, len(word) - _MIN_PART + 1)]
    parts = [part for split in splits for part in split]
    pairs = [*zip(stems(" ".join(parts)), parts, strict=False)]
    docs = count([stem for stem, _ in pairs]) if len(pairs) == len(parts) else {}
    near = [
        [Near(stem, part, docs.get(stem, 0)) for stem, part in pairs[at : at + 2]] for at in range(0, len(pairs), 2)
    ]
    best = max(near, key=lambda two: min(part.docs for part in two), default=list[Near]())
    return best if all(part.docs for part in best) else []


def respelled(text: str, near: Mapping[str, Sequence[Near]]) -> str:
    """Return the text with the first of the near words in place of each that has some."""
    for word, words in near.items():
        if words:
            parts = " ".join(near.surface for near in words)
            spelling = parts if parts.replace(" ", "") == word.lower() else words[0].surface
            text = re.sub(rf"\b{word}\b", spelling, text, flags=re.IGNORECASE)
    return text


def one_edit_away(word: str) -> set[str]:
    """Return the words made from a word by a letter left out, added or changed, or two swapped; none for letters not
    listed.
    """
    # As the tokenizer, which takes the marks off Latin letters only.
    plain = "".join(
        letter for letter in unicodedata.normalize("NFD", word.lower()) if unicodedata.category(letter) != "Mn"
    )
    word = plain if plain.isascii() else unicodedata.normalize("NFC", word.lower())
    letters = next((alphabet for alphabet in _ALPHABETS if set(word) <= set(alphabet)), "")
    if not letters:
        return set()
    splits = [(word[:at], word[at:]) for at in range(len(word) + 1)]
    swaps = {begin + end[1] + end[0] + end[2:] for begin, end in splits if len(end) > 1}
    shorter = {begin + end[1:] for begin, end in splits if end}
    changes = {begin + letter + end[1:] for begin, end in splits if end for letter in letters}
    longer = {begin + letter + end for begin, end in splits for letter in letters}
    return (swaps | shorter | changes | longer) - {word}
