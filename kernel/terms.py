"""Full-text queries from anybody's words: bigrams for scripts without spaces, rare words first, everything quoted."""

import re
import unicodedata
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
SMALL = 2000
MOST = 256
_COMMON_SHARE = 0.25
# Han, kana, bopomofo and Hangul, less what the tokenizer takes for punctuation; written as numbers since some of these
# characters change under normalisation.
_CJK = (
    r"\u1100-\u11ff\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3105-\u312f\u3131-\u318e"
    r"\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U000323af"
)
_VARIANTS = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]")
_RUN = re.compile(f"[{_CJK}]+")
_WORD = re.compile(r"[^\W_]+")


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
    for word in _mixed(text):
        parts.extend(_RUN.sub(" ", word).split())
        for run in _RUN.findall(word):
            parts.extend(run[at : at + 2] for at in range(len(run)))
    return " ".join(parts)


def glued(text: str) -> str:
    """The words that stand glued to a CJK run, apart from it, for `query_words`."""
    if text.isascii():
        return ""
    return " ".join(_RUN.sub(" ", word) for word in _mixed(text))


def query_grams(text: str) -> list[Term]:
    """The terms that find the runs of `grams`: the pairs of each run, or its one character as a prefix."""
    if text.isascii():
        return []
    terms: dict[str, Term] = {}
    for run in _RUN.findall(_folded(text)):
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


def match(
    terms: Sequence[Term], frequency: Mapping[str, int], total: int, places: Sequence[int] | None, *, bound: bool = True
) -> str:
    """An FTS5 expression that ranks by every useful word but visits only rows with a rare one; "" finds nothing.

    `frequency` is the number of documents that hold a stem, over all places; a term without one is absent from the
    index. In places with few documents, whose frequencies may be quite other ones, every row with a word is visited.
    A rare word that picks the rows stands in the expression twice, and so weighs twice. Without `bound` it is for the
    statement around it to keep to the places.
    """
    present = _present(terms, frequency)
    if not present:
        return ""
    inside = places if bound else None
    small = _small(places or (), frequency)
    if small and len(small) == len(places or ()):
        return _inside(_words(present), inside)
    useful = [term for term in present if frequency.get(term.stem, 0) <= total * _COMMON_SHARE] or present
    rare = _rare(useful, frequency)
    if len(rare) == len(useful):
        picked, ranking = _words(useful), useful
    else:
        # Where even the rarest word is common, a row must hold another one too.
        crowded = sum(frequency.get(term.stem, 0) for term in rare) > ENOUGH
        ranking = useful[len(rare) :] if crowded else useful
        picked = _both(_either(_words(rare), _places(small)), _words(ranking))
    # Most of what a query costs is to count the rows of its common words, so each stands here once.
    others = [term for term in present if term not in ranking] if small else []
    return _inside(_either(picked, _both(_words(others), _places(small))), inside)


def match_any(
    terms: Sequence[Term], frequency: Mapping[str, int], places: Sequence[int] | None, *, bound: bool = True
) -> str:
    """An FTS5 expression that visits every row with any of the words, for when `match` found nothing."""
    present = _present(terms, frequency)
    return _inside(_words(present), places if bound else None) if present else ""


def place_word(place: int) -> str:
    """The word that stands for a place in the index; nobody types it."""
    return f"quipuplace{place}"


def _folded(text: str) -> str:
    """One spelling for what looks the same: composed, full width for kana, without variation selectors."""
    return _VARIANTS.sub("", unicodedata.normalize("NFKC", text))


def _mixed(text: str) -> list[str]:
    return [word for word in _WORD.findall(_folded(text)) if _RUN.search(word)]


def quote(word: str) -> str:
    """A word as an FTS5 string: no character of it can be syntax."""
    return '"' + word.replace('"', '""') + '"'


def _present(terms: Sequence[Term], frequency: Mapping[str, int]) -> list[Term]:
    """The terms the index holds, rarest first, and no more of them than a query can bear."""
    present = [term for term in terms if term.prefix or frequency.get(term.stem)]
    present.sort(key=lambda term: frequency.get(term.stem, 0))
    return present[:MOST]


def _small(places: Sequence[int], frequency: Mapping[str, int]) -> list[int]:
    """The places with the fewest documents, as many as hold few together."""
    small: list[int] = []
    held = 0
    for rows, place in sorted((frequency.get(place_word(place), 0), place) for place in places):
        held += rows
        if held > SMALL:
            break
        small.append(place)
    return small


def _inside(expression: str, places: Sequence[int] | None) -> str:
    return expression if places is None else _both(_places(places), f"({expression})")


def _both(one: str, other: str) -> str:
    return f"{one} AND {other}" if one and other else ""


def _either(one: str, other: str) -> str:
    return f"({one} OR {other})" if one and other else one or other


def _places(places: Sequence[int]) -> str:
    return f"place : ({' OR '.join(map(place_word, places))})" if places else ""


def _words(terms: Sequence[Term]) -> str:
    words = " OR ".join(quote(term.surface) + ("*" if term.prefix else "") for term in terms)
    return f"{{text grams}} : ({words})" if words else ""


def _rare(terms: Sequence[Term], frequency: Mapping[str, int]) -> list[Term]:
    rare: list[Term] = []
    rows = 0
    for term in terms:
        rows += frequency.get(term.stem, 0)
        if rare and rows > ENOUGH:
            break
        rare.append(term)
    return rare
