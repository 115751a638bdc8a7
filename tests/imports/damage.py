"""Strategies of Hypothesis for damage to the sources of all importers: to bytes of any kind, and to rows of JSON."""

import json
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as some

ODD = ["", "text", 7, -1, 1e300, True, None, {}, [], "\u0000", "\u202e", "null", "2026-13-40", [[]], {"a": None}]
_SPLINTERS = [b"\0", b"\xed\xa0\xbd", b"\x1b", b"<private>", b'\\ud83d"', b"/*", b"//", b"\xff\xfe", b"\r", b"---\n"]
_TAILS = [b"[", b"[[", b"%%", b"<!--", b"`", b"> ", b"- ", b"#", b"|", b'{"a":', b"/*", b","]
_ENCODINGS = ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp037", "utf-8-sig"]


@some.composite
def bad_rows(draw: some.DrawFn, row: dict[str, Any]) -> Any:
    """A row of which something is wrong: null, of another type, huge, deep, in another order, or no row at all."""
    names = [*row]
    return draw(
        some.one_of(
            some.sampled_from(ODD),
            some.just([row]),
            some.just([[[row, None]], row]),
            some.just(dict.fromkeys(names)),
            some.permutations(names).map(lambda order: {name: row[name] for name in order}),
            some.tuples(some.sampled_from(names), some.sampled_from(ODD)).map(lambda pair: {**row, pair[0]: pair[1]}),
            some.sampled_from(names).map(lambda name: {key: row[key] for key in names if key != name}),
            some.sampled_from([*places(row)]).flatmap(
                lambda place: some.sampled_from(ODD).map(lambda odd: spoiled(row, place, odd))
            ),
            some.just({**row, "padding": "x" * 1_100_000}),
            some.just({**row, "deep": json.loads("[" * 200 + "]" * 200)}),
        )
    )


def places(value: Any) -> Iterator[tuple[Any, ...]]:
    """The places of all values in a value, each as the names and numbers that lead to it."""
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, part in parts:
        yield (name,)
        yield from ((name, *rest) for rest in places(part))


def spoiled(value: Any, place: tuple[Any, ...], odd: Any) -> Any:
    """The value with an odd value in this place."""
    if not place:
        return odd
    copy = value.copy()
    copy[place[0]] = spoiled(value[place[0]], place[1:], odd)
    return copy


@some.composite
def mangled(draw: some.DrawFn, data: bytes) -> bytes:
    """The bytes, of which some are gone, doubled, in another order, changed, added, or in another encoding."""
    places = some.integers(0, len(data))
    at, end = sorted((draw(places), draw(places)))
    lines = data.split(b"\n")
    ways = [
        some.sampled_from(
            [
                b"",
                data,
                data[:at],
                data[at:],
                data[:at] + data[end:],
                data + data,
                data[:end] + data[at:],
                data[:at] + bytes(end - at) + data[end:],
                b"\xef\xbb\xbf" + data.replace(b"\n", b"\r\n"),
                data.replace(b"\n", b"\r"),
            ]
        ),
        some.integers(0, 255).map(lambda byte: data[:at] + bytes([byte]) + data[at + 1 :]),
        some.binary(max_size=64).map(lambda other: data[:at] + other + data[end:]),
        some.sampled_from(_SPLINTERS).map(lambda splinter: data[:at] + splinter + data[at:]),
        some.sampled_from(_TAILS).map(lambda tail: data[:at] + tail * 20_000),
        some.permutations(lines[:20]).map(lambda order: b"\n".join([*order, *lines[20:]])),
    ]
    if data.isascii():
        text = data.decode()
        ways += [
            some.sampled_from(_ENCODINGS).map(text.encode),
            some.just(b"---\n" + b"a: [" * 100 + b"\n---\n" + data),
        ]
    return draw(some.one_of(ways))
