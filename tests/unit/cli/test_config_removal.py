"""An entry is removed from another program's file; every other line stays."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel.cli.config_files import read_json, set_json
from kernel.cli.config_removal import remove_json, remove_toml
from kernel.core.errors import Fault

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


NAMES = st.text('abc "\\é', max_size=3).filter(lambda name: name != "quipu")
VALUES = st.recursive(st.integers() | st.text(max_size=3), lambda inner: st.dictionaries(NAMES, inner, max_size=3))


@given(st.dictionaries(NAMES, VALUES, max_size=4), st.sampled_from(["", "{}", '{"servers": {},}', "// a\n{\n}\n"]))
def test_removing_what_was_set_leaves_the_other_values(others: dict[str, object], start: str) -> None:
    text = start
    for name, value in others.items():
        text = set_json(text, ("servers", name), value)
    with_entry = set_json(text, KEYS, {"url": "u"})
    assert read_json(remove_json(with_entry, KEYS)) == {"servers": others}
