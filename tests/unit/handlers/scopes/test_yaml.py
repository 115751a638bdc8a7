"""The reader of exports reads what they are written in, agrees with PyYAML on all it takes, and refuses the rest."""

import re
from typing import Any

import pytest
import yaml as oracle
from hypothesis import given, settings
from hypothesis import strategies as st

from handlers.scopes.yaml import read
from kernel.text import yaml_block

HOSTILE = [
    "",
    " ",
    "\n",
    "a\n",
    "\n\na",
    "  x\n y",
    "- a\n- b",
    "# c",
    "a: b",
    "k:",
    "|",
    ">",
    "'",
    '"',
    "\\",
    "null",
    "~",
    "12",
    "1e3",
    "0x1f",
    "012",
    "1_000",
    "---",
    "...",
    "? x",
    "a #b",
    "x\n\n\n",
    "\t\n",
    "a\n \n",
    "😀",
    "\u2028",
    "\x85",
    "{}",
    "[]",
    "@",
    "`",
    "%",
    " lead",
    "trail ",
    "&a",
    "*a",
    "!t",
    "x" * 1200,
    "a\n\tb",
    "\r\n",
    "\ufeff",
    "<<",
    "=",
    "yes",
    "12:30:45",
    "2026-01-02",
    "\x00",
    "\x1b[31m",
    "a\r",
    "- ",
    "-",
    ": ",
    ":",
    "#",
    '"a": b',
]
LETTERS = st.characters(exclude_categories=["Cs"])
TEXT = st.one_of(
    st.text(alphabet=LETTERS, max_size=30), st.sampled_from(HOSTILE), st.lists(st.sampled_from(HOSTILE)).map("".join)
)


def values(text: st.SearchStrategy[str]) -> st.SearchStrategy[dict[str, Any]]:
    """What a document may hold: anything JSON can say, in an object."""
    numbers = st.one_of(st.integers(-(2**63), 2**64 - 1), st.floats(allow_nan=False, allow_infinity=False))
    leaves = st.one_of(st.none(), st.booleans(), numbers, text)
    inner = st.recursive(
        leaves, lambda part: st.one_of(st.lists(part, max_size=4), st.dictionaries(text, part, max_size=4))
    )
    return st.dictionaries(text, inner, max_size=5)


@settings(max_examples=200, deadline=None)
@given(values(TEXT))
def test_whatever_is_written_is_read_back(document: dict[str, Any]) -> None:
    assert read(yaml_block(document)) == document


# Words that are numbers or line ends in one version of YAML and not in the other are left out.
PLAIN = TEXT.filter(lambda text: not re.search(r"[0-9\x85\u2028\u2029]|^(?i:yes|no|on|off|y|n)$", text))


@settings(max_examples=200, deadline=None)
@given(values(PLAIN), st.sampled_from([None, True, False]), st.sampled_from([None, "'", '"', "|"]))
def test_what_is_read_of_others_is_what_they_wrote(document: dict[str, Any], flow: bool | None, style: Any) -> None:
    text = oracle.safe_dump(document, default_flow_style=flow, default_style=style, width=10**9, allow_unicode=True)
    try:
        found = read(text)
    except ValueError:
        return
    assert found == oracle.safe_load(text)


BY_HAND = """\
--- # an export of the original
# Agent Memory Export
version: "1.0"
metadata: {types: [tools, 'guide''lines'], scopeId: null, "deep": {a: [1, -2.5, true, ~]}}
entries:
  tools:
  - id: a   # the first
    name: "say \\"hi\\" \\u00e9\\x21"

    tags: []   # none
  -
    id: b: c
  guidelines:
      - |
        two

          lines
      - |2-
          lead
      - |+
        kept

      - - nested
        -
          - deeper
      - plain words, with commas
"""


def test_yaml_by_hand_is_read_as_pyyaml_reads_it() -> None:
    text = BY_HAND.replace("id: b: c", "id: b")

    assert read(text) == oracle.safe_load(text)
    assert read(text.replace("\n", "\r\n")) == oracle.safe_load(text)


@pytest.mark.parametrize("text", ["", "\n", "# only words\n", "---\n"])
def test_nothing_is_nothing(text: str) -> None:
    assert read(text) is None


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (BY_HAND, "line 12: a value that holds a colon and a space needs quotes"),
        ("a: b\n  c: d", "line 2: this is indented further than what it follows"),
        ("a: 1\na: 2", "line 2: a stands here twice"),
        ("a: 1\nb", "line 2: a key is missing"),
        ("a: 1\n- b", "line 2: a key is missing"),
        ("- a\nb: 1", "line 2: this does not belong here"),
        ("a: >\n  folded", "line 1: > has a meaning in YAML that is not read here: put the value into quotes"),
        ("a: &x 1", "line 1: & has a meaning"),
        ("a: *x", "line 1: * has a meaning"),
        ("a: !!python/object/apply:os.system [ls]", "line 1: ! has a meaning"),
        ("a: - b", "line 1: - has a meaning"),
        ("a: |x\n  b", "line 1: this block has a header nobody knows"),
        ('a: "b', "line 1: a quote is not closed"),
        ("a: 'b", "line 1: a quote is not closed"),
        ('a: "\\q"', "line 1: a backslash begins an escape nobody knows"),
        ('a: "\\ud800"', "line 1: a backslash begins an escape nobody knows"),
        ('a: "\\U00110000"', "line 1: a backslash begins an escape nobody knows"),
        ('a: "\\', "line 1: a backslash begins an escape nobody knows"),
        ('a: "b" c', "line 1: more follows a value that has ended"),
        ("a: [1, 2", "line 1: ] is missing"),
        ("a: [1 {}]", "line 1: ] is missing"),
        ("a: {b}", "line 1: a key within braces"),
        ("a: {1: 2}", "line 1: a key within braces"),
        ("\ta: 1", "line 1: a tab cannot indent"),
        ("? a\nb: 1", "line 2: a key marked with ? needs its value on the next line"),
        ("a: " + "[" * 99 + "]" * 99, "line 1: more than 96 levels"),
        ("- " * 99 + "a", "line 1: more than 96 levels"),
    ],
    ids=lambda value: ascii(value)[:40],
)
def test_what_is_not_read_is_refused_with_its_line(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(why)}"):
        read(text)


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="ab \n\t-:#|>?[]{},'\"\\&*!%@`~01.e+", max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    why = ""
    try:
        read(text)
    except ValueError as error:
        why = str(error)
    assert why == "" or re.match(r"line \d+: .", why)
