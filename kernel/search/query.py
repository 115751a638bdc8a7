"""Full-text queries from anybody's words: bigrams for scripts without spaces, rare words first, everything quoted."""

import unicodedata
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from kernel.lazy_regex import regex
from kernel.search.bm25 import COMMON_SHARE

STOP_WORDS = frozenset(
    """a about after all also am an and any are as at be because been before being but by can could did do does doing
    for from had has have having he her here him his how i if in into is it its just me more most my no nor not of off
    on once only or other our out over own s same she should so some such t than that the their them then there these
    they this those through to too under until up very was we were what when where which while who whom why will with
    would you your""".split()
)
ENOUGH = 300
VISITS = 600
MODEST = 20_000
SMALL = 2000
MOST = 256
# Han, kana, bopomofo and Hangul, less what the tokenizer takes for punctuation; written as numbers since some of these
# characters change under normalisation.
_CJK = (
    r"\u1100-\u11ff\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3105-\u312f\u3131-\u318e"
    r"\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U000323af"
)
_VARIANTS = regex("[\ufe00-\ufe0f\U000e0100-\U000e01ef]")
_RUN = regex(f"[{_CJK}]+")
_WORD = regex(r"[^\W_]+")


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


class RowQuery(NamedTuple):
    """An FTS5 expression whose phrases after the first `skip` are those that rank, in their order.

    At most `most` of its rows are worth a look, the newest; `until` is how many rows found before make it needless.
    """

    expression: str
    skip: int
    most: int
    until: int


class Share(NamedTuple):
    """The places that a search keeps to, by words in the index, and the part of all rows they hold.

    Without `places` it is for the statement around the expression to keep to them, if to any.
    """

    places: Sequence[int] = ()
    part: float = 1.0


def present(terms: Sequence[Term], frequency: Mapping[str, int]) -> list[Term]:
    """The terms the index holds, rarest first, and no more of them than a query can bear."""
    held = [term for term in terms if term.prefix or frequency.get(term.stem)]
    held.sort(key=lambda term: frequency.get(term.stem, 0))
    return held[:MOST]


def match_partition(terms: Sequence[Term], places: Sequence[int]) -> RowQuery:
    """What visits every row of small places with any of the words."""
    return RowQuery(_both(_places(places), _words(terms)), len(places), 2 * SMALL, 1)


def candidate_queries(
    terms: Sequence[Term], frequency: Mapping[str, int], total: int, share: Share, limit: int
) -> list[RowQuery]:
    """What visits the rows that can win, one after the other until enough are found; `terms` are those `present`.

    Every row with a rare word is visited. Where even the rarest word is common, rows are that hold the rarest words
    together, as many words as leave enough rows by chance. Words in more than a quarter of `total` rows do not count.
    Of modestly many rows twice as many are worth a look.
    """
    times = 2 if total * share.part <= MODEST else 1
    useful = [term for term in terms if frequency.get(term.stem, 0) <= total * COMMON_SHARE] or list(terms)
    rare = _rare(useful, {stem: rows * share.part for stem, rows in frequency.items()}, ENOUGH * times)
    most = max(VISITS * times, limit)
    sought: list[RowQuery] = []
    if sum(frequency.get(term.stem, 0) for term in rare) * share.part <= VISITS * times:
        picked = "" if len(rare) == len(useful) else _words(rare)
        sought.append(_sought(share, picked, len(rare) if picked else 0, useful, most, 1))
    else:
        depths = range(_depth(useful, frequency, total, share.part, limit), 0, -1)
        sought += [_sought(share, _words(useful[:many], " AND "), many, useful, most, limit) for many in depths]
    # The rare words may have gone since they were counted, or stand in other places only.
    return [*sought, _sought(share, "", 0, terms, most, 1)] if terms else []


def match(terms: Sequence[Term], frequency: Mapping[str, int], total: int, places: Sequence[int] | None) -> str:
    """An FTS5 expression for all rows with a rare word, ranked by every useful word; "" finds nothing.

    `frequency` is the number of documents that hold a stem, over all places; a term without one is absent from the
    index. In places with few documents, whose frequencies may be quite other ones, it is for every row with a word.
    """
    held = present(terms, frequency)
    if not held:
        return ""
    if places is not None and sum(frequency.get(place_word(place), 0) for place in places) <= SMALL:
        return _both(_places(places), _words(held))
    useful = [term for term in held if frequency.get(term.stem, 0) <= total * COMMON_SHARE] or held
    rare = _rare(useful, frequency, ENOUGH)
    # Where even the rarest word is common, a row must hold another one too.
    crowded = sum(frequency.get(term.stem, 0) for term in rare) > ENOUGH
    picked = "" if len(rare) == len(useful) else _words(rare)
    return _both(_places(places or ()), picked, _words(useful[len(rare) :] if picked and crowded else useful))


def match_any(terms: Sequence[Term], frequency: Mapping[str, int], places: Sequence[int] | None) -> str:
    """An FTS5 expression that visits every row with any of the words, for when `match` found nothing."""
    held = present(terms, frequency)
    return _both(_places(places or ()), _words(held)) if held else ""


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


def _sought(share: Share, picked: str, skip: int, terms: Sequence[Term], most: int, until: int) -> RowQuery:
    expression = _both(_places(share.places), picked, _words(terms))
    return RowQuery(expression, len(share.places) + skip, most, until)


def _depth(terms: Sequence[Term], frequency: Mapping[str, int], total: int, part: float, limit: int) -> int:
    """How many of the rarest words may be wanted together, if words met by chance, for some rows to be left."""
    rows = total * part
    for depth, term in enumerate(terms):
        rows *= frequency.get(term.stem, 0) / max(1, total)
        if rows < 2 * limit:
            return max(1, depth)
    return len(terms)


def _both(*parts: str) -> str:
    return " AND ".join(part for part in parts if part)


def _places(places: Sequence[int]) -> str:
    return f"place : ({' OR '.join(map(place_word, places))})" if places else ""


def _words(terms: Sequence[Term], between: str = " OR ") -> str:
    words = between.join(quote(term.surface) + ("*" if term.prefix else "") for term in terms)
    return f"{{text grams}} : ({words})" if words else ""


def _rare(terms: Sequence[Term], frequency: Mapping[str, float], enough: int) -> list[Term]:
    rare: list[Term] = []
    rows = 0.0
    for term in terms:
        rows += frequency.get(term.stem, 0)
        if rare and rows > enough:
            break
        rare.append(term)
    return rare
