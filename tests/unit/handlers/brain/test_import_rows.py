"""Every value of another program in a column becomes a value our rows can hold."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import asdict

from handlers.brain import import_rows
from handlers.brain.schemas import Entity, Link, Memory, Note, Resource

NOW = "2026-01-02T03:04:05.678Z"
NAMES = sorted(
    {
        *Memory.__struct_fields__,
        *Entity.__struct_fields__,
        *Link.__struct_fields__,
        *Note.__struct_fields__,
        *Resource.__struct_fields__,
    }
)
values = st.none() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text() | st.binary()
rows = st.dictionaries(st.sampled_from(NAMES), values)


@pytest.mark.slow
@given(rows)
def test_any_column_values_convert_to_a_row(row: dict[str, Any]) -> None:
    kinds: tuple[Any, ...] = (Memory, Entity, Link, Note, Resource)
    for kind in kinds:
        item = import_rows.converted(kind, row, "core", NOW, (1, "m"))
        assert msgspec.convert(asdict(item), kind) == item
    assert 1 <= import_rows.converted(Memory, row, "core", NOW, (0, None)).importance <= 5
    assert len(import_rows.query(row, "core", NOW)) == 9


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, 3),
        (1, 1),
        (2.5, 3),
        (2.4, 2),
        (4.5, 5),
        (0, 1),
        (99, 5),
        (-1e300, 1),
        (1e300, 5),
        (float("inf"), 5),
        ("4", 3),
        (b"4", 3),
    ],
)
def test_importance_is_an_integer_from_1_to_5(value: Any, expected: int) -> None:
    assert import_rows.integer({"importance": value}, "importance", 3, 1, 5) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2025-03-01 10:00:00", "2025-03-01T10:00:00.000Z"),
        ("2025-03-01T12:00:00+02:00", "2025-03-01T10:00:00.000Z"),
        ("yesterday", None),
        ("", None),
        (None, None),
        (7, None),
    ],
)
def test_times_are_converted_to_our_format(value: Any, expected: str | None) -> None:
    assert import_rows.time({"created_at": value}, "created_at") == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2027-01-31", ("2027-01-31T00:00:00.000Z", "2027-01-31T23:59:59.999Z")),
        ("2027-01-31T08:00:00Z", ("2027-01-31T08:00:00.000Z", "2027-01-31T08:00:00.000Z")),
        ("1/31/2027", (None, None)),
    ],
)
def test_a_fact_holds_to_the_end_of_its_last_day(value: str, expected: tuple[str | None, str | None]) -> None:
    memory = import_rows.converted(Memory, {"valid_from": value, "valid_until": value}, "core", NOW, (0, None))
    assert (memory.valid_from, memory.valid_until) == expected


def test_query_text_is_cut_before_redaction() -> None:
    kept = import_rows.query({"query_text": "password: " + "a1" * 10_000}, "core", NOW)

    assert kept[2] == "password: [redacted]"
    assert import_rows.query({"query_text": "a " * 10_000 + "b"}, "core", NOW)[2] == "a " * 499 + "a…"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        ('["a", 1]', '["a", 1]'),
        ("infra, staging server,", '["infra","staging server"]'),
        ("infra", '["infra"]'),
        ('{"a": 1}', '["{\\"a\\": 1}"]'),
        ("[a, b", '["[a","b"]'),
        ("7", '["7"]'),
        (7, '["7"]'),
        (" , ", None),
        ("", None),
    ],
)
def test_tags_become_a_json_list(value: Any, expected: str | None) -> None:
    assert import_rows.tags({"tags": value}) == expected
