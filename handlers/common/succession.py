"""Newer before older among hits about the same thing, so that the first hit is the statement that holds today.

Neither cosine nor a word of change ("now", "moved") tells a correction from a repetition. A rule does: of two short
statements that hold the same subject words of the question, the newer is in force. MINTEval (arXiv 2605.18565) groups
facts after the search likewise. Figures: `python -m loadtests.quality.succession`.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from handlers.common.scoring import ScoredDocument
from kernel.core.lazy_regex import regex
from kernel.search import index
from kernel.store.transaction import Tx

_COMPARED = 10  # hits from the first
_VERSIONS = 3  # of a statement; more that are alike are a list
_MOST_CHARS = 240  # of a statement with its name; longer texts are notes, procedures and lists
_LINES = 2
_LEAST_SHARE = 0.05  # of the strength of the older; beside the words, which decide
_ADVERB = "ly"
_TURN = regex(r"[^\W\d_]+: ")  # of a conversation, in which answers follow each other
# Words of a question that name a relation, not a subject: a correction often has another.
_RELATIONS = frozenset(
    """age be become becomes belong belongs book booked called change changed changes choose chosen come comes cost
    costs current currently date day days deploy deployed deploys drink drinks drive drives eat eats end ends
    expire expires favorite favourite get gets give given go goes happen happens has have held hold holds
    host hosted hosts keep keeps kept lead leads like likes live lives located long made make
    makes many meet meets migrate migrated month move moved moves much name named need needs now number often
    own owns paid pay pays place planned play plays prefer prefers price put reach rename renamed replace
    replaced replaces run running runs say says scheduled sit sits sleep sleeps speak speaks start starts stay
    stays store stored supposed switch switched switches take takes talk talks time today transferred travel
    travels use used uses using value version visit wear wears week work works write written year years""".split()
)


class _Statement(NamedTuple):
    """A short hit, its content words in order and without numbers, those of the question's subjects that it holds, and
    its share of a value that the question names.
    """

    item: ScoredDocument
    text: str
    sequence: tuple[str, ...]
    forms: dict[str, str]  # of the content words, by their stems
    words: frozenset[str]
    subjects: frozenset[str]
    value: float | None


def newer_first(tx: Tx, question: str, items: Sequence[ScoredDocument]) -> list[ScoredDocument]:
    """Return the hits with newer statements before the older that they seem to replace, otherwise in their order.

    An older hit names the newer.
    """
    sequence = [*items]
    texts = [_statement_text(item.document.text) for item in sequence[:_COMPARED]]
    if sum(map(bool, texts)) <= 1:
        return sequence
    subjects = {stem for stem, word in index.content_words(tx, question).items() if word not in _RELATIONS}
    if all(map(str.isdigit, subjects)):  # a value says nothing of the subject
        return sequence
    values = index.named_values(question)
    every = [_statement(tx, item, text, subjects, values) for item, text in zip(sequence, texts, strict=False)]
    statements = [None if statement is None or _is_in_list(statement, every) else statement for statement in every]
    for at, newer in enumerate(statements):
        first = next((place for place, older in enumerate(statements[:at]) if _replaces(newer, older)), at)
        if first < at:
            statements.insert(first, statements.pop(at))
            sequence.insert(first, sequence.pop(at)._replace(score=sequence[first].score))
    for at, older in enumerate(statements):
        newer = next((statement for statement in statements[:at] if _replaces(statement, older)), None)
        if newer is not None:
            document = newer.item.document
            sequence[at] = sequence[at]._replace(newer=f"{document.space}/{document.key}")
    return sequence


def _statement_text(text: str) -> str:
    """Return the line that states something; a name or path may stand above it. Empty for other texts."""
    lines = text.strip().splitlines() if len(text) <= _MOST_CHARS else []
    if not lines or len(lines) > _LINES or "?" in text or _TURN.match(lines[-1]):
        return ""
    return lines[-1]


def _statement(
    tx: Tx, item: ScoredDocument, text: str, subjects: set[str], values: index.NamedValues | None
) -> _Statement | None:
    """Return the hit as a statement about at least half of the subjects; None if it is none."""
    if not text or not subjects:
        return None
    forms = index.content_words(tx, text)
    words = frozenset(stem for stem in forms if not stem.isdigit() or stem in subjects)
    about = words & subjects
    value = values.share(text, str.isspace) if values else None
    statement = _Statement(item, text, tuple(forms), forms, words, about, value)
    return statement if 2 * len(about) >= len(subjects) else None


def _is_in_list(statement: _Statement, every: Sequence[_Statement | None]) -> bool:
    return sum(_is_about_same(known_statement, statement) for known_statement in every) > _VERSIONS


def _is_about_same(newer: _Statement | None, older: _Statement) -> bool:
    if newer is None or _is_about_another(newer.sequence, older.sequence) or _is_about_part(newer, older):
        return False
    if not older.subjects <= newer.subjects:
        values = {*older.sequence} - older.subjects  # "moved from X to Y" names all that the older statement says
        return bool(values) and values <= {*newer.sequence}
    share = 2 * len(older.words & newer.words) >= min(len(older.words), len(newer.words))
    return share or index.begins_alike(newer.text, older.text)


def _is_about_another(left: Sequence[str], right: Sequence[str]) -> bool:
    """Return whether two statements have one form and differ at both ends, as "The Berlin office opens at 8" and "The
    Paris office opens at 9" do: another subject with another value.
    """
    if len(left) != len(right):
        return False
    same = [one == other for one, other in zip(left, right, strict=True)]
    return any(same) and not same[0] and not same[-1]


def _is_about_part(newer: _Statement, older: _Statement) -> bool:
    """Return whether a noun follows the subject that the older statement has bare, as in "The cello was made in 1890"
    and "The cello case was made in 2015", or "Ann's brother".
    """
    after = dict(pairwise(older.sequence))
    triples = zip(newer.sequence, newer.sequence[1:], newer.sequence[2:], strict=False)
    nouns = [
        (newer.forms[subject], newer.forms[noun])
        for subject, noun, following in triples
        if after.get(subject) == following and subject in older.subjects and noun not in older.sequence
    ]
    text = newer.text.lower().replace("'s ", " ").replace("’s ", " ")
    nouns = [(subject, noun) for subject, noun in nouns if noun not in _RELATIONS and not noun.endswith(_ADVERB)]
    return any(f"{subject} {noun}" in text for subject, noun in nouns)


def _replaces(newer: _Statement | None, older: _Statement | None) -> bool:
    if newer is None or older is None or not _is_about_same(newer, older):
        return False
    if older.value == 1.0 and newer.value == 0.0:  # the question is about the older value
        return False
    documents = newer.item.document, older.item.document
    if documents[0].space.partition(":")[0] != documents[1].space.partition(":")[0]:
        return False
    strengths = [statement.item.scored.strength if statement.item.scored else 1.0 for statement in (newer, older)]
    if strengths[0] < _LEAST_SHARE * strengths[1]:
        return False
    times = [(document.updated_at, document.doc) for document in documents]
    return times[0] > times[1]
