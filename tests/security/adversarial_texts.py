"""Texts that make a pattern slow if any do, derived from the pattern itself.

A search is slow for a long repetition that can be split, begun or ended in many ways. So for each repetition of
the pattern a text leads to it, then repeats its matches: its own characters, the literals after it that it takes too,
two of these in turn or one after the other, or the whole way to it again; and ends so that the pattern does not match.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import product
from re import _constants as op  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Any, NamedTuple

GENERAL = (
    *("a", "A", "0", "_", " ", "\n", "\t", "é", "日", "\u200b"),
    *("\u0300\u0316", "\uff9e\u0316", "\u0f73", "a\u0300\u0316"),  # marks, which normal forms put in order
    *("/", ".", ",", "-", ":", "=", "'", '"', "\\", "*", "#", "@", "`", "~", "|", "&", "%", "$", "+", "?", "!"),
    *("(", ")", "[", "]", "{", "}", "<", ">", "()", "[]", "{}", "<>", "''", '""'),
    *(
        "a ",
        " a",
        "a\n",
        "\n\n",
        "\n ",
        " \n",
        "aA",
        "a0",
        "a.",
        "a/",
        "./",
        "a_",
        "a-",
        "a:",
        "a=",
        "a,",
        ", ",
        "A1b2",
    ),
    *(
        "[a](",
        "![",
        "[[",
        "]]",
        "](",
        "<!--",
        "-->",
        "/*",
        "*/",
        "//",
        "```",
        "---\n",
        "- ",
        "\\n",
        "\\\\",
        "http://",
        "a@",
    ),
)
_CANDIDATES = "aAzZ019_ \n\t-./:,;=<>()[]{}'\"\\`*#@&|~^%$+?!éжд日\u0301\u200b\ufe0f\U0001f600\U000e0061\x00"
_OWN, _PREFIXES, _PAIRED = 40, 6, 14  # at most, so that a pattern of hundreds of parts takes no minutes
_ENDS = ("", "\x00", "\n!")
_GROUPS = frozenset({op.SUBPATTERN, op.ATOMIC_GROUP, op.ASSERT, op.ASSERT_NOT})
_LONG = 8  # a repetition of fewer at most is part of the text around it


class Shape(NamedTuple):
    """A text of any length: `begin`, then `first` again and again, then `then` as long, then `end`."""

    begin: str
    first: str
    then: str
    end: str

    def text(self, size: int) -> str:
        """The text of about this many characters."""
        half = size // 2 if self.then else size
        return "".join(
            (self.begin, self.first * (half // len(self.first)), self.then * (half // max(1, len(self.then))), self.end)
        )


def shapes(pattern: re.Pattern[Any]) -> Iterator[Shape]:
    """Shapes of texts for this pattern, each once."""
    seen: set[Shape] = set()
    for shape in _shapes(pattern):
        if shape.first and shape not in seen:
            seen.add(shape)
            yield shape


def _shapes(pattern: re.Pattern[Any]) -> Iterator[Shape]:
    parts = _Parts(pattern)
    own = [*dict.fromkeys((*parts.repeated, *parts.ways, *parts.literals, *parts.classes, *parts.whole))][:_OWN]
    begins = ["", *dict.fromkeys(one for one in (*parts.leads, *parts.ways) if one)][: 1 + _PREFIXES]
    for begin, piece, end in product(begins, own, _ENDS):
        yield Shape(begin, piece, "", end)
    for piece, end in product(GENERAL, _ENDS):
        yield Shape("", piece, "", end)
    for begin, piece in product(begins[1:], GENERAL):
        yield Shape(begin, piece, "", "\x00")
    paired = [*dict.fromkeys((*parts.literals, *parts.repeated, *parts.classes))][:_PAIRED]
    for begin, one, other in product(("", *begins[1:3]), paired, paired):
        if one != other:
            yield Shape(begin, one + other, "", "\x00")
            yield Shape(begin, one, other, "\x00")


class _Parts:
    """Hold the parts of a pattern, as texts.

    `leads` lead from its beginning to a repetition, `repeated` are matches of repetitions, `ways` a lead with what it
    leads to, `whole` texts that it matches, and these without their last character.
    """

    def __init__(self, pattern: re.Pattern[Any]) -> None:
        self._flags = pattern.flags & (re.IGNORECASE | re.ASCII)
        self.leads: list[str] = []
        self.repeated: list[str] = []
        self.ways: list[str] = []
        self.literals: list[str] = []
        self.classes: list[str] = []
        source = pattern.pattern.decode("latin-1") if isinstance(pattern.pattern, bytes) else pattern.pattern
        tree = _parser.parse(
            source, pattern.flags & ~re.UNICODE if isinstance(pattern.pattern, bytes) else pattern.flags
        )
        self._letters = "".join(dict.fromkeys(_CANDIDATES))
        for least in (1, 0):
            whole = self._walk(tree, "", least)
        self.whole = [one for one in (whole, whole[:-1], whole + " ", whole + "\n") if one]

    def _walk(self, tree: Any, lead: str, least: int) -> str:
        """Notes the parts of a sequence that `lead` leads to; a text that it matches, if nothing forbids it."""
        text, literal = "", ""
        for kind, value in tree:
            literal = literal + chr(value) if kind is op.LITERAL else self._noted(literal)
            text += self._sample(kind, value, lead + text, least)
        self._noted(literal)
        return text

    def _noted(self, literal: str) -> str:
        if literal:
            self.literals += [literal, *({literal[0], literal[-1]} if len(literal) > 1 else ())]
        return ""

    def _sample(self, kind: Any, value: Any, lead: str, least: int) -> str:
        if kind is op.LITERAL:
            return chr(value)
        if kind in {op.NOT_LITERAL, op.ANY, op.IN}:
            members = self._members(kind, value)
            self.classes += [one for one in members if one not in self.classes]
            return members[0]
        if kind in {op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT}:
            fewest, most, repeated = value
            return self._repetition(fewest, most, repeated, lead, least)
        if kind is op.BRANCH:
            branches = [self._walk(branch, lead, least) for branch in value[1]]
            return branches[0]
        inside = {op.SUBPATTERN: 3, op.ASSERT: 1, op.ASSERT_NOT: 1}.get(kind)
        text = self._walk(value if inside is None else value[inside], lead, least) if kind in _GROUPS else ""
        return "" if kind in {op.ASSERT, op.ASSERT_NOT} else text

    def _repetition(self, low: Any, high: Any, inner: Any, lead: str, least: int) -> str:
        once = self._walk(inner, lead, least)
        if high > _LONG and once:
            self.leads.append(lead)
            self.repeated += [once, *self._alternatives(inner)]
            self.ways.append(lead + once)
        return once * max(int(low), least if high else 0)

    def _alternatives(self, inner: Any) -> list[str]:
        """Other texts that a repetition takes: further characters of its class, each of its branches."""
        if len(inner) == 1 and inner[0][0] in {op.NOT_LITERAL, op.ANY, op.IN}:
            return self._members(*inner[0])
        if len(inner) == 1 and inner[0][0] is op.SUBPATTERN:
            return self._alternatives(inner[0][1][3])
        if len(inner) == 1 and inner[0][0] is op.BRANCH:
            return [self._walk(branch, "", 1) for branch in inner[0][1][1]]
        return []

    def _members(self, kind: Any, value: Any) -> list[str]:
        """Some characters of a class, of different kinds."""
        found = [one for one in self._letters if self._holds(kind, value, one)]
        kinds: dict[tuple[bool, bool, bool], str] = {}
        for one in found:
            kinds.setdefault((one.isalnum(), one.isspace(), one.isascii()), one)
        own = [chr(low) for low in _beginnings(value)] if kind is op.IN and value[0][0] is not op.NEGATE else []
        return [*dict.fromkeys((*kinds.values(), *own[:4]))] or ["a"]

    def _holds(self, kind: Any, value: Any, character: str) -> bool:
        code = ord(character)
        if kind is op.ANY:
            return character != "\n"
        if kind is op.NOT_LITERAL:
            return code != value
        negated, inside = False, False
        for what, one in value:
            if what is op.NEGATE:
                negated = True
            elif what is op.LITERAL:
                inside |= code == one or (bool(self._flags & re.IGNORECASE) and character.lower() == chr(one).lower())
            elif what is op.RANGE:
                inside |= one[0] <= code <= one[1]
            elif what is op.CATEGORY:
                inside |= bool(_category(str(one), self._flags & re.ASCII).match(character))
        return inside != negated


def _beginnings(members: Sequence[Any]) -> Iterator[int]:
    for what, one in members:
        if what is op.LITERAL:
            yield one
        elif what is op.RANGE:
            yield one[0]


@cache
def _category(name: str, flags: int) -> re.Pattern[str]:
    negated, _, kind = name.removeprefix("CATEGORY_").rpartition("_")
    letter = {"DIGIT": "d", "SPACE": "s", "WORD": "w"}[kind]
    return re.compile("\\" + (letter.upper() if negated else letter), flags)
