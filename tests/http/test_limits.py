"""Limits of HTTP requests: hosts, origins, depth and number of JSON values, body size."""

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.types import Message

from kernel.core import limits
from kernel.core import text as core_text
from kernel.core.limits import LOOPBACK, Limits, host_allowed, origin_allowed, read_body
from kernel.core.text import excess


@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        ("localhost", True),
        ("localhost:7847", True),
        ("LocalHost.:80", True),
        (" localhost\t", True),
        ("127.0.0.1", True),
        ("127.0.0.1:1", True),
        ("[::1]", True),
        ("[::1]:7847", True),
        ("", False),
        ("::1", False),
        ("[::1]x", False),
        ("[::2]", False),
        ("localhost:", False),
        ("localhost:port", False),
        ("localhost:123456", False),
        ("localhost..", False),
        ("localhost@evil.example", False),
        ("evil.example@localhost", False),
        ("localhost.evil.example", False),
        ("127.0.0.1.evil.example", False),
        ("127.0.0.2", False),
        ("0.0.0.0", False),
        ("localhost/", False),
        ("local\xadhost", False),
    ],
)
def test_default_hosts_are_loopback_names(host: str, allowed: bool) -> None:
    assert host_allowed(host.encode("latin-1"), LOOPBACK) is allowed


@pytest.mark.parametrize(
    ("host", "allowed"),
    [("memory.example", True), ("memory.example:443", True), ("other.example:8443", True), ("other.example", False)],
)
def test_allowed_host_without_a_port_allows_every_port(host: str, allowed: bool) -> None:
    assert host_allowed(host.encode(), frozenset({"memory.example", "other.example:8443"})) is allowed


@pytest.mark.parametrize(
    ("origin", "allowed"),
    [
        ("http://localhost", True),
        ("https://localhost:3000", True),
        ("HTTP://LOCALHOST:3000", True),
        ("http://[::1]:3000", True),
        ("https://app.example", True),
        ("https://app.example:444", False),
        ("http://app.example", False),
        ("null", False),
        ("", False),
        ("localhost", False),
        ("file://localhost", False),
        ("chrome-extension://localhost", False),
        ("http://localhost/path", False),
        ("http://localhost@evil.example", False),
        ("http://evil.example", False),
    ],
)
def test_origin_must_be_loopback_or_listed(origin: str, allowed: bool) -> None:
    assert origin_allowed(origin.encode(), LOOPBACK | {"https://app.example"}) is allowed


def test_star_allows_every_host_and_origin() -> None:
    assert host_allowed(b"evil.example", frozenset("*"))
    assert origin_allowed(b"https://evil.example", frozenset("*"))


@pytest.mark.parametrize(
    ("length", "status"),
    [("4194304", None), ("4194305", 413), ("9" * 5000, 413), ("-1", None), ("x", None), ("", None)],
)
def test_a_declared_length_over_the_limit_is_refused(length: str, status: int | None) -> None:
    headers = {b"content-type": b"application/json", b"content-length": length.encode()}
    refusal = limits.refuse_body(headers, Limits())
    assert (refusal and refusal.status) == status


def depth(value: Any) -> int:
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if parts is None else 1 + max(map(depth, parts), default=0)


texts = st.text(st.sampled_from('[]{}"\\a\n\u20ac'))
values = st.recursive(texts | st.none(), lambda inner: st.lists(inner) | st.dictionaries(texts, inner), max_leaves=30)


def count(value: Any) -> int:
    """The values in a value, itself included, with an empty list or object for two."""
    parts = [*value.values()] if isinstance(value, dict) else value if isinstance(value, list) else None
    return 1 if parts is None else 1 + (sum(map(count, parts)) if parts else 1)


@given(values, st.integers(0, 8), st.integers(1, 20), st.integers(1, 5))
def test_excess_counts_depth_and_values_as_a_parser_does(value: Any, deep: int, many: int, piece: int) -> None:
    expected = "too many values" if count(value) > many else "nested too deeply" if depth(value) > deep else ""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(core_text, "_PIECE_BYTES", piece)
        for ascii_ in (True, False):
            body = json.dumps(value, ensure_ascii=ascii_).encode()
            assert excess(body, Limits(depth=deep, values=many)) == expected


class Sender:
    """An ASGI receive that hands out messages, then waits for ever."""

    def __init__(self, *messages: Message) -> None:
        self.messages = list(messages)

    async def __call__(self) -> Message:
        if not self.messages:
            await asyncio.Event().wait()
        return self.messages.pop(0)


def part(body: bytes, *, more: bool = False) -> dict[str, Any]:
    return {"type": "http.request", "body": body, "more_body": more}


GONE = {"type": "http.disconnect"}


@pytest.mark.parametrize(
    ("messages", "body"),
    [
        ([part(b"12345")], b"12345"),
        ([part(b"123456")], None),
        ([part(b"12", more=True), part(b"", more=True), part(b"345")], b"12345"),
        ([part(b"12", more=True), part(b"3456", more=True)], None),
        ([part(b"12", more=True), GONE], None),
        ([GONE], None),
        ([{"type": "http.request"}], b""),
    ],
)
def test_body_is_read_completely_or_refused(messages: list[Any], body: bytes | None) -> None:
    assert asyncio.run(read_body(Sender(*messages), 5)) == body
