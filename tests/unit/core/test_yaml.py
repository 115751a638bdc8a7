"""YAML exports are read back unchanged, by libyaml and by PyYAML's own parser; anything else is refused by line."""

import re
from typing import Any

import pytest
import yaml as oracle
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kernel.core.text import yaml_block
from kernel.core.yaml import read

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
LOADERS = ["CSafeLoader", "SafeLoader"]
LETTERS = st.characters(exclude_categories=["Cs"])
TEXT = st.one_of(
    st.text(alphabet=LETTERS, max_size=30), st.sampled_from(HOSTILE), st.lists(st.sampled_from(HOSTILE)).map("".join)
)


def values(text: st.SearchStrategy[str]) -> st.SearchStrategy[dict[str, Any]]:
    """JSON objects of any values."""
    numbers = st.one_of(st.integers(-(2**63), 2**64 - 1), st.floats(allow_nan=False, allow_infinity=False))
    leaves = st.one_of(st.none(), st.booleans(), numbers, text)
    inner = st.recursive(
        leaves, lambda part: st.one_of(st.lists(part, max_size=4), st.dictionaries(text, part, max_size=4))
    )
    return st.dictionaries(text, inner, max_size=5)


@pytest.fixture(params=LOADERS)
def loader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both parsers in turn; without libyaml `CSafeLoader` does not exist."""
    if request.param == "SafeLoader":
        monkeypatch.delattr(oracle, "CSafeLoader")
    return request.param


@pytest.mark.slow
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(values(TEXT))
def test_written_documents_are_read_back(loader: str, document: dict[str, Any]) -> None:
    assert read(yaml_block(document)) == document


# Words that are numbers or constants in YAML 1.1 and text in JSON are left out.
PLAIN = TEXT.filter(lambda text: not re.search(r"[0-9]|^(?i:yes|no|on|off|y|n)$", text))


@pytest.mark.slow
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(values(PLAIN), st.sampled_from([None, True, False]), st.sampled_from([None, "'", '"', "|"]))
def test_documents_of_other_writers_are_read_as_pyyaml_reads_them(
    loader: str, document: dict[str, Any], flow: bool | None, style: Any
) -> None:
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
      - >
        folded
        into one line
      - plain words that go on
        in the next line
"""


@pytest.mark.usefixtures("loader")
def test_handwritten_documents_are_read_as_pyyaml_reads_them() -> None:
    text = BY_HAND.replace("id: b: c", "id: b")

    assert read(text) == oracle.safe_load(text)
    assert read(text.replace("\n", "\r\n")) == oracle.safe_load(text)


@pytest.mark.usefixtures("loader")
@pytest.mark.parametrize("text", ["", "\n", "# only words\n", "---\n"])
def test_an_empty_document_is_none(text: str) -> None:
    assert read(text) is None


@pytest.mark.usefixtures("loader")
def test_plain_scalars_are_resolved_as_json_values() -> None:
    text = "[yes, Null, 012, 0x1f, 1_000, 12:30, 2026-01-02, .nan, +1, 1e3, null, ~, true]"
    words = ["yes", "Null", "012", "0x1f", "1_000", "12:30", "2026-01-02", ".nan"]

    assert read(text) == [*words, 1, 1000.0, None, None, True]
    assert read("{1: a, null: b, <<: c}") == {"1": "a", "null": "b", "<<": "c"}
    assert read("9" * 1001) == "9" * 1001
    assert read("1e999") == "1e999"


@pytest.mark.usefixtures("loader")
@pytest.mark.parametrize(
    ("text", "why"),
    [
        (BY_HAND, "line 12: mapping values are not allowed"),
        ("a: b\n  c: d", "line 2: mapping values are not allowed"),
        ("a: 1\na: 2", "line 2: duplicate key a"),
        ("{a: 1, a: 2}", "line 1: duplicate key a"),
        ("a: 1\nb", "line "),  # at the end of the text: libyaml names the line after it
        ("a: 1\n- b", "line 2: "),
        ("- a\nb: 1", "line 2: "),
        ("a: &x 1", "line 1: anchors and aliases (& and *) are not read"),
        ("&x a: 1", "line 1: anchors and aliases (& and *) are not read"),
        ("a: *x", "line 1: anchors and aliases (& and *) are not read"),
        ("b: 1\na: &x [1]\nc: *x", "line 2: anchors and aliases (& and *) are not read"),
        ("a: !!python/object/apply:os.system [ls]", "line 1: tags (!) are not read"),
        ("a: !!str 1", "line 1: tags (!) are not read"),
        ("!t a: 1", "line 1: tags (!) are not read"),
        ("a: - b", "line 1: "),
        ("a: |x\n  b", "line 1: "),
        ('a: "b', "line 1: found unexpected end of stream"),
        ("a: 'b", "line 1: found unexpected end of stream"),
        ('a: "\\q"', "line 1: found unknown escape character"),
        ('a: "\\ud800"', "line 1: "),
        ('"\\ud800": a', "line 1: "),
        ('a: "\\U00110000"', "line 1: "),
        ('a: "\\Uffffffff"', "line 1: "),
        ('a: "\\', "line 1: "),
        ('a: "b" c', "line 1: "),
        ("a: [1, 2", "line "),
        ("a: [1, 2}", "line 1: "),
        ("a: [1 {}]", "line 1: "),
        ("\ta: 1", "line 1: found character"),
        ("? [a]\n: 1", "line 1: a key must be a string"),
        ("a: 1\n---\nb: 1", "line 2: a second document begins"),
        ("a: 1\nb: \x1b[31m", "line 2: the character U+001B must be escaped"),
        ("a: " + "[" * 99 + "]" * 99, "line 1: more than 96 levels"),
        ("- " * 99 + "a", "line 1: more than 96 levels"),
    ],
    ids=lambda value: ascii(value)[:40],
)
def test_other_documents_are_refused_by_line(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(why)}"):
        read(text)


@pytest.mark.usefixtures("loader")
def test_a_document_of_too_many_values_is_refused() -> None:
    text = "a: [1, 2]\nb:\n- 3\n"

    assert read(text, max_nodes=8) == {"a": [1, 2], "b": [3]}
    with pytest.raises(ValueError, match=r"^line 3: more than 7 values$"):
        read(text, max_nodes=7)


@pytest.mark.usefixtures("loader")
def test_billion_laughs_is_refused_at_the_first_anchor() -> None:
    levels = [f"l{level}: &l{level} [{', '.join([f'*l{level - 1}'] * 9)}]" for level in range(1, 10)]

    with pytest.raises(ValueError, match=r"^line 1: anchors and aliases"):
        read("\n".join(["l0: &l0 lol", *levels]))


@settings(deadline=None)
@given(st.text(alphabet="ab \n\t-:#|>?[]{},'\"\\&*!%@`~01.e+", max_size=60))
def test_any_text_is_read_or_refused_and_both_parsers_agree(text: str) -> None:
    values: list[Any] = []
    refusals: list[str] = []
    for loader in LOADERS:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(oracle, "CSafeLoader", getattr(oracle, loader))
            try:
                values.append(read(text))
            except ValueError as error:
                refusals.append(str(error))
    assert all(re.match(r"line \d+: .", refusal) for refusal in refusals)
    assert values[1:] in ([], values[:1])
