"""Conversions between titles, file names and type names."""

import unicodedata

from kernel.core.lazy_regex import regex
from kernel.core.text import composed, one_line

SUFFIX = ".md"
_CAMEL_CASE = regex(r"([a-z0-9])([A-Z])")
_SEPARATORS = regex(r"[\s_/]+")
_HYPHENS = regex(r"-{2,}")
# Default-ignorable code points: file names that differ only in them look the same.
_INVISIBLE = regex("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]")
_MAX_STEM_BYTES = 120  # file names have at most 255 bytes; this leaves room for a number and the suffix
_DEFAULT_STEM = "memory"


def kebab(name: str) -> str:
    """Return `Architectural Decision` and `architecturalDecision` as `architectural-decision`."""
    return _join_with_hyphens(_CAMEL_CASE.sub(r"\1-\2", name.strip())).lower()


def slug(title: str) -> str:
    """Return the file stem of a title: ASCII letters and digits as in the original, and letters of every script.

    A title without any gets `memory`.
    """
    line = _INVISIBLE.sub("", composed(one_line(title, 8 * len(title) + 8)).lower())
    stem = _join_with_hyphens("".join(letter for letter in line if _is_kept(letter)))
    return stem.encode()[:_MAX_STEM_BYTES].decode(errors="ignore").strip("-") or _DEFAULT_STEM


def title_of(path: str) -> str:
    """Return the title of a file without a title: its name with spaces for hyphens and capitalized words."""
    words = path.rpartition("/")[2].removesuffix(SUFFIX).replace("-", " ").split()
    return " ".join(word[:1].upper() + word[1:] for word in words)


def _join_with_hyphens(text: str) -> str:
    return _HYPHENS.sub("-", _SEPARATORS.sub("-", text)).strip("-")


def _is_kept(letter: str) -> bool:
    if letter.isascii():
        return letter.isalnum() or letter in " -"
    return unicodedata.category(letter)[0] in "LNM"
