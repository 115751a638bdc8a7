"""JSON read by rows: all of any form, in chunks of any size; damage costs the row it is in, and its place is told."""

import io
import json
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as some

from kernel.core.errors import Fault
from kernel.memories import json_rows
from kernel.memories.import_records import LeftOut

KEYS = some.text('ab[]{},"\\', min_size=1)
SCALARS = (
    some.none()
    | some.booleans()
    | some.integers(-(2**53), 2**53)
    | some.text(some.characters(exclude_categories=["Cs"]))
)
VALUES = some.recursive(SCALARS, lambda inner: some.lists(inner) | some.dictionaries(KEYS, inner), max_leaves=10)
ROWS = some.lists(some.dictionaries(KEYS, VALUES, min_size=1), min_size=1)


def read(data: bytes) -> list[tuple[str, Any]]:
    """The members and rows; of the omitted parts, their reasons and places."""
    found = json_rows.rows(io.BytesIO(data), members=["rows"])
    return [(one.name, one.reason) if isinstance(one, LeftOut) else (one.member, one.value) for one in found]


@pytest.fixture(params=[1, 7, 1 << 18], autouse=True)
def chunk(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_rows, "_CHUNK_BYTES", request.param)


def test_the_lists_and_members_of_a_document_come_by_their_elements() -> None:
    assert read(b"[]") == read(b'{"rows": []}') == read(b"") == read(b" \n") == []
    document = b'\xef\xbb\xbf {"a": 1, "rows": [{"q": [1, {"z": 2}]}, {}], "e": [], "o": {"l": [1]}} \n'
    assert read(document) == [("a", 1), ("rows", {"q": [1, {"z": 2}]}), ("rows", {}), ("o", {"l": [1]})]


A, B, C = ({"a": 1}, {"b": '"}{[é'}, {"a": {"a": [{"a": 3}]}})
TEXTS = [json.dumps(row) for row in (A, B, C)]


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(TEXTS),
        "\r\n\r\n".join(TEXTS) + "\r\n",
        "".join(TEXTS) + "\n",
        "\n".join([TEXTS[0] + TEXTS[1], TEXTS[2]]),
        "[" + ",".join(TEXTS) + "]",
        "[\n" + ",\n".join(TEXTS) + "\n]",
        "[\n" + ",\n".join(TEXTS) + ",\n]\n",
        "[" + ",\n".join(TEXTS) + "]",
        ",\n".join(TEXTS),
        "// by hand\n[" + ", /* [{ */\n".join(TEXTS) + ", ] // end",
        "/* a\n * b */\n" + '\n// { "c\n'.join(TEXTS),
        "\n".join(f"{text[:-1]},}}" for text in TEXTS),
        json.dumps([A, B, C], indent=2),
        "\n".join(["[" + TEXTS[0] + "," + TEXTS[1] + "]", TEXTS[2]]),
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_rows_are_the_same_in_every_form_that_people_have(
    text: str, encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_rows, "_CHUNK_BYTES", 1 << 18)  # a smaller one takes these small objects for documents
    assert read(text.encode(encoding)) == [("", A), ("", B), ("", C)]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"x", [("near byte 0", "is no JSON object")]),
        (b"1 []", [("near byte 0", "is no JSON object")]),
        (b'[{"a": 1}', [("", {"a": 1}), ("near byte 0", "was cut off")]),
        (b'[{"a": 1}, {"a', [("", {"a": 1}), ("near byte 11", "was cut off")]),
        (b'[{"a": 1},,{"a": 2},]', [("", {"a": 1}), ("", {"a": 2})]),
        (b'[{"a": 1} {"a": 2}]', [("", {"a": 1}), ("", {"a": 2})]),
        (
            b'[null, {"a": 1}, 3, "x"]',
            [
                ("near byte 1", "is no JSON object"),
                ("", {"a": 1}),
                ("near byte 17", "is no JSON object"),
                ("near byte 20", "is no JSON object"),
            ],
        ),
        (b'[{"a": 1}]x', [("", {"a": 1}), ("near byte 10", "is no JSON object")]),
        (b'[{"a": tru}, {"a": 2}]', [("near byte 1", "is no JSON"), ("", {"a": 2})]),
        (b'[{"a": [1}, {"a": 2}]', [("near byte 1", "is no JSON"), ("", {"a": 2})]),
        (b'[{"a": "x}, {"a": "y"}, {"a": 3}]', [("near byte 1", "is no JSON"), ("", {"a": "y"}), ("", {"a": 3})]),
        (b'[{"a": "\\ud83d"}, {"a": "\xff"}]', [("", {"a": "\ufffd"}), ("", {"a": "\ufffd"})]),
        (
            b'{"rows": [{"a": 1}, {"a":]}, {"a": 2}], "v": 1}',
            [("rows", {"a": 1}), ("near byte 20", "is no JSON"), ("rows", {"a": 2}), ("v", 1)],
        ),
    ],
)
def test_damage_in_a_document_costs_one_row(
    data: bytes, expected: list[tuple[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert read(data) == expected
    monkeypatch.setattr(json_rows, "_CHUNK_BYTES", 3)
    assert read(data) == expected


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b'{"a": 1}\n{"a": \n{"a": 2}\n', [("", {"a": 1}), ("line 2", "was cut off"), ("", {"a": 2})]),
        (b'{"a": 1\n{"b": 2}\n', [("line 1", "was cut off"), ("", {"b": 2})]),
        (b'{"a": 1, "b{"a": 2}\n{"b": 2}\n', [("line 1", "is no JSON"), ("", {"a": 2}), ("", {"b": 2})]),
        (b'{"a": 1}\nnull\n{"a": 2}\n', [("", {"a": 1}), ("line 2", "is no JSON object"), ("", {"a": 2})]),
        (b'{"a": 1}\n{"a": "see {x}', [("", {"a": 1}), ("line 2", "was cut off")]),
        (b'{"a": 1}\n{"a": 2}{"a', [("", {"a": 1}), ("", {"a": 2}), ("line 2", "was cut off")]),
    ],
)
def test_damage_in_lines_costs_one_line(data: bytes, expected: list[tuple[str, Any]]) -> None:
    assert read(data) == expected


def test_a_last_line_that_was_cut_off_is_no_damage() -> None:
    for last in (b'{"a": "see {x}', b'{"a"', b"{"):
        found = list(json_rows.rows(io.BytesIO(b'{"a": 1}\n' + last)))
        assert found[1:] == [LeftOut("was cut off", "line 2")]
        found = list(json_rows.rows(io.BytesIO(b'{"a": 1}\n' + last + b"\n")))
        assert found[1:] == [LeftOut("was cut off", "line 2", is_damage=True)]


def test_a_row_without_end_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_rows, "MAX_ITEM_BYTES", 100)
    long = b'{"a": "' + b"x" * 300 + b'"}'
    many = b'{"a": [' + b"1," * 200 + b"1]}"
    for row in (long, many):
        for data in (b'[{"a": 1}, %b, {"a": 2}]' % row, b'{"a": 1}\n%b\n{"a": 2}\n' % row):
            found = read(data)
            assert (found[0], len(found), found[-1]) == (("", {"a": 1}), 3, ("", {"a": 2}))
            assert found[1][1] == "has more than 0 MB or 1,000,000 values"


def test_more_rows_than_are_imported_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_rows, "MAX_ITEMS", 3)
    for data in (b"[{},{},{},{}]", b"{}\n" * 4):
        with pytest.raises(
            Fault, match=r"(line 4|near byte 10): has more than 3 (lines|rows). Nothing was imported\.$"
        ):
            read(data)


FORMS: dict[str, Callable[[list[Any]], str]] = {
    "list": json.dumps,
    "indented list": lambda rows: json.dumps(rows, indent=2),
    "document": lambda rows: json.dumps({"n": 1, "rows": rows}),
    "lines": lambda rows: "\n".join(map(json.dumps, rows)),
}


@pytest.mark.slow
@pytest.mark.parametrize("chunk", [1 << 18], indirect=True)
@given(ROWS, some.sampled_from(list(FORMS)))
def test_every_document_is_read_as_it_is(rows: list[Any], form: str) -> None:
    found = [value for member, value in read(FORMS[form](rows).encode()) if member != "n"]
    assert found == rows


@pytest.mark.parametrize("chunk", [1 << 18], indirect=True)
@given(some.sampled_from(list(FORMS)), some.integers(0, 2**32), some.sampled_from(["cut", "remove", "flip", "insert"]))
@example("document", 1_503_224_172, "insert")  # `{:[` before a row
def test_damage_costs_no_row_but_those_it_is_in(form: str, seed: int, kind: str) -> None:
    chance = random.Random(seed)
    rows = [{"id": f"{number}", "text": 'is "x" {' * chance.randrange(3), "of": {"k": [number]}} for number in range(9)]
    data = FORMS[form](rows).encode()
    at, size = chance.randrange(data.index(b'"0"'), len(data)), chance.choice([1, 5, 60])
    damaged = {
        "cut": data[:at],
        "remove": data[:at] + data[at + size :],
        "flip": data[:at] + bytes([data[at] ^ chance.choice([1, 0x20, 0x5A, 0xFF])]) + data[at + 1 :],
        "insert": data[:at] + bytes(chance.choices(b'"{}[],:\\\nx\xff', k=size)) + data[at:],
    }[kind]
    found = [row for _, row in read(damaged) if isinstance(row, dict)]
    ends = [data.find(f'"{number}"'.encode()) for number in range(10)]
    touched = {"cut": len(data), "remove": at + size}.get(kind, at)
    for number, row in enumerate(rows):
        begin = ends[number] - 20
        end = ends[number + 1] if number < 8 else len(data)
        if end < at or begin > touched:
            assert row in found
