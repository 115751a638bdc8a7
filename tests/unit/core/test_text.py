"""Values in YAML read back as the same values, and no value can pose as another field or line."""

import math
import time
import unicodedata
from typing import Literal

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kernel.core.text import normalized, one_line, one_word, visible, words_of_json, yaml_block, yaml_flow

AWKWARD = (
    "",
    " ",
    "~",
    "-",
    "---",
    "...",
    "- a",
    "? a",
    ": a",
    "a: b",
    "a:",
    "a:b",
    "a #b",
    "a#b",
    "#a",
    "=",
    "<<",
    "&a",
    "*a",
    "!a",
    "|",
    ">",
    "%a",
    "@a",
    "`a`",
    "[a]",
    "{a: b}",
    "'a'",
    '"a"',
    "y",
    "N",
    "yes",
    "No",
    "ON",
    "off",
    "true",
    "FALSE",
    "null",
    "Null",
    "1",
    "-1",
    "0x1f",
    "0o17",
    "017",
    "1_000",
    "1.5",
    "1e3",
    ".5",
    ".inf",
    ".nan",
    "12:30:45",
    "2026-11-21",
    "2026-11-21T10:00:00.000Z",
    " a",
    "a ",
    "a\t",
    "\ta",
    "a\tb",
    "a\nb",
    "a\nb\n",
    "a\nb\n\n\n",
    "\n",
    "\n\n",
    "\na",
    "  a\nb",
    "\n   \n  a",
    "a\n   ",
    "a\n\tb",
    "\t\na",
    "# a\n# b",
    "a\r\nb",
    "a\rb",
    "a\x00b",
    "a\x85b",
    "a\u2028b",
    "\ufeffa",
    "a\ufeff\nb",
    "\U0001f469\u200d\U0001f680",
    "\u2764\ufe0f",
    "\u202eabc",
    "a\u200bb",
    "\u3000a",
    "\u00e9t\u00e9",
    "\U000e0041",
    "\ufffe",
    "\U0010ffff",
    "a\\b",
    "/a/b",
    "_a",
)
PIECES = st.sampled_from(["\n", "  ", " ", "\t", ": ", " #", "- ", "'", '"', "\\", "a", "status: ok", "---", "\r", "1"])
HIDDEN = ("Cc", "Cf", "Zl", "Zp", "Zs")
TEXTS = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"])),
    st.lists(PIECES | st.characters(exclude_categories=["Cs"])).map("".join),
    st.sampled_from(AWKWARD),
)
SCALARS = st.one_of(TEXTS, st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False))
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4), max_leaves=12
)


@pytest.mark.slow
@given(st.dictionaries(TEXTS, VALUES, max_size=6))
def test_any_mapping_round_trips_in_order(pairs: dict[str, object]) -> None:
    loaded = yaml.safe_load(yaml_block(pairs))

    assert loaded == pairs
    assert list(loaded) == list(pairs)


@pytest.mark.parametrize("text", AWKWARD)
def test_awkward_string_round_trips_as_value_key_and_item(text: str) -> None:
    pairs = {"value": text, text: "key", "items": [text, {text: text}], "last": "end"}

    assert yaml.safe_load(yaml_block(pairs)) == pairs


@pytest.mark.slow
@given(st.dictionaries(TEXTS, SCALARS.filter(lambda value: not (isinstance(value, str) and "\n" in value))))
def test_flat_mapping_has_one_line_per_key(pairs: dict[str, object]) -> None:
    assert len(yaml_block(pairs).splitlines()) == max(1, len(pairs))


@given(TEXTS)
def test_no_text_starts_a_line_at_the_margin(text: str) -> None:
    lines = yaml_block({"before": 1, "text": text, "after": 2}).split("\n")

    assert [line.split(":")[0] for line in lines if line[:1] not in ("", " ")] == ["before", "text", "after"]


@pytest.mark.parametrize(
    "text",
    [
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",  # Persian: I want
        "\u0915\u094d\u200d\u0937",  # Devanagari
        "\U0001f469\u200d\U0001f469\u200d\U0001f467 and \u2764\ufe0f\u200d\U0001f525",  # a family, a heart on fire
    ],
)
def test_joiners_of_words_and_emoji_are_shown_as_they_are(text: str) -> None:
    assert visible(text) == text


def test_joiners_elsewhere_are_shown_by_their_number() -> None:
    assert visible("pass\u200dword \u200c\U0001f469") == "pass\u27e8U+200D\u27e9word \u27e8U+200C\u27e9\U0001f469"


@pytest.mark.slow
def test_every_invisible_character_is_escaped() -> None:
    hidden = [chr(point) for point in range(0x110000) if unicodedata.category(chr(point)) in HIDDEN]
    left = set(hidden) & set(yaml_block({"text": "".join(hidden)}).rstrip("\n"))

    # These are formats or spaces by category, yet they are seen: signs that enclose a number, frames of hieroglyphs.
    assert {unicodedata.name(c).split()[0] for c in left} == {
        "ARABIC",
        "EGYPTIAN",
        "IDEOGRAPHIC",
        "KAITHI",
        "SPACE",
        "SYRIAC",
    }
    assert "\u061c" not in left


def test_error_is_the_three_plain_lines_of_the_contract() -> None:
    error = {
        "status": "error",
        "error_code": "MEMORY_ALREADY_EXISTS",
        "message": 'Path "project/todo" already exists, please use replace_memory to update',
    }

    assert yaml_block(error) == (
        "status: error\n"
        "error_code: MEMORY_ALREADY_EXISTS\n"
        'message: Path "project/todo" already exists, please use replace_memory to update\n'
    )


def test_message_that_is_no_plain_scalar_is_quoted() -> None:
    messages = {"a": 'Bad path: "x"', "b": '"x" is bad', "c": "2026-11-21T10:00:00.000Z", "d": "\u202ex\nstatus: ok"}

    assert yaml_block(messages) == (
        'a: "Bad path: \\"x\\""\nb: "\\"x\\" is bad"\nc: "2026-11-21T10:00:00.000Z"\nd: "\\u202ex\\nstatus: ok"\n'
    )


def test_multiline_text_is_a_literal_block_and_nested_items_start_on_their_dash() -> None:
    pairs = [("text", "a: 1\n\n  b"), ("list", [{"a": 1, "b": [[2], []]}, "x\n"]), ("map", {"k": {}, "v": None})]

    assert yaml_block(pairs) == (
        "text: |-\n  a: 1\n\n    b\n"
        "list:\n  - a: 1\n    b:\n      - - 2\n      - []\n  - |\n    x\n"
        "map:\n  k: {}\n  v: null\n"
    )


def test_constants_use_the_form_common_to_yaml_1_1_and_1_2() -> None:
    pairs = {"i": -7, "f": 1e16, "g": 1e-7, "h": math.inf, "j": -math.inf, "k": math.nan, "t": True, "v": None}

    assert yaml_block(pairs) == ("i: -7\nf: 1.0e+16\ng: 1.0e-07\nh: .inf\nj: -.inf\nk: .nan\nt: true\nv: null\n")


def test_empty_mapping_is_a_mapping() -> None:
    assert yaml_block({}) == "{}\n"


def test_lone_surrogate_becomes_a_replacement_character() -> None:
    pairs = {"plain": "a\ud800b", "quoted": "\udfff", "block": "a\n\ud800"}

    assert yaml_block(pairs) == 'plain: "a\ufffdb"\nquoted: "\ufffd"\nblock: |-\n  a\n  \ufffd\n'


def test_key_too_long_for_one_line_is_marked_explicit() -> None:
    pairs = {"k" * 2000: {"\x00" * 900: "v"}, "items": [{"k" * 2000: 1}]}

    assert yaml.safe_load(yaml_block(pairs)) == pairs


def test_value_without_a_yaml_form_is_refused() -> None:
    with pytest.raises(TypeError, match="YAML has no plain form for bytes"):
        yaml_block({"a": b"b"})


@given(TEXTS, st.integers(0, 30))
def test_summary_is_one_line_within_its_limit(text: str, limit: int) -> None:
    line = one_line(text, limit)

    assert len(line) <= limit
    assert line == " ".join(line.split())
    assert not any(unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") for c in line)


@given(st.lists(st.text("abc", min_size=1, max_size=5), min_size=1), st.integers(11, 40))
def test_summary_ends_after_a_whole_word(words: list[str], limit: int) -> None:
    line = one_line("\n".join(words), limit)

    if len(" ".join(words)) <= limit:
        assert line == " ".join(words)
    else:
        assert line.endswith("…")
        kept = line[:-1].split(" ")
        assert kept == words[: len(kept)]


@pytest.mark.parametrize(
    ("text", "limit", "line"),
    [
        ("", 10, ""),
        (" a\x00\n\tb ", 10, "a b"),
        ("one two three", 13, "one two three"),
        ("one two three", 12, "one two…"),
        ("one two three", 8, "one two…"),
        ("one two three", 7, "one…"),
        ("a incomprehensibilities", 12, "a incompreh…"),
        ("\u65e5\u672c\u8a9e\u306e\u6587", 4, "\u65e5\u672c\u8a9e…"),
        ("safe\u202e\u200btext\ud800", 20, "safetext\ufffd"),
        ("a \u200b b", 20, "a b"),
        ("word", 1, "…"),
        ("word", 0, ""),
    ],
)
def test_summary_is_cut_between_words(text: str, limit: int, line: str) -> None:
    assert one_line(text, limit) == line


@pytest.mark.slow
@given(st.lists(st.text(max_size=12) | st.sampled_from(["a, b", "[x]", "{y}", "null", "", "a: b", "#c", "it's", "2"])))
def test_any_list_of_texts_round_trips_on_one_line(items: list[str]) -> None:
    line = yaml_flow(items)

    assert len(line.splitlines()) == 1
    assert yaml.safe_load(f"key: {line}") == {"key": items}


def test_plain_words_of_a_list_are_not_quoted() -> None:
    assert yaml_flow(["database", "infra structure", "a,b", "on"]) == '[database, infra structure, "a,b", "on"]'


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("quipu_1/claude-code", "quipu_1/claude-code"),
        ("日本語", "日本語"),
        ("", '""'),
        ("x outcome=ok", '"x outcome=ok"'),
        ("a  done  b", '"a  done  b"'),
        ('a"b', '"a\\"b"'),
        ("a,b", '"a,b"'),
        ("a\nb\x1b[1m\u202e", '"a\\nb\\x1b[1m\\u202e"'),
        ("a\\nb", '"a\\\\nb"'),
        ("\ud800", '"\ufffd"'),
    ],
)
def test_no_text_passes_for_more_than_one_word(text: str, word: str) -> None:
    assert one_word(text) == word


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"a":["b c"]}', '{"a":["b c"]}'),
        (r'{"a":"one\ntwo\t\"three\" \\four"}', '{"a":"one two  three   four"}'),
        (r'["\u00e9t\u00e9\u0007"]', '["été "]'),
        (r'["\ud800", "one\ntwo', '[" ", "one two'),
    ],
)
def test_words_of_json_have_no_escapes(text: str, words: str) -> None:
    assert words_of_json(text) == words


@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC", "NFKD"])
@given(st.text("aé e\u0301ñ한\u1112\u1161漢\u0315\u0316\u0f73Ⅳ\uff9eカ\n—😀", max_size=60))
def test_normal_forms_are_those_of_unicode(form: Literal["NFC", "NFD", "NFKC", "NFKD"], text: str) -> None:
    assert normalized(form, text) == unicodedata.normalize(form, text)


@pytest.mark.parametrize(
    "marks", ["\u0315" * 200_000 + "\u0316" * 200_000, "\u0f73" * 200_000, "\uff9e\u0316" * 200_000]
)
def test_marks_in_a_row_take_time_in_proportion_to_them(marks: str) -> None:
    start = time.process_time()  # more than a minute when all of them are sorted
    assert len(normalized("NFKD", f"a{marks}b")) >= len(marks)
    assert time.process_time() - start < 5
