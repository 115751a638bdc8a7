"""JSON, JSONC and TOML files: a value is set or removed, and the rest stays byte for byte."""

import json
import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel.cli.config_files import read_json, read_toml, remove_json, remove_toml, set_json, set_toml, with_value
from kernel.core.errors import Fault

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
    assert read_json(COMMENTED) == {"theme": "One", "mcpServers": servers}


def test_value_is_set_between_comments_and_commas() -> None:
    changed = set_json(COMMENTED, ("mcpServers", "quipu"), {"url": "u"})
    assert changed == COMMENTED.replace(
        '["//", "/*"],},\n',
        '["//", "/*"],},\n        "quipu": {\n            "url": "u"\n        },\n',
    )
    assert set_json(changed, ("mcpServers", "quipu"), {"url": "u"}) == changed
    replaced = set_json(changed, ("mcpServers", "quipu"), {"url": "v"})
    assert replaced == changed.replace('"u"', '"v"')


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", '{\n  "a": {\n    "b": 1\n  }\n}\n'),
        ("// nothing yet", '// nothing yet\n{\n  "a": {\n    "b": 1\n  }\n}\n'),
        ("{}", '{\n  "a": {\n    "b": 1\n  }\n}'),
        ("{ // nothing\n}", '{ // nothing\n  "a": {\n    "b": 1\n  }\n}'),
        ('{"x":1}', '{"x":1, "a": {"b": 1}}'),
        ('{"x": 1, "a": null}', '{"x": 1, "a": {\n    "b": 1\n  }}'),  # as some programs write none
        ('{\n\t"a": null // none\n}\n', '{\n\t"a": {\n\t\t"b": 1\n\t} // none\n}\n'),
        ('{"a": {"b": null}}', '{"a": {"b": 1}}'),
        ('{"a": {}}', '{"a": {\n    "b": 1\n  }}'),
        ('{\n\t"x": 1 // one\n}\n', '{\n\t"x": 1, // one\n\t"a": {\n\t\t"b": 1\n\t}\n}\n'),
        ('{\r\n  "x": 1\r\n}\r\n', '{\r\n  "x": 1,\r\n  "a": {\r\n    "b": 1\r\n  }\r\n}\r\n'),
        ('\ufeff{"a": {"b": 2}}', '\ufeff{"a": {"b": 1}}'),
        ('{\n    "a": {\n        "b": [2]\n    }\n}', '{\n    "a": {\n        "b": 1\n    }\n}'),
        ('{\n  "x": 1}', '{\n  "x": 1,\n  "a": {\n    "b": 1\n  }\n}'),
    ],
)
def test_document_keeps_its_formatting(before: str, after: str) -> None:
    assert set_json(before, ("a", "b"), 1) == after


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1', "invalid JSON at line 1, column 8"),
        ('{\n  "a": nope\n}', "invalid JSON at line 2, column 8"),
        ("{} {}", "invalid JSON at line 1, column 4"),
        ("{'a': 1}", "invalid JSON at line 1, column 2"),
        ("{,}", "invalid JSON at line 1, column 2"),
        ('{"a": "\n"}', "invalid JSON at line 1, column 7"),
        ('{"a": "\\x"}', "invalid JSON at line 1, column 7"),
        ("[" * 200, "invalid JSON at line 1, column 102"),
        ("{/* never closed", "invalid JSON at line 1, column 2"),
        ("[1]", "the document is not an object"),
        ('{"a": []}', "a is not an object"),
        ('{"a": {}, "a": {}}', "a is a duplicate key"),
        ('{"a": {"b": 1, "b": 2}}', "a.b is a duplicate key"),
    ],
)
def test_unsafe_json_edit_is_refused_with_its_position(text: str, message: str) -> None:
    with pytest.raises(Fault) as caught:
        set_json(text, ("a", "b"), 1)
    assert caught.value.message == message


NAMES = st.sampled_from(["a", "b", "c d", '"', "é", "//"]) | st.text(max_size=3)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)
BLANKS = st.sampled_from(["", " ", "\n", "\n    ", "\t", "/* , } */", " // ] \n", "\r\n"])


@st.composite
def documents(draw: st.DrawFn) -> str:
    """A document with random formatting."""

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


@pytest.mark.slow
@given(documents(), st.lists(NAMES, min_size=1, max_size=3), VALUES)
def test_setting_a_value_changes_only_that_value(text: str, keys: list[str], value: Any) -> None:
    before = read_json(text)
    try:
        wanted = with_value(before, keys, value)
    except Fault:
        with pytest.raises(Fault):
            set_json(text, keys, value)
        return
    changed = set_json(text, keys, value)
    assert read_json(changed) == wanted
    assert set_json(changed, keys, value) == changed


@given(st.text(alphabet='{}[]":,/*\\ \n1ae\u2028é', max_size=30))
def test_arbitrary_text_raises_only_invalid_faults(text: str) -> None:
    try:
        changed = set_json(text, ("a",), 1)
    except Fault as fault:
        changed = fault.code
    assert changed == "invalid" or read_json(changed)["a"] == 1


PATH = ("mcp_servers", "quipu")
CODEX = """# mine
model = "o5" # the good one

[mcp_servers.other]
command = "x"
args = [
  "[mcp_servers.quipu]",
]

[mcp_servers . "quipu"] # ours
command = "old"
# a remark
[mcp_servers.quipu.env]
A = "1"

[[profiles]]
name = "[not a table]"
"""


def test_existing_table_is_replaced_in_place() -> None:
    changed = set_toml(CODEX, PATH, {"url": "http://127.0.0.1:7847/mcp", "http_headers": {"Authorization": "Bearer k"}})
    assert changed == CODEX.replace(
        'command = "old"\n# a remark\n[mcp_servers.quipu.env]\nA = "1"\n',
        '# a remark\nurl = "http://127.0.0.1:7847/mcp"\nhttp_headers = {Authorization = "Bearer k"}\n',
    )
    assert set_toml(changed, PATH, read_toml(changed)["mcp_servers"]["quipu"]) == changed


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", '[mcp_servers.quipu]\nurl = "u"\n'),
        ("a = 1", 'a = 1\n\n[mcp_servers.quipu]\nurl = "u"\n'),
        ("a = 1\r\n", 'a = 1\r\n\r\n[mcp_servers.quipu]\r\nurl = "u"\r\n'),
        ("[mcp_servers]\n", '[mcp_servers]\n\n[mcp_servers.quipu]\nurl = "u"\n'),
        (
            "[mcp_servers.a]\n[b]\n[mcp_servers.c]\n",
            '[mcp_servers.a]\n[b]\n[mcp_servers.c]\n\n[mcp_servers.quipu]\nurl = "u"\n',
        ),
        ('t = """\n[mcp_servers.quipu]\n"""', 't = """\n[mcp_servers.quipu]\n"""\n\n[mcp_servers.quipu]\nurl = "u"\n'),
    ],
)
def test_new_table_is_appended_to_the_file(before: str, after: str) -> None:
    assert set_toml(before, PATH, {"url": "u"}) == after


def test_every_value_type_round_trips_through_toml() -> None:
    table = {"a b": True, "n": 1, "x": 1.5, "t": 'é"\\\n\x7f', "l": ["a", 2], "d": {"e": {}, "f": {"g.h": "i"}}}
    assert tomllib.loads(set_toml("", ("t",), table)) == {"t": table}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('mcp_servers = { quipu = { url = "v" } } # c', 'mcp_servers = { quipu = { url = "u" } } # c'),
        ("mcp_servers = {}\n", 'mcp_servers = {quipu = {url = "u"}}\n'),
        ('mcp_servers.quipu.url = "v"\n', 'mcp_servers.quipu.url = "u"\n'),
        ('[mcp_servers]\nquipu = { url = "v" } # c\n', '[mcp_servers]\nquipu = { url = "u" } # c\n'),
        ("[[mcp_servers.quipu]]\nurl = 'v'", '[mcp_servers.quipu]\nurl = "u"\n'),
        ("[mcp_servers.quipu]\nurl='v' # c\nx=1\n", '[mcp_servers.quipu]\nurl="u" # c\n'),
    ],
)
def test_existing_table_keeps_its_notation(before: str, after: str) -> None:
    assert set_toml(before, PATH, {"url": "u"}) == after


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_comments_before_the_next_table_stay_there(newline: str) -> None:
    before = '[mcp_servers.quipu]\nx = 1\n[mcp_servers.quipu.env]\nA = "1"\n\n# about b\n[b]\n'.replace("\n", newline)
    after = '[mcp_servers.quipu]\nurl = "u"\n\n# about b\n[b]\n'.replace("\n", newline)
    assert set_toml(before, PATH, {"url": "u"}) == after
    assert set_toml(after, PATH, {"url": "u", "n": 1}) == after.replace(newline * 2, f"{newline}n = 1{newline * 2}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = ", "invalid TOML: Invalid value (at end of document)"),
        ("mcp_servers = 1", "mcp_servers is not an object"),
        (
            "[mcp_servers.quipu]\nx = 1\n# about b\n[b]\n[mcp_servers.quipu.env]\nA = 1\n",
            "mcp_servers.quipu cannot be set without changing other parts of the file",
        ),
    ],
)
def test_unsafe_toml_edit_is_refused(text: str, message: str) -> None:
    with pytest.raises(Fault) as caught:
        set_toml(text, PATH, {"url": "u"})
    assert caught.value.message == message


def test_dates_are_written_back() -> None:
    assert set_toml("", ("t",), read_toml("d = 2026-01-01")) == "[t]\nd = 2026-01-01\n"


TOML_KEYS = st.sampled_from(["a", "mcp_servers", "quipu", "b.c", "d e", '"']) | st.text(
    st.characters(blacklist_categories=("Cs", "Cc")), max_size=3
)
TOML_VALUES = st.recursive(
    st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(st.characters(blacklist_categories=("Cs",)), max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TOML_KEYS, inner, max_size=2),
    max_leaves=6,
)
TABLES = st.dictionaries(TOML_KEYS, TOML_VALUES, max_size=3)


@pytest.mark.slow
@given(st.lists(st.tuples(st.lists(TOML_KEYS, min_size=1, max_size=3), TABLES), max_size=4), TABLES)
def test_setting_a_table_changes_only_that_table(others: list[tuple[list[str], dict[str, Any]]], table: Any) -> None:
    text = "# first\n"
    for keys, other in others:
        try:
            text = set_toml(text, keys, other)
        except Fault:
            continue
    try:
        changed = set_toml(text, PATH, table)
    except Fault:
        return
    assert read_toml(changed) == with_value(read_toml(text), PATH, table)
    assert set_toml(changed, PATH, table) == changed
    assert changed.startswith("# first\n")


KEYS = ("servers", "quipu")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", ""),
        ('{"servers": {}}', '{"servers": {}}'),
        ('{"servers": {"quipu": {"a": 1}}}', '{"servers": {}}'),
        ('{"servers": {"quipu": 1, "other": 2}}', '{"servers": { "other": 2}}'),
        ('{"servers": {"other": 2, "quipu": 1}}', '{"servers": {"other": 2}}'),
        (
            '{\n  "servers": {\n    "other": 2,\n    "quipu": {\n      "a": 1\n    }\n  }\n}\n',
            '{\n  "servers": {\n    "other": 2\n  }\n}\n',
        ),
        (
            '{\n  "servers": {\n    "quipu": 1,\n    // theirs\n    "other": 2\n  }\n}\n',
            '{\n  "servers": {\n    // theirs\n    "other": 2\n  }\n}\n',
        ),
        (
            '{\r\n  "servers": {\r\n    "other": 2, // two\r\n    "quipu": 1,\r\n  },\r\n}\r\n',
            '{\r\n  "servers": {\r\n    "other": 2, // two\r\n  },\r\n}\r\n',
        ),
    ],
)
def test_a_member_goes_with_its_line_and_comma(before: str, after: str) -> None:
    assert remove_json(before, KEYS) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", ""),
        ('[servers.other]\na = "x" # theirs\n', '[servers.other]\na = "x" # theirs\n'),
        (
            'b = 1\n\n[servers.other]\na = "x"\n\n[servers.quipu]\nurl = "u"\n\n[servers.quipu.env]\nA = "1"\n',
            'b = 1\n\n[servers.other]\na = "x"\n\n',
        ),
        (
            '[servers.quipu]\nurl = "u"\n# mine\n\n# theirs\n[servers.other]\na = "x"\n',
            '# mine\n\n# theirs\n[servers.other]\na = "x"\n',
        ),
        ('servers.quipu = {url = "u"}\nservers.other = 1\n', "servers.other = 1\n"),
        ('[servers]\nquipu = {url = "u"} # ours\nother = 1 # theirs\n', "[servers]\nother = 1 # theirs\n"),
    ],
)
def test_a_table_goes_with_those_below_it_and_comments_of_others_stay(before: str, after: str) -> None:
    assert remove_toml(before, KEYS) == after


def test_a_duplicate_key_is_not_removed() -> None:
    with pytest.raises(Fault, match=r"servers\.quipu cannot be set"):
        remove_json('{"servers": {"quipu": 1, "quipu": 2}}', KEYS)


OTHER_NAMES = st.text('abc "\\é', max_size=3).filter(lambda name: name != "quipu")
OTHER_VALUES = st.recursive(
    st.integers() | st.text(max_size=3), lambda inner: st.dictionaries(OTHER_NAMES, inner, max_size=3)
)


@pytest.mark.slow
@given(
    st.dictionaries(OTHER_NAMES, OTHER_VALUES, max_size=4),
    st.sampled_from(["", "{}", '{"servers": {},}', "// a\n{\n}\n"]),
)
def test_removing_what_was_set_leaves_the_other_values(others: dict[str, object], start: str) -> None:
    text = start
    for name, value in others.items():
        text = set_json(text, ("servers", name), value)
    with_entry = set_json(text, KEYS, {"url": "u"})
    assert read_json(remove_json(with_entry, KEYS)) == {"servers": others}
