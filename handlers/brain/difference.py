"""The difference of two similar memories in words, for the caller, who decides whether the new one replaces the old."""

from kernel.core.lazy_regex import regex
from kernel.search import index

_MOST_WORDS = 4
_WORD = regex(r"[^\W_]+(?:[.,:/'’-][^\W_]+)*")


def difference(new: str, old: str, name: str) -> str:
    """Return a clause on how a new text differs from that of the memory `name`.

    Numbers, names and days tell more than other words, so these are named alone if both texts have one of their own.
    """
    more, less = _own_words(new, old), _own_words(old, new)
    if index.is_negated(new) != index.is_negated(old):
        return f"denies what {name} says" if index.is_negated(new) else f"says what {name} denies"
    if _telling(more) and _telling(less):
        more, less = _telling(more), _telling(less)
    if more and less:
        return f"says {_listed(more)} where {name} says {_listed(less)}"
    if more:
        return f"adds {_listed(more)} to {name}"
    return f"leaves out {_listed(less)} of {name}" if less else f"says the same as {name}"


def _own_words(text: str, other: str) -> list[str]:
    """Return the words of a text that the other lacks, without those that say no subject."""
    words = {word.casefold() for word in _WORD.findall(other)}
    own = {word.casefold(): word for word in _WORD.findall(text)}
    return [word for folded, word in own.items() if folded not in words and not index.is_common(word)]


def _telling(words: list[str]) -> list[str]:
    return [word for word in words if word[0].isupper() or any(character.isdigit() for character in word)]


def _listed(words: list[str]) -> str:
    return " ".join(words[:_MOST_WORDS]) + (" ..." if len(words) > _MOST_WORDS else "")
