"""The ranges of the settings, and each check at its very limit."""

import asyncio
from collections.abc import Iterable, Mapping

import pytest
from starlette.types import Message

from kernel.core.limits import BOUNDS, Limits, read_body, refuse, refuse_body, repeated, weight
from kernel.core.text import excess
from tests.unit.limit_bounds import RANGES

HOST = (b"host", b"localhost")
FEW = Limits(header_count=3, header_bytes=40, body=10, depth=8, values=5)


def test_limit_ranges_are_as_documented() -> None:
    assert {name: (bound.low, bound.high) for name, bound in BOUNDS.items()} == RANGES


def test_weight_is_the_bytes_of_names_and_values() -> None:
    assert weight([(b"ab", b"cde"), (b"", b"f")]) == 6


def test_repeated_returns_duplicate_names() -> None:
    assert repeated([(b"a", b"1"), (b"b", b"2"), (b"a", b"3"), (b"a", b"4")]) == {b"a"}


def status(raw: list[tuple[bytes, bytes]]) -> int | None:
    refusal = refuse(raw, dict(raw), FEW)
    return refusal and refusal.status  # pyrefly: ignore[bad-return]


@pytest.mark.parametrize(
    ("more", "answer"),
    [
        ([(b"a", b"1"), (b"b", b"2")], None),
        ([(b"a", b"1"), (b"b", b"2"), (b"c", b"3")], 431),
        ([(b"a", b"x" * 26)], None),
        ([(b"a", b"x" * 27)], 431),
        ([(b"a", b"1"), (b"a", b"2")], None),
        ([HOST], 400),
        ([(b"origin", b"http://evil.example")], 403),
        ([(b"origin", b"http://localhost")], None),
    ],
)
def test_headers_pass_up_to_their_limit(more: list[tuple[bytes, bytes]], answer: int | None) -> None:
    assert status([HOST, *more]) == answer


def test_unknown_host_is_misdirected() -> None:
    assert status([(b"host", b"evil.example")]) == 421
    assert status([]) == 421


@pytest.mark.parametrize(
    ("headers", "answer"),
    [
        ({}, None),
        ({b"content-length": b"10"}, None),
        ({b"content-length": b"11"}, 413),
        ({b"content-length": b"0" * 17 + b"9"}, None),
        ({b"content-length": b"0" * 18 + b"9"}, 413),
        ({b"content-length": b"-1"}, None),
        ({b"content-encoding": b" Identity "}, None),
        ({b"content-encoding": b"gzip"}, 415),
    ],
)
def test_declared_body_length_is_limited(headers: Mapping[bytes, bytes], answer: int | None) -> None:
    refusal = refuse_body({b"content-type": b"Application/JSON; charset=utf-8", **headers}, FEW)
    assert (refusal and refusal.status) == answer
    assert refuse_body({**headers, b"content-type": b"text/plain"}, FEW) is not None


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"[1,2,3,4]", ""),
        (b"[1,2,3,4,5]", "too many values"),
        (b"[%s,2,3,4]" % (b"1" * 122), ""),
        (b"[%s,2,3,4]" % (b"1" * 123), "too many digits"),
        (b"[0.5e-09,1E+22,3,4]", ""),
        (b"[0.5e-300]", "too many digits"),
        (b'["%s"]' % (b"1" * 200), ""),
        (b"[" * 4 + b"]" * 4, ""),
        (b'"[[[[[[[[[,,,,,,,"', ""),
        (b'{"a":"\\"[,[,[,[,["}', ""),
    ],
)
def test_json_values_are_limited(body: bytes, problem: str) -> None:
    assert excess(body, FEW) == problem


@pytest.mark.parametrize(("levels", "problem"), [(8, ""), (9, "nested too deeply")])
def test_json_depth_is_limited(levels: int, problem: str) -> None:
    assert excess(b"[" * levels + b"]" * levels, FEW._replace(values=100)) == problem


def received(messages: Iterable[Message]) -> bytes | None:
    left = iter(messages)

    async def receive() -> Message:
        return next(left)

    return asyncio.run(read_body(receive, 4))


@pytest.mark.parametrize(
    ("messages", "body"),
    [
        ([{"body": b"abcd"}], b"abcd"),
        ([{"body": b"abcde"}], None),
        ([{}], b""),
        ([{"body": b"ab", "more_body": True}, {"body": b"cd"}], b"abcd"),
        ([{"body": b"ab", "more_body": True}, {"body": b"cd", "more_body": True}, {}], b"abcd"),
        ([{"body": b"ab", "more_body": True}, {"body": b"cde", "more_body": True}], None),
    ],
)
def test_body_is_read_up_to_its_limit(messages: list[Message], body: bytes | None) -> None:
    assert received({"type": "http.request", **message} for message in messages) == body


def test_disconnect_gives_no_body() -> None:
    assert received([{"type": "http.disconnect"}]) is None
    assert received([{"type": "http.request", "body": b"a", "more_body": True}, {"type": "http.disconnect"}]) is None
