"""FTS5 expressions for a query: CJK bigrams, stop words, rare terms first, every term quoted.

For a word that neither the index nor the model knows stand the words of the index one edit away.
"""

import re
import unicodedata
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from kernel.core.lazy_regex import regex
from kernel.core.text import composed, normalized
from kernel.search.bm25 import COMMON_TERM_SHARE

SMALL_PARTITION_DOCS = 2000  # up to here every document with a query term is ranked, not only those with a rare term
STOP_WORDS = frozenset(
    """a about after all also am an and any are as at be because been before being but by can could did do does doing
    for from had has have having he her here him his how i if in into is it its just me more most my no nor not of off
    on once only or other our out over own s same she should so some such t than that the their them then there these
    they this those through to too under until up very was we were what when where which while who whom why will with
    would you your""".split()
)
# Terms with no more postings together are rare, and every row with a rare term is ranked; not measured.
RARE_ROWS = 300
MAX_RANKED_ROWS = 600  # rows one expression returns, the newest of those that match; not measured
SMALL_INDEX_ROWS = 20_000  # up to here both limits double: R@10 .504 -> .535 on KnowMe, .913 -> .934 on passages
_SMALL_INDEX_FACTOR = 2
_MOST_STEMS = 4000  # of a text that are read: twice as many as are looked up, since stop words are among them
MAX_QUERY_TERMS = 256  # the rarest; bounds the cost of a text used as a query; not measured
_EXPECTED_ROWS_PER_RESULT = 2  # rows that a conjunction should match for each result wanted; not measured
# Han, kana, bopomofo and Hangul, without the characters that the tokenizer takes for punctuation. Written as escapes,
# since some of these characters change under normalisation.
_CJK = (
    r"\u1100-\u11ff\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3105-\u312f\u3131-\u318e"
    r"\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U000323af"
)
# Question words, pronouns and forms of politeness of Chinese and Japanese: none of them names the subject.
CJK_FUNCTION_WORDS = regex(
    "什么时候|什麼時候|为什么|為什麼|什么|什麼|时候|時候|哪个|哪個|哪些|哪里|哪裡|哪儿|怎么样|怎麼樣|怎么|怎麼|多少|多久|几个|幾個|我们|我們|你们|你們"
    "|他们|他們|这个|這個|那个|那個|哪种|哪種|谁|誰|吗|嗎|呢"
    "|どのくらい|どこ|いつ|なぜ|どう|どの|どれ|どんな|だれ|ください|でしょう|のですか|ですか|ましたか|ますか|ました|ません|です|ます"
)
_VARIATION_SELECTORS = regex("[\ufe00-\ufe0f\U000e0100-\U000e01ef]")
_CJK_RUN = regex(f"[{_CJK}]+")
_WORD = regex(r"[^\W_]+")
# Or a single letter after a word, as in "vitamin C", not an article in a title.
_ACRONYM = regex(r"[A-Z](?:(?<![^\W_].)[A-Z]{1,4}(?![^\W_])|(?<=[^\W_] .)(?<!I)(?![^\W_'\u2019])(?:(?<!A)|(?! [A-Z])))")
_EMPHASIZED = frozenset("all and any do no not only or".split())
_NO_ACRONYMS = frozenset[str]()


class Term(Struct, frozen=True, gc=False):
    """One query term: its stem in the index, its surface form as typed, and whether it matches as a prefix."""

    stem: str
    surface: str
    prefix: bool = False
    derived: bool = False  # from words of the query, so that it is not misspelt


class RowQuery(NamedTuple):
    """An FTS5 expression, and how its rows are used.

    The first `skip` phrases select rows only, the others rank, in their order. At most `limit` rows are read, the
    newest. It is run while fewer than `until` rows have been found. `ranked` selects the same rows for FTS5's own
    `bm25()`, which counts every phrase: first all rows by the terms that select, then those with further terms by all.
    """

    expression: str
    skip: int
    limit: int
    until: int
    ranked: tuple[str, ...] = ()


class PartitionFilter(NamedTuple):
    """The partitions an expression is limited to by their terms, and the share of all rows they hold.

    Empty `partitions` add no terms: the statement around the expression filters, if anything does.
    """

    partitions: Sequence[int] = ()
    share: float = 1.0


def grams(text: str) -> str:
    """Return the bigrams and the last character of every run of CJK characters, and the words attached to such runs.

    FTS5's unicode61 makes one token of a run; as bigrams, its words are found without a dictionary.
    """
    if text.isascii():
        return ""
    parts: list[str] = []
    for word in _words_with_cjk(text):
        parts.extend(_CJK_RUN.sub(" ", word).split())
        for run in _CJK_RUN.findall(word):
            parts.extend(run[at : at + 2] for at in range(len(run)))
    return " ".join(parts)


def words_beside_cjk(text: str) -> str:
    """Return the words attached to a CJK run, separated from it, for `query_words`."""
    if text.isascii():
        return ""
    return " ".join(_CJK_RUN.sub(" ", word) for word in _words_with_cjk(text))


def query_grams(text: str) -> list[Term]:
    """Return the terms that match the `grams` of a text: the bigrams of each run between function words, and a run of a
    single character as a prefix; single characters between function words if there is nothing else.
    """
    if text.isascii():
        return []
    runs = _CJK_RUN.findall(_normalized(text))
    pieces = [piece for run in runs for piece in CJK_FUNCTION_WORDS.split(run) if piece] or runs
    pairs = [piece[at : at + 2] for piece in pieces for at in range(len(piece) - 1)]
    singles = [run for run in runs if len(run) == 1] if pairs else pieces
    return [Term(term, term, len(term) == 1) for term in dict.fromkeys((*pairs, *singles))]


def acronyms(text: str) -> frozenset[str]:
    """Return the words in capitals of a text that is not all in capitals, in small letters: CI is no function word of
    Italian, nor IT of English.
    """
    names = _ACRONYM.findall(text)
    if not names or text.isupper():
        return _NO_ACRONYMS
    return frozenset(map(str.lower, names)) - _EMPHASIZED


def query_words(
    text: str, tokens: Sequence[tuple[int, int, str]], stop_words: Collection[str] = frozenset()
) -> list[Term]:
    """Return the distinct terms of (start byte, end byte, stem) tokens, without stop words if there are others.

    `stop_words` are those of further languages than English, in small letters.
    """
    source = text.encode()
    places: dict[str, slice] = {}
    for start, end, stem in tokens:
        if stem not in places:
            places[stem] = slice(start, end)
            if len(places) == _MOST_STEMS:
                break
    surfaces = [(stem, source[place].decode()) for stem, place in places.items()]
    names = acronyms(text)
    content_words = [
        Term(stem, surface)
        for stem, surface in surfaces
        if (word := surface.lower()) in names or (word not in STOP_WORDS and word not in stop_words)
    ]
    return content_words or [Term(stem, surface) for stem, surface in surfaces]


def indexed_terms(terms: Sequence[Term], frequency: Mapping[str, int]) -> list[Term]:
    """Return the terms that the index holds, rarest first, at most MAX_QUERY_TERMS."""
    terms = [term for term in terms if term.prefix or frequency.get(term.stem)]
    terms.sort(key=lambda term: frequency.get(term.stem, 0))
    return terms[:MAX_QUERY_TERMS]


def partition_query(terms: Sequence[Term], partitions: Sequence[int]) -> RowQuery:
    return _row_query(PartitionFilter(partitions), [], terms, 2 * SMALL_PARTITION_DOCS, 1)


def candidate_queries(
    terms: Sequence[Term], frequency: Mapping[str, int], total: int, within: PartitionFilter, limit: int
) -> list[RowQuery]:
    """Queries for the rows that can rank high, to be run in order until enough rows are found.

    `terms` are those of `indexed_terms`. Every row with a rare term is a candidate. If even the rarest term is
    common, rows that hold the rarest terms together are: as many terms as should leave enough rows, if terms occur
    independently. Terms in more than COMMON_TERM_SHARE of `total` rows select nothing, unless all are.
    """
    factor = _SMALL_INDEX_FACTOR if total * within.share <= SMALL_INDEX_ROWS else 1
    useful = [term for term in terms if frequency.get(term.stem, 0) <= total * COMMON_TERM_SHARE] or list(terms)
    rare = _rare(useful, {stem: rows * within.share for stem, rows in frequency.items()}, RARE_ROWS * factor)
    max_rows = max(MAX_RANKED_ROWS * factor, limit)
    queries: list[RowQuery] = []
    if sum([frequency.get(term.stem, 0) for term in rare]) * within.share <= MAX_RANKED_ROWS * factor:
        queries.append(_row_query(within, rare if len(rare) < len(useful) else [], useful, max_rows, 1))
    else:
        depths = range(_conjunction_size(useful, frequency, total, within.share, limit), 0, -1)
        queries += [_row_query(within, useful[:size], useful, max_rows, limit, " AND ") for size in depths]
    # The rare terms may have been deleted since they were counted, or occur in other partitions only.
    return [*queries, _row_query(within, [], terms, max_rows, 1)] if terms else []


def match(terms: Sequence[Term], frequency: Mapping[str, int], total: int, partitions: Sequence[int] | None) -> str:
    """Return an FTS5 expression for all rows with a rare term, ranked by every useful term; "" if no term is
    indexed.

    `frequency` is the number of documents that hold a stem, over all partitions. For partitions with few documents,
    if terms may be much rarer or more common, it is for every row with a term.
    """
    searchable = indexed_terms(terms, frequency)
    if not searchable:
        return ""
    if partitions is not None and partition_docs(partitions, frequency) <= SMALL_PARTITION_DOCS:
        return _all_of(_partition_clause(partitions), _term_clause(searchable))
    useful = [term for term in searchable if frequency.get(term.stem, 0) <= total * COMMON_TERM_SHARE] or searchable
    rare_rows = RARE_ROWS * (_SMALL_INDEX_FACTOR if total <= SMALL_INDEX_ROWS else 1)
    rare = _rare(useful, frequency, rare_rows)
    # If even the rarest term is common, a row must hold another term too.
    is_crowded = sum(frequency.get(term.stem, 0) for term in rare) > rare_rows
    clause = "" if len(rare) == len(useful) else _term_clause(rare)
    ranking = useful[len(rare) :] if clause and is_crowded else useful
    return _all_of(_partition_clause(partitions or ()), clause, _term_clause(ranking))


def match_any(terms: Sequence[Term], frequency: Mapping[str, int], partitions: Sequence[int] | None) -> str:
    """Return an FTS5 expression for every row with any of the terms, for when `match` found nothing."""
    searchable = indexed_terms(terms, frequency)
    return _all_of(_partition_clause(partitions or ()), _term_clause(searchable)) if searchable else ""


def partition_term(partition: int) -> str:
    """Return the term that stands for a partition in the index; in a column of its own, so that no text matches it."""
    return f"quipuplace{partition}"


def partition_docs(partitions: Sequence[int], frequency: Mapping[str, int]) -> int:
    """Return the number of documents in the partitions, by the frequencies of their terms."""
    return sum(frequency.get(partition_term(partition), 0) for partition in partitions)


def quote(word: str) -> str:
    """Return a word as an FTS5 string, in which no character is syntax."""
    return '"' + word.replace('"', '""') + '"'


def _normalized(text: str) -> str:
    # NFKC makes one form of half-width and full-width kana; variation selectors only choose a glyph.
    return _VARIATION_SELECTORS.sub("", normalized("NFKC", text))


def _words_with_cjk(text: str) -> list[str]:
    return [word for word in _WORD.findall(_normalized(text)) if _CJK_RUN.search(word)]


def _row_query(
    within: PartitionFilter,
    selecting: Sequence[Term],
    terms: Sequence[Term],
    limit: int,
    until: int,
    operator: str = " OR ",
) -> RowQuery:
    words, size = _quoted(terms), len(selecting)  # the terms that select are the first
    first = _all_of(_partition_clause(within.partitions), _clause(words[:size], operator))
    expression = _all_of(first, _clause(words))
    further = _clause(words[size:])
    expressions = (first, _all_of(first, further))[: 2 if further else 1] if selecting else (expression,)
    return RowQuery(expression, len(within.partitions) + size, limit, until, expressions)


def _conjunction_size(terms: Sequence[Term], frequency: Mapping[str, int], total: int, share: float, limit: int) -> int:
    """Return how many of the rarest terms a row may be required to hold, if enough rows are to match."""
    rows = total * share
    for size, term in enumerate(terms):
        rows *= frequency.get(term.stem, 0) / max(1, total)
        if rows < _EXPECTED_ROWS_PER_RESULT * limit:
            return max(1, size)
    return len(terms)


def _all_of(*clauses: str) -> str:
    return " AND ".join(filter(None, clauses))


def _partition_clause(partitions: Sequence[int]) -> str:
    return f"place : ({' OR '.join(map(partition_term, partitions))})" if partitions else ""


def _term_clause(terms: Sequence[Term]) -> str:
    return _clause(_quoted(terms))


def _quoted(terms: Sequence[Term]) -> list[str]:
    """Return `quote` of each term, a prefix with an asterisk."""
    return ['"' + term.surface.replace('"', '""') + ('"*' if term.prefix else '"') for term in terms]


def _clause(words: Sequence[str], operator: str = " OR ") -> str:
    return f"{{text grams}} : ({operator.join(words)})" if words else ""


def _rare(terms: Sequence[Term], frequency: Mapping[str, float], limit: int) -> list[Term]:
    """Return the first of the sorted terms, at least a single term, with at most `limit` postings together."""
    rare: list[Term] = []
    rows = 0.0
    for term in terms:
        rows += frequency.get(term.stem, 0)
        if rare and rows > limit:
            break
        rare.append(term)
    return rare


_MIN_LENGTH = 5  # letters; most shorter words are one edit away from other words; not measured
_MAX_LENGTH = 24  # letters; bounds the look-ups, 54 for each letter; not measured
_LONGEST_SHORT_NAME = 4  # letters
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


def _read_expansions() -> dict[str, list[list[str]]]:
    """Return the words of content for which each word of `abbreviations.txt` is short, or the words that are short for
    it.
    """
    expansions: dict[str, list[list[str]]] = {}
    for line in Path(__file__).with_name("abbreviations.txt").read_text(encoding="utf-8").splitlines():
        short, _, names = line.partition(" ")
        for name in names.split("|"):
            words = [word for word in name.split() if word not in STOP_WORDS]
            expansions.setdefault(short, []).append(words)
            if words == name.split():
                expansions.setdefault(name, []).append([short])
    return expansions


_EXPANSIONS = _read_expansions()
_PHRASES = [name for name in _EXPANSIONS if " " in name]
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


def expansion(word: str, stems: Callable[[str], Sequence[str]], count: Count) -> list[Near]:
    """Return words of content for which a word is short, or a word that is short for it, if the index holds them."""
    for words in _EXPANSIONS.get(word.lower(), ()):
        surfaces = dict(zip(stems(" ".join(words)), words, strict=False))
        docs = count([*surfaces])
        if surfaces and docs.keys() >= surfaces.keys():
            return [Near(stem, surface, docs[stem]) for stem, surface in surfaces.items()]
    return []


def abbreviated(terms: Sequence[Term], frequency: Mapping[str, int], text: str) -> list[str]:
    """Return the terms that no document holds, and the names of several such words, that are short for others, or
    others for them.
    """
    unseen = [
        term.surface.lower()
        for term in terms
        if not (frequency.get(term.stem) or term.derived or _is_no_short_form(term.surface, text))
    ]
    line = f" {' '.join(unseen)} "
    names = [name for name in _PHRASES if f" {name} " in line] if len(unseen) > 1 else []
    return [*names, *filter(_EXPANSIONS.__contains__, unseen)]


def _is_no_short_form(surface: str, text: str) -> bool:
    """Return whether a word is the pronoun "us" or, unless the query begins with it, may be a name such as Max."""
    may_be_name = surface.istitle() and len(surface) <= _LONGEST_SHORT_NAME
    return surface == "us" or (may_be_name and not text.startswith(surface))


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
            parts = [near.surface for near in words]
            is_whole = "".join(parts) == word.lower() or parts in _EXPANSIONS.get(word.lower(), ())
            spelling = " ".join(parts) if is_whole else parts[0]
            text = re.sub(rf"\b{word}\b", spelling, text, flags=re.IGNORECASE)
    return text


def one_edit_away(word: str) -> set[str]:
    """Return the words made from a word by a letter left out, added or changed, or two swapped; none for letters not
    listed.
    """
    # As the tokenizer, which takes the marks off Latin letters only.
    plain = "".join(letter for letter in normalized("NFD", word.lower()) if unicodedata.category(letter) != "Mn")
    word = plain if plain.isascii() else composed(word.lower())
    letters = next((alphabet for alphabet in _ALPHABETS if set(word) <= set(alphabet)), "")
    if not letters:
        return set()
    splits = [(word[:at], word[at:]) for at in range(len(word) + 1)]
    swaps = {begin + end[1] + end[0] + end[2:] for begin, end in splits if len(end) > 1}
    shorter = {begin + end[1:] for begin, end in splits if end}
    changes = {begin + letter + end[1:] for begin, end in splits if end for letter in letters}
    longer = {begin + letter + end for begin, end in splits for letter in letters}
    return (swaps | shorter | changes | longer) - {word}


_AFTER_VERBS = frozenset("a an the my me our us this these some your something someone anything".split())
_FOR_US = (" for me", " to me", " for us", " to us")
_FACT = regex(
    r"why\b|(?:(?:how|what|which|who|whom|when|where)(?: [^\W_]+){0,2} )?(?:did|does|has|had)\b(?! (?:i|we|you)\b)"
    r"|(?:how )?(?:do|have|is|are|was|were)\b(?! (?:i|we|you|there)\b)"
)
_ASKING = regex(
    r"(?<![^\W_])(?:(?:should|could|can|shall|how do|how to|let) (?:i|we|you|us)|would|best way|do you think"
    r"|what do (?:i|we) do|i need|(?:have|take) a look|put together|help (?:me|us))(?![^\W_])"
)


def is_order(question: str) -> bool:
    """Return whether a question begins with a verb, as in "Write a letter" or "Explain tenancy to me"."""
    words = question.lower().rstrip(" .!?").split(maxsplit=2)
    if len(words) < 2 or words[0] in STOP_WORDS or not words[0].isalpha():  # "What's the ..." is no order
        return False
    return words[1] in _AFTER_VERBS or words[-1].endswith(_FOR_US)


def asks_for_fact(question: str) -> bool:
    """Return whether a question in English asks for a reason or about others, as in "How does it help?"."""
    return _FACT.match(question.lstrip().lower()) is not None


def asks_for_work(question: str) -> bool:
    """Return whether a question asks for something to be done or advised rather than for a fact, in English."""
    return is_order(question) or _ASKING.search(question.lower()) is not None
