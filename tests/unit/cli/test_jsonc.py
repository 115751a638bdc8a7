"""JSON with comments: what is read, and what stays as it is when one value is set."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel.cli.jsonc import placed, put, read
from kernel.errors import Fault

COMMENTED = """// settings of the editor
{
    "theme": "One", // "mcpServers": {}
    /* servers
       of others */
    "mcpServers": {
        "other": {"command": "x", "args": ["//", "/*"],},
    },
}
"""


def test_comments_and_trailing_commas_are_read() -> None:
    servers = {"other": {"command": "x", "args": ["//", "/*"]}}
    assert read(COMMENTED) == {"theme": "One", "mcpServers": servers}


def test_a_value_is_set_among_comments_and_commas() -> None:
    changed = put(COMMENTED, ("mcpServers", "quipu"), {"url": "u"})
    assert changed == COMMENTED.replace(
        '["//", "/*"],},\n',
        '["//", "/*"],},\n        "quipu": {\n            "url": "u"\n        },\n',
    )
    assert put(changed, ("mcpServers", "quipu"), {"url": "u"}) == changed
    replaced = put(changed, ("mcpServers", "quipu"), {"url": "v"})
    assert replaced == changed.replace('"u"', '"v"')


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", '{\n  "a": {\n    "b": 1\n  }\n}\n'),
        ("// nothing yet", '// nothing yet\n{\n  "a": {\n    "b": 1\n  }\n}\n'),
        ("{}", '{\n  "a": {\n    "b": 1\n  }\n}'),
        ("{ // nothing\n}", '{ // nothing\n  "a": {\n    "b": 1\n  }\n}'),
        ('{"x":1}', '{"x":1, "a": {"b": 1}}'),
        ('{"a": {}}', '{"a": {\n    "b": 1\n  }}'),
        ('{\n\t"x": 1 // one\n}\n', '{\n\t"x": 1, // one\n\t"a": {\n\t\t"b": 1\n\t}\n}\n'),
        ('{\r\n  "x": 1\r\n}\r\n', '{\r\n  "x": 1,\r\n  "a": {\r\n    "b": 1\r\n  }\r\n}\r\n'),
        ('\ufeff{"a": {"b": 2}}', '\ufeff{"a": {"b": 1}}'),
        ('{\n    "a": {\n        "b": [2]\n    }\n}', '{\n    "a": {\n        "b": 1\n    }\n}'),
        ('{\n  "x": 1}', '{\n  "x": 1,\n  "a": {\n    "b": 1\n  }\n}'),
    ],
)
def test_a_document_keeps_its_manner_of_writing(before: str, after: str) -> None:
    assert put(before, ("a", "b"), 1) == after


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"a": 1', "no JSON from line 1, column 8 on"),
        ('{\n  "a": nope\n}', "no JSON from line 2, column 8 on"),
        ("{} {}", "no JSON from line 1, column 4 on"),
        ("{'a': 1}", "no JSON from line 1, column 2 on"),
        ("{,}", "no JSON from line 1, column 2 on"),
        ('{"a": "\n"}', "no JSON from line 1, column 7 on"),
        ('{"a": "\\x"}', "no JSON from line 1, column 7 on"),
        ("[" * 200, "no JSON from line 1, column 102 on"),
        ("{/* never closed", "no JSON from line 1, column 2 on"),
        ("[1]", "the document holds something else than names"),
        ('{"a": []}', "a holds something else than names"),
        ('{"a": {}, "a": {}}', "a stands there twice"),
        ('{"a": {"b": 1, "b": 2}}', "a.b stands there twice"),
    ],
)
def test_what_cannot_be_changed_safely_is_refused_with_its_place(text: str, told: str) -> None:
    with pytest.raises(Fault) as caught:
        put(text, ("a", "b"), 1)
    assert caught.value.message == told


NAMES = st.sampled_from(["a", "b", "c d", '"', "é", "//"]) | st.text(max_size=3)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)
BLANKS = st.sampled_from(["", " ", "\n", "\n    ", "\t", "/* , } */", " // ] \n", "\r\n"])


@st.composite
def documents(draw: st.DrawFn) -> str:
    """A document in somebody's manner of writing."""

    def written(value: Any) -> str:
        gap = draw(BLANKS)
        if isinstance(value, dict) or (isinstance(value, list) and value):
            brackets = "{}" if isinstance(value, dict) else "[]"
            items = (
                [
                    f"{draw(BLANKS)}{json.dumps(key)}{draw(BLANKS)}:{written(inner)}{draw(BLANKS)}"
                    for key, inner in value.items()
                ]
                if isinstance(value, dict)
                else [f"{written(inner)}{draw(BLANKS)}" for inner in value]
            )
            comma = "," if items and draw(st.booleans()) else ""
            return f"{gap}{brackets[0]}{','.join(items)}{comma}{draw(BLANKS)}{brackets[1]}"
        return gap + json.dumps(value, ensure_ascii=draw(st.booleans()))

    return written(draw(st.dictionaries(NAMES, VALUES, max_size=4))) + draw(BLANKS)


@given(documents(), st.lists(NAMES, min_size=1, max_size=3), VALUES)
def test_setting_a_value_changes_that_value_alone(text: str, keys: list[str], value: Any) -> None:
    before = read(text)
    try:
        wanted = placed(before, keys, value)
    except Fault:
        with pytest.raises(Fault):
            put(text, keys, value)
        return
    changed = put(text, keys, value)
    assert read(changed) == wanted
    assert put(changed, keys, value) == changed


@given(st.text(alphabet='{}[]":,/*\\ \n1ae\u2028é', max_size=30))
def test_no_text_is_a_surprise(text: str) -> None:
    try:
        changed = put(text, ("a",), 1)
    except Fault as fault:
        changed = fault.code
    assert changed == "invalid" or read(changed)["a"] == 1
