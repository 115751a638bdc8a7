"""Newer before older among hits about the same thing, so that the first hit is the statement that holds today.

Neither cosine nor a word of change ("now", "moved") tells a correction from a repetition. A rule does: of two short
statements that hold the same subject words of the question, the newer is in force. MINTEval (arXiv 2605.18565) groups
facts after the search likewise. Figures: `python -m loadtests.quality.succession`.
"""

from calendar import month_name
from collections import defaultdict
from collections.abc import Callable, Container, Iterator, Sequence, Set
from functools import lru_cache, partial
from itertools import chain, combinations, dropwhile, pairwise, takewhile
from pathlib import Path
from typing import NamedTuple, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from kernel.core.lazy_regex import regex
from kernel.search import index
from kernel.store.transaction import Tx

_COMPARED = 10  # hits from the first
_VERSIONS = 3  # of a statement; more that are alike are a list
_ENDING = 2  # letters of an English stem that its word may have otherwise, as "happi" has
_MOST_CHARS = 240  # of a statement with its name; longer texts are notes, procedures and lists
_LINES = 2
_LEAST_SHARE = 0.05  # of the strength of the older; beside the words, which decide
_ADVERB, _VERBS = "ly", "ed"  # their endings
# Words of some twenty languages: a line for each kind, of a relation `x` and of the changes `x>` after which it has
# another value: "lives in Rome", "moved to Bari".
_WORDS = defaultdict[str, set[str]](set)
for _kind, *_line in map(str.split, Path(__file__).with_name("change_words.txt").read_text("utf-8").splitlines()):
    _WORDS[_kind].update(_line)
_PAST, _RECENT, _DENIALS, _ALSO = (_WORDS[kind] for kind in ("past", "recent", "denial", "also"))
_CHANGES = [(_WORDS[kind[:-1]], words) for kind, words in _WORDS.items() if kind.endswith(">")]
_CHANGES_OF_PLACE = [_WORDS["live>"], _WORDS["plan>"]]  # of time too, as "is on Monday"
_PLACED = frozenset(("is", "are", "ist", "sind", "est", "sont", "es", "son", "è", "sono"))
_AT = frozenset("at in on am an im in um à au aux en le alle al el las los a la".split())
_DETERMINERS = frozenset(
    """a an her his my our the their your das der die ein eine mein meine unser unsere la le les ma mes mon nos notre un
    une el las los mi mis nuestra nuestro una""".split()
)
_OWN = frozenset("her his its my our the their your".split())
_OF_OBJECTS = _OWN | {"an", "the"}
_QUALIFIERS = frozenset("at during for in on to".split())
_CASE = 2  # words that name a case, as "on Sundays"
# What follows these in an aside, as "in fact" and "for the record": such a statement is of no case.
_ASIDES = frozenset(
    "clear exact fact honest moment now precise present reality record reflection thought truth".split()
)
_MOST_ASIDE = 3  # words of an aside after the first
_AS_WELL = regex(r"\bas well\b")
_MONTHS = frozenset(name.lower() for name in month_name)
_NEAR = 0.8  # of the score of a hit
_AS_GOOD = 0.95  # the same, of hits that the tokenizer of the index hardly tells apart; not measured
_CACHED = 64  # texts, each of which is compared with several
_MOST_BETWEEN = 4  # words, from a noun to the verb
_WORD = regex(r"[^\W_]+|[,;:.](?=\s)")
_NUMBER = regex(r"\d+(?:[.,:]\d+)*+")
_POSSESSIVE = regex("['’]s\\b")
_FIRST_OF_CJK = "\u2e80"
_TITLES = "mr", "mrs"
_OWNER = regex(r"(?<![^\W_])([^\W_]++)['’]s?(?!\w)")
_CONTRACTED = regex(r"n['’]t\b")
_AUXILIARIES = frozenset("are can could did do does had has have is may might must should was were will would".split())
# Of other languages; English has "hat" and "son".
_IS = frozenset("are is was were ist sind war est sont es son".split())
_HAS = frozenset("has have hat haben tiene tienen".split())
_OTHER_AUXILIARIES = frozenset(
    "est foi har is ist sind war wird wurde wurden hat haben ont ha han se si son sont è".split()
)
_OPPOSITES = frozenset(
    map(frozenset, (("from", "to"), ("before", "after"), ("with", "without"), ("above", "below"), ("over", "under")))
)
_POLES = [
    pair.split("/")
    for pair in """active/retired allowed/banned allowed/forbidden available/gone closed/open closed/reopened
    disabled/enabled employed/fired free/taken married/divorced off/on optional/mandatory optional/required
    private/public""".split()
]
_POLES_OF = {word: {other for pair in _POLES if word in pair for other in pair} - {word} for word in chain(*_POLES)}
_DENYING = ("un", "in", "dis", "de", "non")
_STEM_LETTERS, _MOST_ENDING = 4, 3  # as of `kernel/search/equivalence.py`
_LABEL = regex(
    "[^\\W\\d_]+[ \u00a0\u202f]?: "
)  # of a turn of a conversation, in which answers follow each other, or "Correction"
_MARKS = "-#$~./\\+*&%"  # around a name that make it another
_JOINED = regex(r"_(?<=[^\W]_)|-\d(?<=[^\W\d_]-\d)")
_MARKED = regex(r"(?<!\S)[-#$~./\\+*&%]++[^\W\d]|[^\W\d][-#$~/\\+*&%]++(?!\S)")
_COMPOUND = regex(r"(?<![^\W_])[^\W\d_]++(?:[-_][^\W\d_]++)+")
# Whatever the relation was: "studies law with Mr. Pohl", "switched to Ms. Rist for law".
_SWITCHED = _WORDS["switched"]
_TO = frozenset("to auf nach zu a à".split())
_CHANGED = _SWITCHED.union(*(changes for _, changes in _CHANGES))
CHANGE_MARKS = _CHANGED | _PAST | _RECENT | _WORDS["ended"]
# Words of a question that name a relation, not a subject: a correction often has another.
_RELATIONS = _CHANGED.union(_AUXILIARIES, _WORDS["relation"], *(states for states, _ in _CHANGES))
_CJK_RELATIONS = regex("|".join(sorted(filter(_FIRST_OF_CJK.__lt__, _RELATIONS), reverse=True)))


class RankedDocument(Struct, frozen=True):
    """A memory that was found, and its score; `newer` is the id of another that seems to replace it."""

    score: float
    scored: index.Scored | None
    document: index.Document
    newer: str = ""


_Ranked = TypeVar("_Ranked", bound=RankedDocument)


class _Asked(NamedTuple):
    """A question: the stems of its subjects, those that a hit may have, its words by their stems, its text in words,
    its names with marks, its values, whether a word says its relation, and by texts whether a statement is about the
    same thing as another, once that is known.
    """

    every: set[str]
    subjects: set[str]
    forms: dict[str, str]
    text: str
    names: set[str]
    values: index.NamedValues | None
    is_for: Callable[[str], bool]
    same: dict[tuple[str, str], bool]


class _Mention(NamedTuple):
    """A subject in a statement: the words before it, that after it, and those from the next that is no preposition."""

    before: list[str]
    following: str
    after: list[str]


class _Statement(NamedTuple):
    """A short hit, its number, its text without its label, whether it denies something, all its words, its content
    words, their stems in order and those that are no numbers, those of the question's subjects that it holds, the
    mentions of these, the question, and its share of a value that the question names.
    """

    item: RankedDocument
    doc: int
    text: str
    is_labelled: bool
    is_negated: bool
    spoken: list[str]
    sequence: tuple[str, ...]
    forms: dict[str, str]  # of the content words, by their stems
    stems: dict[str, str]  # by their forms
    words: frozenset[str]
    subjects: frozenset[str]
    mentions: dict[str, _Mention | None]  # once they are known, None if the subject has another form there
    asked: _Asked
    value: float | None


_Rule = Callable[[_Statement, _Statement], bool]  # whether the first goes before the second


def newer_first(tx: Tx, question: str, items: Sequence[_Ranked]) -> list[_Ranked]:
    """Return the hits with newer statements before the older that they seem to replace, otherwise in their order; those
    with the names of the question, such as `C++`, before others that are as good.

    An older hit names the newer.
    """
    names = index.marked_names(question)
    sequence = _named_first(names, items) if names else [*items]
    texts = [item.document.text for item in sequence[:_COMPARED]]
    texts = [_statement_text(text) if len(text) <= _MOST_CHARS else "" for text in texts]
    if sum(map(bool, texts)) <= 1 or all(map(_LABEL.match, filter(None, texts))):
        return sequence
    forms = _content_words(tx, question if question.isascii() else _CJK_RELATIONS.sub(" ", question))
    # A word with a capital, as "Go" in "which tabs do Go files have?", is a name, unless it is the first.
    titles = {word.lower() for word in _WORD.findall(question[1:]) if word.istitle()}
    subjects = {stem for stem, word in forms.items() if word not in _RELATIONS or word in titles}
    if all(map(str.isdigit, subjects)):  # a value says nothing of the subject
        return sequence
    # Of other scripts than Latin, whose words have more forms, each text may hold each subject.
    starts = {stem: (stem[:-_ENDING] or stem[:1]) if stem.isascii() else "" for stem in subjects}
    possible = [
        {stem for stem, start in starts.items() if start in text} if text.isascii() else subjects
        for text in map(str.lower, texts)
    ]
    held_stems = set[str]().union(*possible)
    # A text that lacks the beginnings of most subjects need not be read.
    about = [text if 2 * len(own) >= len(held_stems) > 0 else "" for text, own in zip(texts, possible, strict=True)]
    if sum(map(bool, about)) <= 1:
        return sequence
    is_for = partial(index.has_word_like, tx, question)
    values = index.named_values(question)
    asked = _Asked(subjects, held_stems, forms, _in_words(question), names, values, is_for, {})
    pairs = zip(sequence, about, strict=False)
    statements = [_statement(tx, item, text, asked) if text else None for item, text in pairs]
    return _in_order(sequence, statements) if sum(map(bool, statements)) > 1 else sequence


def _named_first(names: Set[str], items: Sequence[_Ranked]) -> list[_Ranked]:
    """Return the hits, of those that are as good as the first that with the most of some names before the others."""
    least = _AS_GOOD * items[0].score if items else 0.0
    first = [*takewhile(lambda item: item.score >= least, items[:_COMPARED])]
    if len(first) > 1:
        counts = {item.document.doc: len(names & index.names_in(item.document.text)) for item in first}
        ranked = sorted(first, key=lambda item: -counts[item.document.doc])
        if ranked != first:
            first = [replace(item, score=before.score) for item, before in zip(ranked, first, strict=True)]
    return [*first, *items[len(first) :]]


def replaced_by(tx: Tx, newer: str) -> Callable[[str], bool]:
    """Return a test for older statements: whether `newer`, a text of a change, says that they hold no longer."""
    text = _statement_text(newer)
    words = _content_words(tx, text) if text else {}

    def is_replaced(older: str) -> bool:
        older = _statement_text(older)
        if not 0 < len(older) <= _MOST_CHARS:
            return False
        own = _content_words(tx, older)
        forms = {stem: form for stem, form in own.items() if stem in words}
        subjects = {stem for stem, form in forms.items() if form not in _RELATIONS} or {*forms}
        least = 0 if older >= _FIRST_OF_CJK else min(len(own), len(words))
        if not subjects or 2 * len(forms) + 2 < least:  # as in `_may_be_same`
            return False
        question = " ".join(forms.values())
        is_for = partial(index.has_word_like, tx, question)
        asked = _Asked(subjects, subjects, forms, question, set(), None, is_for, {})
        new, old = (
            _statement(tx, _item(at, statement_text), statement_text, asked)
            for at, statement_text in enumerate((text, older))
        )
        return new is not None and old is not None and _compare(new, old)

    return is_replaced


def _item(doc: int, text: str) -> RankedDocument:
    return RankedDocument(1.0, None, index.Document(doc, "", "", "", text, "", "", "", "", ""))


def _in_order(sequence: list[_Ranked], statements: list[_Statement | None]) -> list[_Ranked]:
    every = [statement for statement in statements if statement is not None]
    in_lists: dict[int, bool] = {}
    replacements = _replaced(every, in_lists)
    # Where much is said of a thing, a word of the question that no hit has may name the part.
    has_all = frozenset[str]().union(*(statement.subjects for statement in every)) == every[0].asked.every
    is_clear = has_all or len(every) <= _VERSIONS + 1
    rules: list[_Rule] = [lambda newer, older: (newer.doc, older.doc) in replacements] if replacements else []
    if is_clear:
        rules.append(lambda bare, part: _is_asked_bare(bare, part) and _are_no_lists(every, in_lists, bare, part))
    for rule in rules:
        for at, better in enumerate(statements):
            above = enumerate(statements[:at]) if better else ()
            first = next((place for place, worse in above if better and worse and rule(better, worse)), at)
            if first < at:
                statements.insert(first, statements.pop(at))
                sequence.insert(first, replace(sequence.pop(at), score=sequence[first].score))
    for at, older in enumerate(statements if replacements else ()):
        before = (newer for newer in statements[:at] if newer and older and (newer.doc, older.doc) in replacements)
        if newer := next(before, None):
            document = newer.item.document
            sequence[at] = replace(sequence[at], newer=f"{document.space}/{document.key}")
    return sequence


def _replaced(every: Sequence[_Statement], in_lists: dict[int, bool]) -> set[tuple[int, int]]:
    """Return the documents of each newer statement and of the older that it replaces.

    If a statement replaces another, their values hold in turn: of all statements that have them, in whatever words, the
    newer replaces the older.
    """
    most = max(len(statement.subjects) for statement in every)
    in_time = sorted(every, key=lambda statement: (statement.item.document.updated_at, statement.doc))
    later = [(newer, older) for older, newer in combinations(in_time, 2) if _may_replace(newer, older)]
    replacements = {
        (newer.doc, older.doc)
        for newer, older in later
        if len(older.subjects) == most and _is_about_same(newer, older) and _are_no_lists(every, in_lists, newer, older)
    }
    if not replacements:
        return replacements
    values: dict[int, int] = {}  # the first document that says the same, by document
    for at, statement in enumerate(every):
        same = next((earlier for earlier in every[:at] if _says_same(statement, earlier, replacements)), statement)
        values[statement.doc] = values.get(same.doc, same.doc)
    in_turn = {frozenset((values[newer], values[older])) for newer, older in replacements}
    for newer, older in later:
        two_values = {values[newer.doc], values[older.doc]}
        if any(two_values <= pair for pair in in_turn) and _are_no_lists(every, in_lists, newer, older):
            replacements.add((newer.doc, older.doc))
    return replacements


def _says_same(first: _Statement, second: _Statement, replacements: Container[tuple[int, int]]) -> bool:
    """Return whether two statements have the same value, in whatever words, of the same subjects."""
    docs = first.doc, second.doc
    may_add = first.subjects == second.subjects or docs in replacements or docs[::-1] in replacements
    if not _is_same_value(_said_of(first), _said_of(second), may_add=may_add):
        return False
    return _is_about_same(first, second) or _is_about_same(second, first)


def _said_of(statement: _Statement, beside: Set[str] = frozenset()) -> dict[str, str]:
    """Return the content words beside the subjects and others."""
    return {stem: form for stem, form in statement.forms.items() if stem not in statement.subjects | beside}


def _are_no_lists(every: Sequence[_Statement], in_lists: dict[int, bool], *statements: _Statement) -> bool:
    """Return whether no statement is in a list of more about the same thing, nor all are labelled.

    `in_lists` holds by document whether it is in a list: each is looked at once, and only if a rule would move it.
    """
    if all(statement.is_labelled for statement in statements):
        return False
    for statement in statements:
        if statement.doc not in in_lists:
            in_lists[statement.doc] = _is_in_list(every, statement)
    return not any(in_lists[statement.doc] for statement in statements)


def _is_in_list(every: Sequence[_Statement], statement: _Statement) -> bool:
    """Return whether more than the versions of a statement are alike it and each other, have other values and say no
    change: by its few words a short statement is alike others that have nothing else in common.
    """
    similar_statements = [
        similar for similar in every if similar is not statement and _is_about_same(similar, statement)
    ]
    pairs = (
        (similar, [third for third in similar_statements if third is not similar]) for similar in similar_statements
    )
    alike = [statement, *(similar for similar, rest in pairs if any(_is_about_same(third, similar) for third in rest))]
    if len(alike) <= _VERSIONS or _count_values(alike) <= _VERSIONS:
        return False
    return 2 * sum(map(_is_of_change, alike)) < len(alike)


def _count_values(statements: Sequence[_Statement]) -> int:
    """Return the number of values of a relation. Two statements have the same if the first says nothing that the second
    does not, as "She studies with Ann" and "Ann teaches her", or they differ in words of relations alone.
    """
    every = frozenset.intersection(*(statement.words for statement in statements))
    values: list[dict[str, str]] = []
    for statement in statements:
        value = _said_of(statement, every)
        if value and not any(_is_same_value(value, earlier) for earlier in values):
            values.append(value)
    return len(values)


def _is_same_value(first: dict[str, str], second: dict[str, str], *, may_add: bool = True) -> bool:
    """Return whether two statements have the same words of a value, and either has no others but of a change or, unless
    `may_add`, of a relation. "Switched from Ann to Bob" adds another value to "with Ann".
    """
    if first.keys().isdisjoint(second):
        return False
    own = {first[stem] for stem in first.keys() - second}, {second[stem] for stem in second.keys() - first}
    added_words, changed_words = sorted(own, key=_CHANGED.issuperset)
    is_added = may_add and _CHANGED.issuperset(changed_words) and _CHANGED.isdisjoint(added_words)
    return is_added or _RELATIONS.issuperset(added_words | changed_words)


def _is_of_change(statement: _Statement) -> bool:
    """Return whether a statement says that a relation has another value, as "moved to Bari" does."""
    return not _CHANGED.isdisjoint(statement.spoken) and not _TO.isdisjoint(statement.spoken)


def _statement_text(text: str) -> str:
    """Return the line that states something; a name or path may stand above it. Empty for other texts."""
    lines = text.strip().splitlines()
    if not lines or len(lines) > _LINES or "?" in text:
        return ""
    return lines[-1]


def _statement(tx: Tx, item: RankedDocument, text: str, asked: _Asked) -> _Statement | None:
    """Return the hit as a statement about at least half of the subjects; None if it is none."""
    label = _LABEL.match(text)
    text = text[label.end() :] if label else text
    subjects, forms = asked.subjects, _content_words(tx, text)
    numbers = _NUMBER.findall(text)  # 2 is none of 2.35
    words = frozenset([stem for stem in forms if not stem.isdigit() or (stem in subjects and stem in numbers)])
    about = words & subjects
    if 2 * len(about) < len(subjects):
        return None
    lower_text = text.lower()
    has_mark = "'" in text or "’" in text
    lower_text = _CONTRACTED.sub(" not", _POSSESSIVE.sub("", lower_text)) if has_mark else lower_text
    spoken = [*_WORD.findall(lower_text), "", ""]
    return _Statement(
        item,
        item.document.doc,
        text,
        is_labelled=label is not None,
        is_negated=index.are_denying(spoken, lower_text),
        spoken=spoken,
        sequence=tuple(forms),
        forms=forms,
        stems={form: stem for stem, form in reversed(forms.items())},
        words=words,
        subjects=about,
        mentions={},
        asked=asked,
        value=asked.values.share(text, str.isspace) if asked.values else None,
    )


def _content_words(tx: Tx, text: str) -> dict[str, str]:
    """Return the words of content by their stems; of words without blanks between them the pairs of letters alone."""
    words = index.content_words(tx, text)
    if text.isascii():
        return words
    pairs = [word for word in words if len(word) == 2 and word >= _FIRST_OF_CJK]
    return {stem: word for stem, word in words.items() if word in pairs or not any(pair in word for pair in pairs)}


def _in_words(text: str) -> str:
    return text.lower().replace("-", " ").replace("_", " ")


def _is_about_same(newer: _Statement, older: _Statement) -> bool:
    pair = newer.text, older.text
    if pair not in newer.asked.same:
        newer.asked.same[pair] = _compare(newer, older)
    return newer.asked.same[pair]


def _compare(newer: _Statement, older: _Statement) -> bool:
    """Return whether both are about the same thing; tests that most pairs fail come first."""
    return _is_denied(newer, older) or (
        _may_be_same(newer, older)
        and not (_is_about_another(newer, older) or _says_otherwise(newer, older) or _names_another(newer, older))
    )


def _may_be_same(newer: _Statement, older: _Statement) -> bool:
    is_switched = _is_switched(newer, older)
    if not (older.subjects <= newer.subjects or is_switched or _is_opposed(newer, older)):
        return _is_moved(newer, older)
    common, least = older.words & newer.words, min(len(older.words), len(newer.words))
    if len(common) == 1 < least and (_is_topic_of_value(newer, older) or _is_topic_of_value(older, newer)):
        share = _is_turned(newer, older)
    else:
        share = 2 * len(common) + 2 >= least  # as many as it may come to
        further = share and _has_long_name(newer, older)
        share = share and 2 * (len(common) - further + _is_changed(newer, older)) >= least - further
    if newer.text >= _FIRST_OF_CJK and _is_changed(newer, older):  # whose pairs of letters are no words
        return True
    return share or is_switched or index.begins_alike(newer.text, older.text)


def _has_long_name(newer: _Statement, older: _Statement) -> bool:
    """Return whether both have a name of two words with a subject, as the billing API: else all that is said of such a
    thing would be alike.
    """
    pairs = {*pairwise(newer.sequence)} & {*pairwise(older.sequence)}
    rests = ({*pair} - newer.subjects for pair in pairs if not newer.subjects.isdisjoint(pair))
    return any(_RELATIONS.isdisjoint(newer.forms[stem] for stem in stems) for stems in rests)


def _is_switched(newer: _Statement, older: _Statement) -> bool:
    """Return whether the newer statement says of the same things that they switched to another: "studies law with Ann"
    and "switched to Bob for law", which lacks the verb alone.
    """
    spoken = newer.spoken
    if _SWITCHED.isdisjoint(spoken) or _TO.isdisjoint(spoken):
        return False
    at = next(at for at, word in enumerate(spoken) if word in _SWITCHED)
    if not at or spoken[at + 1] in _OWN:
        return False
    is_of_pronoun = spoken[0] == older.spoken[0] not in {*_DETERMINERS, *newer.stems}
    if len(older.words & newer.words) + is_of_pronoun <= 1:
        return False
    verb = older.spoken[_beginning(newer, older)]
    return verb != "" and all(older.forms[stem] == verb for stem in older.subjects - newer.subjects)


def _is_denied(newer: _Statement, older: _Statement) -> bool:
    """Return whether the newer statement denies the older in some of its words: "no longer takes aspirin" and "takes
    aspirin for her back".
    """
    if not newer.is_negated or older.is_negated:
        return False
    if older.text >= _FIRST_OF_CJK:
        return newer.text[0] == older.text[0] and 2 * len(newer.words & older.words) >= len(older.words)
    clause = takewhile(str.isalnum, newer.spoken)
    denied_stems = [stem for word in clause if (stem := newer.stems.get(word)) and word not in _DENIALS]
    return len(denied_stems) > 1 and older.words.issuperset(denied_stems)


def _beginning(newer: _Statement, older: _Statement) -> int:
    """Return the number of words with which both statements begin."""
    at = 0
    while newer.spoken[at] == older.spoken[at] != "":
        at += 1
    return at


def _says_otherwise(newer: _Statement, older: _Statement) -> bool:
    """Return whether two statements of a subject say other things of it, of which the question asks for the first, as
    "opens at 8" and "closes at 6" do, or the first has and the second is something. A word of change says the same, and
    so does a newer statement that says the older value otherwise, as "moved from X to Y" and "no longer X" do.
    """
    at, value = _beginning(newer, older), _last(older)
    verb, change = older.spoken[at], newer.spoken[at]
    if newer.is_negated != older.is_negated:
        return not _places(newer.sequence, value) and _last(newer) not in older.words
    if _places(newer.sequence, value) and not _is_in_place(newer, older, at + 1, older.forms[value]):
        return False
    if verb in _HAS and change in _IS:
        return older.spoken[at + 1] in _DETERMINERS
    are_other = at > 0 and _is_relation(older, newer, verb) and _is_relation(newer, older, change)
    return are_other and older.asked.is_for(verb) != newer.asked.is_for(change)


def _last(statement: _Statement) -> str:
    """Return the last word of content that says more than when it holds."""
    words = reversed(statement.sequence)
    return next((stem for stem in words if statement.forms[stem] not in _RECENT), statement.sequence[-1])


def _is_in_place(newer: _Statement, older: _Statement, after: int, word: str) -> bool:
    """Return whether the same words, not only of content, stand in both statements before a word, from a place on."""
    before = [[*takewhile(word.__ne__, statement.spoken[after:])] for statement in (newer, older)]
    return word in newer.spoken and before[0] == before[1] and not newer.stems.keys() >= {*before[0]}


def _is_relation(statement: _Statement, beside: _Statement, word: str) -> bool:
    """Return whether a word of content may be the verb of a statement alone, and is none of change."""
    stem = statement.stems.get(word)
    if stem is None or stem in beside.words or stem == statement.sequence[-1] or stem.isdigit():
        return False
    return word not in _CHANGED and word not in _PAST and not word.endswith(_ADVERB)


def _is_turned(newer: _Statement, older: _Statement) -> bool:
    """Return whether one statement ends as the other begins: "The mayor is Ann", "Bob is the mayor"."""
    sides = [*_sides(newer), *_sides(older)]
    return all(sides) and (sides[1] == sides[2] or sides[0] == sides[3])


def _sides(statement: _Statement) -> Iterator[list[str]]:
    """Yield the words before "is" and after, without a determiner at the beginning of each."""
    words = statement.spoken[:-2]
    at = next((at for at, word in enumerate(words) if word in _IS), 0)
    for side in (words[:at], words[at + 1 :]):
        yield side[side[:1] != [] and side[0] in _DETERMINERS :]


def _is_topic_of_value(first: _Statement, last: _Statement) -> bool:
    """Return whether the topic of a statement is the value of another: "Mondays are busy", "We meet on Monday"."""
    topic = first.sequence[0]
    return last.sequence[-1] == topic != last.sequence[0] and last.spoken[-3] == last.forms[topic]


def _is_opposed(newer: _Statement, older: _Statement) -> bool:
    """Return whether the newer statement has the opposite of each subject that it lacks, as "disabled" of "enabled"."""
    missing = (older.forms[stem] for stem in older.subjects - newer.subjects)
    opposites = ((*_POLES_OF.get(form, ()), *(f"{prefix}{form}" for prefix in _DENYING)) for form in missing)
    return not any({*words}.isdisjoint(newer.spoken) for words in opposites)


def _is_changed(newer: _Statement, older: _Statement) -> bool:
    """Return whether the newer statement says in another verb that the relation of the older has changed: not "moved
    her savings", nor of another subject, as "the office plants moved".
    """
    for states, changes in _CHANGES:
        if not (_has_any(older, states) or (changes in _CHANGES_OF_PLACE and _is_placed(older))):
            continue
        foreign = {word for word in changes if not word.isascii()}  # the order of words is not that of English
        if _has_any(newer, foreign):
            return True
        at = next((at for at, word in enumerate(newer.spoken) if word in changes), 0)
        if at and newer.spoken[at + 1] not in _OF_OBJECTS and newer.sequence[0] in newer.subjects:
            next_words = (mention.following for _, mention, _ in _mentions(newer, older))
            return any(
                word in (*changes, *_AUXILIARIES, *_OTHER_AUXILIARIES) or _is_particle(word) for word in next_words
            )
    return False


def _is_placed(statement: _Statement) -> bool:
    """Return whether a statement says when or where its subject is: "is on Monday", "is in Bari"."""
    return any(word in _PLACED and after in _AT for word, after in pairwise(statement.spoken))


def _has_any(statement: _Statement, words: Set[str]) -> bool:
    """Return whether a statement has any of some words, which have no blanks around them in some scripts."""
    if statement.text >= _FIRST_OF_CJK:
        return any(word in statement.text for word in words if not word.isascii())
    return not words.isdisjoint(statement.spoken) or not words.isdisjoint(statement.stems)


def _is_moved(newer: _Statement, older: _Statement) -> bool:
    """Return whether the newer statement names all that the older says, and then another value, as "moved from X to Y"
    does.
    """
    values = {*older.sequence} - older.subjects
    if older.sequence[0] not in newer.words or _RELATIONS.issuperset(older.forms[value] for value in values):
        return False
    places = [_places(newer.sequence, value) for value in values]
    if not all(places):
        return False
    if len(_POSSESSIVE.findall(newer.text)) > len(_POSSESSIVE.findall(older.text)):  # "Weber" and "Weber's clerk"
        return False
    is_other_number = any(map(str.isdigit, older.subjects - newer.subjects))
    return not is_other_number and not {*newer.sequence[min(map(min, places)) + 1 :]} <= {*older.sequence}


def _places(words: Sequence[str], name: str) -> list[int]:
    """Return the positions of a word and, in a script that has no stemmer, of other forms of it."""
    if name.isascii():
        return [at for at, word in enumerate(words) if word == name]
    stem, size = name[: min(_STEM_LETTERS, len(name) - 1)], len(name)
    return [at for at, word in enumerate(words) if word.startswith(stem) and abs(len(word) - size) <= _MOST_ENDING]


def _is_about_another(newer: _Statement, older: _Statement) -> bool:
    """Return whether two statements have one form and differ at both ends, as "The Berlin office opens at 8" and "The
    Paris office opens at 9" do: another subject with another value; or in a word such as check-in, which is asked for.
    """
    if _has_another_mark(newer, older):
        return True
    compounds = [*map(_in_words, _COMPOUND.findall(older.text))]
    text = _in_words(newer.text) if compounds else ""
    if any(name in older.asked.text and name not in text for name in compounds) or _are_other_names(newer, older):
        return True
    if len(newer.sequence) != len(older.sequence):
        return False
    pairs = zip(newer.sequence, older.sequence, strict=True)
    same = [word == before and not _are_acronyms(newer, older, word) for word, before in pairs]
    return any(same) and not same[0] and not same[-1] and not (_is_passive(newer, older) or _is_changed(newer, older))


@lru_cache(_CACHED)
def _has_marks(text: str) -> bool:
    return _JOINED.search(text) is not None or _MARKED.search(text) is not None


def _has_another_mark(newer: _Statement, older: _Statement) -> bool:
    """Return whether only the older statement has a name of the question, as `v2` or `C++`, or a subject is another
    name in the newer: `#btn`, `.btn` and `btn`, `test` and `test_all`, or `#12` and `PROJ-12`.
    """
    names = older.asked.names
    if not (names or _has_marks(newer.text) or _has_marks(older.text)):
        return False
    first, last = index.names_in(newer.text), index.names_in(older.text)
    if names & last - first:
        return True
    bare = {name.strip(_MARKS).lower() for name in first ^ last if name != name.strip(_MARKS)}
    joined = {part for name in first if _JOINED.search(name) for part in name.replace("-", "_").split("_")}
    forms = {statement.forms[stem] for statement in (newer, older) for stem in statement.subjects}
    return not bare.isdisjoint(forms) or not joined.isdisjoint(forms - first)


def _are_other_names(newer: _Statement, older: _Statement) -> bool:
    """Return whether a subject is two names of one stem: Simon and Simone, Mary and Marie, "Luca's" and "Lucas's"."""
    for stem in newer.subjects & older.subjects:
        first, last = sorted((newer.forms[stem], older.forms[stem]))
        if (first, last) == _TITLES or last == f"{first}e" or (first.endswith("ie") and last == f"{first[:-2]}y"):
            return True
        if first != last and all(_is_singular(statement, stem) for statement in (newer, older)):
            return True
    return False


def _is_singular(statement: _Statement, stem: str) -> bool:
    """Return whether a subject is no plural: the owner of a thing or, at the beginning, by its verb: "Carlos lives"."""
    form = statement.forms[stem]
    if form in _OWNER.findall(statement.text.lower()):
        return True
    return statement.spoken[0] == form and statement.spoken[1][-1:] == "s"


def _is_passive(newer: _Statement, older: _Statement) -> bool:
    """Return whether one statement turns the other round, its verb in another form: "sang it", "is sung by"."""
    ends = newer.sequence[0] == older.sequence[-1], newer.sequence[-1] == older.sequence[0]
    return any(ends) and any(newer.forms[stem] != older.forms[stem] for stem in newer.words & older.words)


def _are_acronyms(newer: _Statement, older: _Statement, stem: str) -> bool:
    forms = newer.forms[stem].upper(), older.forms[stem].upper()
    return forms[0] != forms[1] and forms[0] in newer.text and forms[1] in older.text


def _names_another(newer: _Statement, older: _Statement) -> bool:
    """Return whether the newer statement is about another thing: it adds to the older, is of a case or of how to do
    something, a subject is part of another name in it, or it is what the older is not: "to Oslo" and "from Oslo".
    """
    first, last = newer.spoken, older.spoken
    if not _ALSO.isdisjoint(first) or _AS_WELL.search(newer.text):
        return True
    if _case(first) != _case(last) and (_is_qualified(first) or _is_qualified(last)):
        return True
    if any(_is_of_another(newer, older, *pair) for _, *pair in _mentions(newer, older)):
        return True
    return _is_about_part(newer, older) or any(_is_opposite(*pair) for _, *pair in _mentions(newer, older))


def _is_of_another(newer: _Statement, older: _Statement, first: _Mention, last: _Mention) -> bool:
    """Return whether a subject has another noun before or behind "of", or none: "strings of the guitar", "neck of the
    guitar", "the guitar", or "the price of tea" and "the price of jam".
    """
    before = _noun_of(newer, first), _noun_of(older, last)
    behind = _complement(newer, first), _complement(older, last)
    if behind[0] != behind[1] and all(behind) and _are_own(newer, older, *behind):
        return True
    return None not in before and before[0] != before[1] and _are_own(newer, older, before[0], before[1])


def _are_own(newer: _Statement, older: _Statement, first: str | None, last: str | None) -> bool:
    """Return whether the nouns that are not empty are of a single statement."""
    return (not first or _is_own_noun(newer, older, first)) and (not last or _is_own_noun(older, newer, last))


def _noun_of(statement: _Statement, mention: _Mention) -> str | None:
    """Return the noun before "of" and a subject; empty if the subject begins the statement, None otherwise."""
    before = mention.before
    if _DETERMINERS.issuperset(before):
        return ""
    is_determined = before[0] in _DETERMINERS
    nouns = [*takewhile(statement.stems.__contains__, before[is_determined:])]
    between = before[is_determined + len(nouns) :]
    if not nouns or (between[:1] != ["of"] and not (is_determined and between)):
        return None
    if not statement.stems.keys().isdisjoint(between):
        return None
    return nouns[-1]


def _complement(statement: _Statement, mention: _Mention) -> str:
    """Return the first word of content behind a subject and "of"; empty if there is none."""
    if mention.following != "of":
        return ""
    return next((word for word in mention.after if word in statement.stems), "")


def _is_about_part(newer: _Statement, older: _Statement) -> bool:
    """Return whether a subject that the older statement has bare is part of another name in the newer, as in "The cello
    was made in 1890" and "The cello case was made in 2015", "Ann's brother", or "the spare pump".
    """
    return any(
        _is_modified(newer, older, mention, bare)
        or _is_of(newer, older, mention, bare)
        or _is_compound(newer, older, subject, mention, bare)
        or _is_owned(newer, older, subject, mention)
        for subject, mention, bare in _mentions(newer, older)
    )


def _mentions(newer: _Statement, older: _Statement) -> list[tuple[str, _Mention, _Mention]]:
    """Return the subjects that both statements have, with their mentions in the newer and in the older."""
    triples = ((stem, _mention(newer, stem), _mention(older, stem)) for stem in newer.subjects & older.subjects)
    return [(stem, first, last) for stem, first, last in triples if first and last]


def _mention(statement: _Statement, subject: str) -> _Mention | None:
    if subject not in statement.mentions:
        words, form = statement.spoken, statement.forms[subject]
        statement.mentions[subject] = _mention_of(words, words.index(form)) if form in words else None
    return statement.mentions[subject]


def _mention_of(words: list[str], at: int) -> _Mention:
    after = [*dropwhile(_is_particle, words[at + 1 : -1]), "", ""]
    return _Mention(words[:at], words[at + 1], after)


def _is_qualified(words: list[str]) -> bool:
    """Return whether a statement is about a case, as "On Sundays", or about how to do something, not about a date."""
    if words[0] not in _QUALIFIERS or words[1][:1].isdigit() or words[1] in _MONTHS:
        return False
    return _ASIDES.isdisjoint(words[1 : _MOST_ASIDE + 1])


def _case(words: list[str]) -> list[str]:
    """Return the first two words that are no determiners, as "on monday" of "On the Monday"."""
    return [word for word in words[: _CASE + 1] if word not in _DETERMINERS][:_CASE]


def _is_opposite(newer: _Mention, older: _Mention) -> bool:
    """Return whether a subject has opposite prepositions, not in "from X to Y", or other letters: plan A and plan B."""
    letters = newer.following, older.following
    if letters[0] != letters[1] and all(len(letter) == 1 and letter.isalpha() for letter in letters):
        return True
    nearest = ([word for word in mention.before if word not in _DETERMINERS] for mention in (newer, older))
    before = ["".join(words[-1:]) for words in nearest]
    return frozenset(before) in _OPPOSITES and before[1] not in (*newer.before, *newer.after)


def _is_modified(newer: _Statement, older: _Statement, mention: _Mention, bare: _Mention) -> bool:
    """Return whether a noun or adjective stands before the subject that begins the older statement: "Load tests run"
    and "Tests run".
    """
    if not _DETERMINERS.issuperset(bare.before):
        return False
    before = mention.before[mention.before[:1] != [] and mention.before[0] in _DETERMINERS :]
    is_name = newer.stems.keys() >= {*before} and _RECENT.isdisjoint(before)
    return is_name and any(_is_own_noun(newer, older, word) for word in before)


def _is_of(newer: _Statement, older: _Statement, mention: _Mention, bare: _Mention) -> bool:
    """Return whether the subject that begins the older statement follows a noun, as in "The neck of the guitar"."""
    noun = _noun_of(newer, mention)
    return bool(noun) and _noun_of(older, bare) == "" and _is_own_noun(newer, older, noun)


def _is_compound(newer: _Statement, older: _Statement, subject: str, mention: _Mention, bare: _Mention) -> bool:
    """Return whether a noun follows the subject, as in "the cello case" and "the rent of the garage"."""
    noun, *following = mention.after
    if not _is_own_noun(newer, older, noun) or noun.endswith(_VERBS):
        return False
    after = bare.after[0]
    is_verb = following[0] in _AUXILIARIES or following[0] in _CHANGED
    if after in _AUXILIARIES and (is_verb or after in following[:_MOST_BETWEEN]):
        return True
    next_older = dict(pairwise(older.sequence)).get(subject, "")
    if following[0] == older.forms.get(next_older):
        return True
    is_name = next_older in older.subjects & newer.subjects and after == older.forms[next_older]
    is_name = is_name and not noun.startswith(after[:_STEM_LETTERS])  # "plays" and "played"
    return is_name and following[0] != newer.forms[next_older]  # "old mill" and "old brewery"


def _is_owned(newer: _Statement, older: _Statement, subject: str, mention: _Mention) -> bool:
    """Return whether the subject only has what the newer statement is about, as in "Luna's sister moved"."""
    if "'" not in newer.text and "\u2019" not in newer.text:
        return False
    owners = _OWNER.findall(newer.text.lower())
    if newer.forms[subject] not in owners or older.forms[subject] in _OWNER.findall(older.text.lower()):
        return False
    return _is_own_noun(newer, older, mention.following) and mention.after[1] != "of"


def _is_own_noun(newer: _Statement, older: _Statement, word: str) -> bool:
    """Return whether a word may be a noun or adjective that names another thing than the older statement does."""
    stem = newer.stems.get(word)
    if stem is None or stem in older.forms or stem in newer.subjects or word in _RELATIONS or word in _RECENT:
        return False
    if word in _PAST or word.endswith(_ADVERB) or word[0].isdigit():
        return False
    return not index.is_common(word) and not index.is_negated(word)


def _is_particle(word: str) -> bool:
    return word[:1].isalpha() and word not in _AUXILIARIES and index.is_common(word) and not index.is_negated(word)


def _is_asked_bare(bare: _Statement, part: _Statement) -> bool:
    """Return whether a statement is about the subjects of the question, and another, nearly as good a hit, about a part
    or a kind of them, or about another name.
    """
    if bare.subjects != part.subjects or bare.item.score < _NEAR * part.item.score or _is_denied(part, bare):
        return False
    if _has_another_mark(bare, part):
        return False
    return _is_about_part(part, bare) or (_are_other_names(bare, part) and _names_as_asked(bare, part))


def _names_as_asked(statement: _Statement, rival: _Statement) -> bool:
    """Return whether a statement alone spells a subject as the question does."""
    asked = statement.asked.forms
    stems = [stem for stem in statement.subjects if statement.forms[stem] != rival.forms[stem]]
    return all(statement.forms[stem] == asked[stem] for stem in stems)


def _may_replace(newer: _Statement, older: _Statement) -> bool:
    """Return whether a statement is of the same dialect as an older statement, and answers nearly as well."""
    documents = newer.item.document, older.item.document
    if documents[0].space.partition(":")[0] != documents[1].space.partition(":")[0]:
        return False
    if older.value == 1.0 and newer.value == 0.0 and not _is_denied(newer, older):  # the older value is asked for
        return False
    strengths = [statement.item.scored.strength if statement.item.scored else 1.0 for statement in (newer, older)]
    return strengths[0] >= _LEAST_SHARE * strengths[1]
