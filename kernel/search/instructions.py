"""Standing instructions, such as "Always answer in German": marked when they are written, and lifted for requests.

A request seldom shares a word with the instruction that bears on it, so search by likeness alone passes it over.
"""

from kernel.core.lazy_regex import regex
from kernel.search.query import STOP_WORDS

MARK = "\U000f0002"  # beside the text of an instruction: of private use, a letter for unicode61
_PARTS = ("ever ", "lways ", " ask", "now on", "time you ", "future", "going forward")  # each instruction has one
_INSTRUCTION = regex(
    r"(?<![^\s\"'(])(?:(?:i|we) ask(?: you)?\b|from now on\b|going forward,|(?:whenever|every time|each time) you "
    r"|in (?:the )?future,)"
    r"|(?<![^.!?:;\n] )(?<!\S)(?:please )?(?:always|never|don'?t ever|do not ever) "
    r"(?!(?:i|we|he|she|they|it|the|been|had|was|here|there)\b)"
)
_STEP, _LONGEST = 1024, 64  # characters; more than an instruction has with what follows it
_AFTER_VERBS = frozenset("a an the my me our us this these some your".split())
_ASKING = regex(
    r"(?<![^\W_])(?:(?:should|could|can|shall|how do|how to|let) (?:i|we|you|us)|would|best way|do you think"
    r"|what do (?:i|we) do|i need|(?:have|take) a look|put together|help (?:me|us))(?![^\W_])"
)


def is_instruction(text: str) -> bool:
    """Return whether a text says how to answer or to work from now on, in English."""
    folded = text.lower()
    return any(_begins_in(folded, at) for at in range(0, len(folded), _STEP))


def _begins_in(text: str, at: int) -> bool:
    """Return whether an instruction begins in a step of a text: while all of a long text is searched, no other thread
    runs.
    """
    end = at + _STEP + _LONGEST
    if not any(map(text[at:end].__contains__, _PARTS)):
        return False
    match = _INSTRUCTION.search(text, at, end)
    return match is not None and match.start() < at + _STEP


def is_order(question: str) -> bool:
    """Return whether a question begins with a verb, as in "Write a letter"."""
    words = question.lower().split(maxsplit=2)
    return len(words) > 1 and words[0] not in STOP_WORDS and words[1] in _AFTER_VERBS


def asks_for_work(question: str) -> bool:
    """Return whether a question asks for something to be done or advised rather than for a fact, in English."""
    return is_order(question) or _ASKING.search(question.lower()) is not None
