"""Rules that detect prompt injection in memories by their words.

`injection.txt` has classes of words, and rules, which are sequences of classes with bounded gaps: in `IGNORE 2 EARLIER`
at most two other words stand between the two. `- CLASS` at the end rejects a match that a word of that class follows.
All rules are compiled into one automaton that reads every word once, so the time is linear in the text. Quoted text
does not count if a text discusses injections.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from kernel.core.lazy_regex import regex
from kernel.core.text import CHANGES_OF_NAMES, normalized


def _entries(section: str) -> list[tuple[str, str]]:
    return [(name, text) for name, _, text in (line.partition(": ") for line in section.splitlines())]


_CLASSES, _RULES = map(_entries, Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").split("\n\n"))
WORD_CLASSES = dict(_CLASSES)
# At least one class of each rule. Of 4,500 texts of four sentences 47 % hold a word of them, of single sentences 16 %.
_RARE_CLASSES = (
    "ORDERS FREE MARK OVERRIDE DISCLOSE DISCLOSING HIDE QUIET SECRETLY TO REGARDLESS EVEN WALLET UNDER TURNS TRUSTED "
    "TEXT MEMORIES SAVE DANGER GUARD DECODE"
)
_RARE_WORDS = frozenset(word for name in _RARE_CLASSES.split() for word in WORD_CLASSES[name].split())
_SENTENCE_END = "\x01"
_SENTENCE_BREAK = f" {_SENTENCE_END} "
_SENTENCE_DISTANCE = 4  # words that the end of a sentence counts as, so that gaps rarely span two sentences
_SENTENCE_ENDS = (". ", "! ", "? ", ".\n", "\n")
_UNREACHED = -(1 << 40)  # farther away than any text is long
_WORD_CHARACTERS = frozenset("_'@\x01")
_NO_WORD_CHARACTERS = bytes(code for code in range(128) if not (chr(code).isalnum() or chr(code) in _WORD_CHARACTERS))
_TO_BLANKS = bytes.maketrans(_NO_WORD_CHARACTERS, b" " * len(_NO_WORD_CHARACTERS))
# "i g n o r e", spelled with spaces.
_SPACED_LETTERS = regex(r" \w \w \w \w \w ")
_SPACES_BETWEEN_LETTERS = regex(r"(?<=\b\w) (?=\w\b)")
# A Markdown image whose address has a placeholder: fetching it sends the text that the agent fills in.
_IMAGE_BEACON = regex(r"!\[[^\[\]\n]{0,80}\]\(https?://[^()\s{}<>$]{0,500}(?:[{<$]|%7b)")
_INVISIBLE = regex("[\u00ad\u0300-\u036f\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]")
# Unicode tags: invisible copies of ASCII.
_TAG_CHARACTERS = regex("[\U000e0020-\U000e007e]{4,}")
# Cyrillic letters inside Latin words.
_MIXED_SCRIPTS = regex("[a-z][\u0430-\u045f\u04bb\u0501]|[\u0430-\u045f\u04bb\u0501][a-z]")
_HOMOGLYPHS = str.maketrans("\u0430\u0441\u0501\u0435\u04bb\u0456\u0458\u043e\u0440\u0455\u0443\u0445", "acdehijopsyx")
_TYPOGRAPHY = (("\u2019", "'"), ("\u201c", '"'), ("\u201d", '"'), ("\u2014", "-"), ("\u2013", "-"), ("\u2026", ". "))
_LEETSPEAK = regex("[0134578][a-z]")
_LEETSPEAK_LETTERS = str.maketrans("0134578", "oieastb")
_SECURITY_TOPIC = regex("payload|fixture|injection|jailbreak|red team|attack|poison|phish")
_QUOTED = regex(r'"[^"\n]{0,300}"|`[^`\n]{0,300}`')

_SHORT = 4096  # characters of a text whose words are kept
_CHANGE = regex(rf"[A-Z0-9_](?:{CHANGES_OF_NAMES}|(?<=[.,'][0-9])(?=[0-9]{{2}}))")  # of names, and of 1,000


class ShortText(Struct, frozen=True):
    """The words of a short ASCII text in small letters, as the rules have them, and whether any word has a change."""

    words: list[str]
    changes: bool


class _Transition(NamedTuple):
    """A transition on a word, from the state `source` (-1 is the start) to `target`.

    It applies while `source` was reached at most `max_distance` words ago. A transition to the end of a rule has the
    rule's name, and `exclusions` words that must not follow.
    """

    source: int
    max_distance: int
    target: int
    rule: str
    exclusions: frozenset[str]


class _Automaton(NamedTuple):
    """All rules: transitions by word, the classes of each word as bits, and the classes that each rule needs."""

    transitions: Mapping[str, tuple[_Transition, ...]]
    class_bits: Mapping[str, int]
    required: tuple[int, ...]
    states: int


def matched_rule(text: str) -> str:
    """Return the rule that a text matches, for example `exfiltration`; empty if it matches none."""
    folded = text.lower()
    words = _normalized(folded)
    short = short_text(text) if words is folded else None
    rule = _match(words) if short is None else _match(words, short.words, is_plain=not short.changes)
    if rule and _SECURITY_TOPIC.search(words):
        rule = _match(_QUOTED.sub(" ", words))
    return rule or ("exfiltration" if "![" in words and _IMAGE_BEACON.search(words) else "")


def _normalized(text: str) -> str:
    """Return the text without invisible characters and homoglyphs, followed by its tag characters as letters."""
    if not text.isascii():
        for typographic, plain in _TYPOGRAPHY:
            text = text.replace(typographic, plain)
        tags = " ".join("".join(chr(ord(tag) - 0xE0000) for tag in run) for run in _TAG_CHARACTERS.findall(text))
        text = _INVISIBLE.sub("", normalized("NFKD", text))
        if _MIXED_SCRIPTS.search(text):
            text = text.translate(_HOMOGLYPHS)
        text = f"{text}\n{tags.lower()}"
    return _SPACES_BETWEEN_LETTERS.sub("", text) if _SPACED_LETTERS.search(text) else text


@lru_cache(1)  # a write asks twice for that of a text
def short_text(text: str) -> ShortText | None:
    """Return the words of a text; None if it is long or not ASCII."""
    if len(text) > _SHORT or not text.isascii():
        return None
    return ShortText(_split(text.lower()), _CHANGE.search(text) is not None)


def _match(text: str, words: Sequence[str] | None = None, *, is_plain: bool = False) -> str:
    words = words or _split(text)
    if not _has_all_classes(words if is_plain else _plain(text, words)):
        return ""
    for end in _SENTENCE_ENDS:
        text = text.replace(end, _SENTENCE_BREAK)
    return _run(_plain(text, _split(text)))


def _split(text: str) -> list[str]:
    # Of bytes, since `str.translate` asks its table for each character anew.
    words = text.replace("@", " @ ").encode("utf-8", "surrogatepass").translate(_TO_BLANKS)
    return words.decode("utf-8", "surrogatepass").split()


def _plain(text: str, words: Sequence[str]) -> Sequence[str]:
    """Return the words of a text without digits that stand for letters."""
    if _LEETSPEAK.search(text):
        return [
            word if word.isalpha() or word in _AUTOMATON.class_bits else word.translate(_LEETSPEAK_LETTERS)
            for word in words
        ]
    return words


def _has_all_classes(words: Sequence[str]) -> bool:
    """Return whether the classes of at least one rule all occur: sets spare most texts the automaton."""
    if _RARE_WORDS.isdisjoint(words):
        return False
    classes, bits = 0, _AUTOMATON.class_bits
    for word in _KNOWN.intersection(words):
        classes |= bits[word]
    return 0 in map((~classes).__and__, _AUTOMATON.required)


def _run(words: Sequence[str]) -> str:
    """Return the rule whose end is reached; for each state the last position at which it was reached is enough."""
    positions = [_UNREACHED] * _AUTOMATON.states
    distance = 1  # of a position from the number of its word
    for number, word in [(number, word) for number, word in enumerate(words) if word in _COUNTED]:
        if word == _SENTENCE_END:
            distance += _SENTENCE_DISTANCE - 1
            continue
        position = number + distance
        for source, max_distance, target, rule, exclusions in _AUTOMATON.transitions[word]:
            if source < 0 or 0 < position - positions[source] <= max_distance:
                if rule and not _in_other_context(words[number + 1 : number + 3], exclusions):
                    return rule
                positions[target] = position
    return ""


def _in_other_context(following: Sequence[str], exclusions: frozenset[str]) -> bool:
    """Return whether the next words refer to another text, as in "the instructions in the readme"."""
    return len(following) > 1 and following[0] in exclusions and following[1] not in _SELF_REFERENCE


def _compile() -> _Automaton:
    transitions: dict[str, list[_Transition]] = {}
    numbers = {name: number for number, name in enumerate(WORD_CLASSES)}
    class_bits = {word: 0 for words in WORD_CLASSES.values() for word in words.split()}
    for name, words in WORD_CLASSES.items():
        for word in words.split():
            class_bits[word] |= 1 << numbers[name]
    needs: list[int] = []
    state = 0
    for rule, pattern in _RULES:
        pattern, _, unless = pattern.partition(" - ")
        exclusions = frozenset(WORD_CLASSES[unless].split()) if unless else frozenset[str]()
        names, gaps = pattern.split()[::2], [0, *map(int, pattern.split()[1::2])]
        assert not set(names).isdisjoint(_RARE_CLASSES.split())  # or the rule would never be tried
        needs.append(sum(1 << numbers[name] for name in set(names)))
        for number, name in enumerate(names):
            final_rule = rule if number == len(names) - 1 else ""
            source = state - 1 if number else -1
            transition = _Transition(source, gaps[number] + 1, state, final_rule, exclusions)
            state += 1
            for word in WORD_CLASSES[name].split():
                transitions.setdefault(word, []).append(transition)
    return _Automaton({word: tuple(steps) for word, steps in transitions.items()}, class_bits, tuple(needs), state)


_AUTOMATON = _compile()
_KNOWN = frozenset(_AUTOMATON.class_bits)
_COUNTED = frozenset((*_AUTOMATON.transitions, _SENTENCE_END))
_SELF_REFERENCE = frozenset(WORD_CLASSES["HERE"].split())
