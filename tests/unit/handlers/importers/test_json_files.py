"""JSON read by elements: the values of any document, in chunks of any size, and the place of what is damaged."""

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from handlers.importers import json_files
from kernel.core.errors import Fault

SCALARS = (
    some.none()
    | some.booleans()
    | some.integers(-(2**53), 2**53)
    | some.text(some.characters(exclude_categories=["Cs"]))
)
VALUES = some.recursive(
    SCALARS, lambda inner: some.lists(inner) | some.dictionaries(some.text('ab[]{},"\\'), inner), max_leaves=10
)


def read(data: bytes) -> list[tuple[str, Any]]:
    return [(element.member, element.value) for element in json_files.elements(io.BytesIO(data), "file.json")]


@pytest.fixture(params=[1, 7, 1 << 18], autouse=True)
def chunk(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_files, "_CHUNK_BYTES", request.param)


def test_lists_and_members_come_by_their_elements() -> None:
    assert read(b"[]") == read(b"{}") == []
    assert read(b'\xef\xbb\xbf [1, "a,]\\"", {"x": [1]}, [2]] \n') == [
        ("", 1),
        ("", 'a,]"'),
        ("", {"x": [1]}),
        ("", [2]),
    ]
    document = b'{"a": 1, "l": [{"q": [1, {"z": 2}]}, 2], "e": [], "o": {"l": [1]}}'
    assert read(document) == [("a", 1), ("l", {"q": [1, {"z": 2}]}), ("l", 2), ("o", {"l": [1]})]


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "holds no JSON list"),
        (b"x", "holds no JSON list|is no JSON list"),
        (b"1 []", "is no JSON list"),
        (b"[1", "ends before its end"),
        (b'["a', "ends before its end"),
        (b"[1,,2]", "lacks an element"),
        (b"[1,]", "lacks an element"),
        (b"[1 2]", "is no JSON"),
        (b"[1]x", "goes on after its end"),
        (b"[1] [2]", "goes on after its end"),
        (b'{"a": [1}', "closes with another bracket"),
        (b'{"a" [1]}', "is no JSON"),
        (b'{"a": tru}', "is no JSON"),
    ],
)
def test_what_is_damaged_is_refused_with_its_place(data: bytes, problem: str) -> None:
    with pytest.raises(Fault, match=rf"^file\.json.*({problem}).*Nothing was imported\.$"):
        read(data)


def test_an_element_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_files, "MAX_ITEM_BYTES", 100)
    for data in (b'["' + b"a" * 300, b"[" + b'"a",' * 3 + b'{"x":[' + b"1," * 200 + b"1]}]"):
        with pytest.raises(Fault, match=r"more than 0 MB|larger than what is imported"):
            read(data)


@given(some.lists(VALUES) | some.dictionaries(some.text(min_size=1), VALUES), some.sampled_from([None, 1]))
def test_every_document_is_read_as_it_is(value: Any, indent: int | None) -> None:
    if isinstance(value, list):
        expected = [("", item) for item in value]
    else:
        expected = [
            pair
            for name, inner in value.items()
            for pair in ([(name, item) for item in inner] if isinstance(inner, list) else [(name, inner)])
        ]
    assert read(json.dumps(value, indent=indent).encode()) == expected
