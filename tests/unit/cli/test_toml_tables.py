"""TOML of other programs: what is read, and what stays as it is when one table is set."""

import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel.cli.jsonc import placed
from kernel.cli.toml_tables import put, read
from kernel.errors import Fault

KEYS = ("mcp_servers", "quipu")
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


def test_a_table_takes_the_place_of_the_one_before_it() -> None:
    changed = put(CODEX, KEYS, {"url": "http://127.0.0.1:7847/mcp", "http_headers": {"Authorization": "Bearer k"}})
    assert changed == CODEX.replace(
        '[mcp_servers . "quipu"] # ours\ncommand = "old"\n# a remark\n[mcp_servers.quipu.env]\nA = "1"\n',
        '[mcp_servers.quipu]\nurl = "http://127.0.0.1:7847/mcp"\n'
        'http_headers = { Authorization = "Bearer k" }\n# a remark\n',
    )
    assert put(changed, KEYS, read(changed)["mcp_servers"]["quipu"]) == changed


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", '[mcp_servers.quipu]\nurl = "u"\n'),
        ("a = 1", 'a = 1\n\n[mcp_servers.quipu]\nurl = "u"\n'),
        ("a = 1\r\n", 'a = 1\r\n\r\n[mcp_servers.quipu]\r\nurl = "u"\r\n'),
        ("[mcp_servers]\n", '[mcp_servers]\n\n[mcp_servers.quipu]\nurl = "u"\n'),
    ],
)
def test_a_new_table_stands_at_the_end(before: str, after: str) -> None:
    assert put(before, KEYS, {"url": "u"}) == after


def test_every_kind_of_value_is_written_as_it_was() -> None:
    table = {"a b": True, "n": 1, "x": 1.5, "t": 'é"\\\n\x7f', "l": ["a", 2], "d": {"e": {}, "f": {"g.h": "i"}}}
    assert tomllib.loads(put("", ("t",), table)) == {"t": table}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a = ", "no TOML: Invalid value (at end of document)"),
        ("mcp_servers = 1", "mcp_servers holds something else than names"),
        ('mcp_servers = { quipu = { url = "v" } }', "mcp_servers.quipu is written in a way that only its author"),
        ('mcp_servers.quipu.url = "v"', "mcp_servers.quipu is written in a way that only its author"),
        ('t = """\n[mcp_servers.quipu]\n"""', "mcp_servers.quipu is written in a way that only its author"),
        ("[[mcp_servers.quipu]]\nurl = 'v'", ""),
    ],
)
def test_what_cannot_be_changed_safely_is_refused(text: str, told: str) -> None:
    if told:
        with pytest.raises(Fault) as caught:
            put(text, KEYS, {"url": "u"})
        assert caught.value.message.startswith(told)
    else:
        assert read(put(text, KEYS, {"url": "u"})) == {"mcp_servers": {"quipu": {"url": "u"}}}


def test_a_value_that_cannot_be_written_again_is_refused() -> None:
    with pytest.raises(Fault, match="cannot be written again"):
        put("", ("t",), read("d = 2026-01-01"))


NAMES = st.sampled_from(["a", "mcp_servers", "quipu", "b.c", "d e", '"']) | st.text(
    st.characters(blacklist_categories=("Cs", "Cc")), max_size=3
)
VALUES = st.recursive(
    st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(st.characters(blacklist_categories=("Cs",)), max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=2),
    max_leaves=6,
)
TABLES = st.dictionaries(NAMES, VALUES, max_size=3)


@given(st.lists(st.tuples(st.lists(NAMES, min_size=1, max_size=3), TABLES), max_size=4), TABLES)
def test_setting_a_table_changes_that_table_alone(others: list[tuple[list[str], dict[str, Any]]], table: Any) -> None:
    text = "# first\n"
    for keys, other in others:
        try:
            text = put(text, keys, other)
        except Fault:
            continue
    try:
        changed = put(text, KEYS, table)
    except Fault:
        return
    assert read(changed) == placed(read(text), KEYS, table)
    assert put(changed, KEYS, table) == changed
    assert changed.startswith("# first\n")
