"""Full-text queries from anybody's words: bigrams for scripts without spaces, rare words first, everything quoted."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

STOP_WORDS = frozenset(
    """a about after all also am an and any are as at be because been before being but by can could did do does doing
    for from had has have having he her here him his how i if in into is it its just me more most my no nor not of off
    on once only or other our out over own s same she should so some such t than that the their them then there these
    they this those through to too under until up very was we were what when where which while who whom why will with
    would you your""".split()
)
ENOUGH = 300
_COMMON_SHARE = 0.25
_CJK = "⺀-⿟々-〇ぁ-ゟ゠-ヿㇰ-ㇿ㐀-䶿一-鿿가-힣豈-﫿ｦ-ﾟ𠀀-𲎯ᄀ-ᇿ"
_RUN = re.compile(f"[{_CJK}]+")
_MIXED = re.compile(rf"[^\W_]*[{_CJK}]\w*")


class Term(NamedTuple):
    """One word of a query: its stem in the index, its surface as typed, and the column it is looked up in."""

    stem: str
    surface: str
    prefix: bool = False


def grams(text: str) -> str:
    """Overlapping pairs of every run of CJK characters, the run's last character, and words glued to such a run."""
    if text.isascii():
        return ""
    parts: list[str] = []
    for word in _MIXED.findall(text):
        parts.extend(_RUN.sub(" ", word).split())
        for run in _RUN.findall(word):
            parts.extend(run[at : at + 2] for at in range(len(run)))
    return " ".join(parts)


def query_grams(text: str) -> list[Term]:
    """The terms that find `grams`: the pairs of each run, or its one character as a prefix."""
    if text.isascii():
        return []
    terms: dict[str, Term] = {}
    for word in _MIXED.findall(text):
        for piece in _RUN.sub(" ", word).split():
            terms[piece] = Term(piece.lower(), piece)
        for run in _RUN.findall(word):
            pairs = [run[at : at + 2] for at in range(len(run) - 1)] or [run]
            terms.update((pair, Term(pair, pair, len(run) == 1)) for pair in pairs)
    return list(terms.values())


def query_words(text: str, tokens: Sequence[tuple[int, int, str]]) -> list[Term]:
    """The words worth looking up, once each; stop words stay only where there is nothing else."""
    source = text.encode()
    words: dict[str, Term] = {}
    for start, end, stem in tokens:
        words.setdefault(stem, Term(stem, source[start:end].decode()))
    kept = [term for term in words.values() if term.surface.lower() not in STOP_WORDS]
    return kept or list(words.values())


def match(terms: Sequence[Term], frequency: Mapping[str, int], total: int, places: Sequence[int] | None) -> str:
    """An FTS5 expression that ranks by every useful word but visits only rows with a rare one; "" finds nothing.

    `frequency` is the number of documents that hold a stem; a term without one is absent from the index.
    """
    present = [term for term in terms if term.prefix or frequency.get(term.stem)]
    present.sort(key=lambda term: frequency.get(term.stem, 0))
    if not present:
        return ""
    useful = [term for term in present if frequency.get(term.stem, 0) <= total * _COMMON_SHARE] or present
    rare = _rare(useful, frequency)
    words = _any(useful)
    body = words if len(rare) == len(useful) else f"({_any(rare)}) AND ({words})"
    body = f"{{text grams}} : ({body})"
    if places is None:
        return body
    return f"place : ({' OR '.join(f'p{place}' for place in places)}) AND {body}"


def quote(word: str) -> str:
    """A word as an FTS5 string: no character of it can be syntax."""
    return '"' + word.replace('"', '""') + '"'


def _rare(terms: Sequence[Term], frequency: Mapping[str, int]) -> list[Term]:
    rare: list[Term] = []
    rows = 0
    for term in terms:
        rows += frequency.get(term.stem, 0)
        if rare and rows > ENOUGH:
            break
        rare.append(term)
    return rare


def _any(terms: Sequence[Term]) -> str:
    return " OR ".join(quote(term.surface) + ("*" if term.prefix else "") for term in terms)
