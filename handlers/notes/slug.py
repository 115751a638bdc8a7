"""Names made of other names: types and file names in kebab-case, and the title a file name stands for."""

import unicodedata

from kernel.lazy_regex import regex
from kernel.text import one_line

SUFFIX = ".md"
_HUMP = regex(r"([a-z0-9])([A-Z])")
_PARTED = regex(r"[\s_/]+")
_HYPHENS = regex(r"-{2,}")
_UNSEEN = regex("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]")
_LONGEST = 120  # bytes, so that a number and a suffix still fit into the 255 of a file name
_NAMELESS = "memory"


def kebab(name: str) -> str:
    """`Architectural Decision`, `architecturalDecision` and `architectural/decision` as `architectural-decision`."""
    return _joined(_HUMP.sub(r"\1-\2", name.strip())).lower()


def slug(title: str) -> str:
    """The stem of the file of a title: ASCII letters and digits as the original keeps them, and those of every script.

    A title without any is called `memory`.
    """
    line = _UNSEEN.sub("", unicodedata.normalize("NFC", one_line(title, 8 * len(title) + 8)).lower())
    stem = _joined("".join(letter for letter in line if _kept(letter)))
    return stem.encode()[:_LONGEST].decode(errors="ignore").strip("-") or _NAMELESS


def title_of(path: str) -> str:
    """What a file is called where it does not say: its name, a blank for each hyphen, each word with a capital."""
    words = path.rpartition("/")[2].removesuffix(SUFFIX).replace("-", " ").split()
    return " ".join(word[:1].upper() + word[1:] for word in words)


def _joined(text: str) -> str:
    return _HYPHENS.sub("-", _PARTED.sub("-", text)).strip("-")


def _kept(letter: str) -> bool:
    if letter.isascii():
        return letter.isalnum() or letter in " -"
    return unicodedata.category(letter)[0] in "LNM"
