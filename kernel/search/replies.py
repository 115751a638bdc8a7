"""Conversations: the turn after a question that matches often answers it, and long answers hide short turns.

Texts are turns of a conversation if some of them are short questions.
"""

from typing import NamedTuple

from kernel.core.lazy_numpy import Floats, Ids, np
from kernel.search.hits import positions

_LEAST_QUESTIONS = 0.1  # of the texts in a conversation
_MOST_BYTES = 350  # of a reply; a longer text is an essay
_REPLY = 1.15  # of the question's own score, times the weight of neighbours
_LONG, _LONG_LOSS = 500, 0.1  # bytes of a turn; of its score, times ln of the bytes over these


class Turns(NamedTuple):
    """The bytes of each text in the middle of a window, and of the text after it if it is a short question, else 0."""

    sizes: Ids
    replies: Ids


def turns_of(sizes: Ids, replies: Ids) -> Turns | None:
    """Return the texts as turns of a conversation, None if they are none."""
    is_conversation = len(replies) and (replies > 0).mean() >= _LEAST_QUESTIONS
    return Turns(sizes, replies) if is_conversation else None


def reply_scores(docs: Ids, own: Floats, windows: Ids, replies: Ids) -> Floats:
    """Return what each document gains from the question before it."""
    questions, answers = positions(docs, windows[:, 2:4]).T
    mask = (replies > 0) & (replies <= _MOST_BYTES) & (questions >= 0) & (answers >= 0)
    gains = np.zeros(len(docs))
    gains[answers[mask]] = _REPLY * own[questions[mask]]
    return gains


def turn_factors(sizes: Ids) -> Floats:
    """Return the factor of the score of a turn of so many bytes."""
    return np.maximum(0.0, 1 - _LONG_LOSS * np.log(np.maximum(sizes / _LONG, 1)))
