"""Words of a query that neither the index nor the model knows: the words of the index one edit away stand for them."""

import unicodedata
from collections.abc import Callable, Mapping, Sequence

from kernel.search.query import Term

_MIN_LENGTH = 5  # letters; most shorter words are one edit away from other words; not measured
_MAX_LENGTH = 24  # letters; bounds the look-ups, 54 for each letter; not measured
_MAX_WORDS = 2  # of a query: .6 ms each in a store of 1,000 memories, 5 ms in one of 20,000
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


def respelled(
    terms: Sequence[Term],
    frequency: Mapping[str, int],
    stems: Callable[[str], Sequence[str]],
    count: Count,
    knows: Callable[[str], bool],
) -> tuple[list[Term], dict[str, int]]:
    """The terms without those it replaces, with the words that stand for these, and in how many documents they are.

    `knows` tells words that are spelt right although no document has them.
    """
    unknown = [term for term in terms if not frequency.get(term.stem) and _is_word(term) and not knows(term.surface)]
    if not unknown:
        return [*terms], {}
    found: dict[str, int] = {}
    added: list[Term] = []
    for term in unknown[:_MAX_WORDS]:
        words = sorted(one_edit_away(term.surface))
        surfaces = dict(zip(stems(" ".join(words)), words, strict=True))
        near = sorted(count([*surfaces]).items(), key=lambda pair: (-pair[1], pair[0]))[:_MAX_CORRECTIONS]
        added += [Term(stem, surfaces[stem]) for stem, _ in near if not frequency.get(stem) and stem not in found]
        found |= dict(near)
    return [*(term for term in terms if term not in unknown), *added], found


def one_edit_away(word: str) -> set[str]:
    """What becomes of a word by a letter left out, added or changed, or two swapped; none for letters not listed."""
    # As the tokenizer, which takes the marks off Latin letters only.
    plain = "".join(one for one in unicodedata.normalize("NFD", word.lower()) if unicodedata.category(one) != "Mn")
    word = plain if plain.isascii() else unicodedata.normalize("NFC", word.lower())
    letters = next((alphabet for alphabet in _ALPHABETS if set(word) <= set(alphabet)), "")
    if not letters:
        return set()
    splits = [(word[:at], word[at:]) for at in range(len(word) + 1)]
    swapped = {begin + end[1] + end[0] + end[2:] for begin, end in splits if len(end) > 1}
    shorter = {begin + end[1:] for begin, end in splits if end}
    changed = {begin + letter + end[1:] for begin, end in splits if end for letter in letters}
    longer = {begin + letter + end for begin, end in splits for letter in letters}
    return (swapped | shorter | changed | longer) - {word}


def _is_word(term: Term) -> bool:
    return _MIN_LENGTH <= len(term.surface) <= _MAX_LENGTH and term.surface.isalpha() and not term.prefix
