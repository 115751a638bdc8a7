"""The tokens of an answer as models count them, estimated by classes of characters.

Fitted to o200k_base on answers of recall, with the vocabulary in the npm package js-tiktoken 1.0.21: 1.6 % off in the
mean, 6 % at most, on conversations, a novel, code, procedures, long answers and seven languages.
"""

import string
from typing import NamedTuple

_LETTERS, _DIGITS = string.ascii_letters.encode(), string.digits.encode()
_SIGNS = string.punctuation.encode()
_IN, _END = b"a", b"a "


def _only(characters: bytes) -> bytes:
    """Return a table that makes one character of these bytes and a blank of every other: a run has one end."""
    return bytes(_IN[0] if byte in characters else 32 for byte in range(256))


_PER_RUN = ((0.394, _only(_LETTERS)), (1.4, _only(_DIGITS)), (0.077, _only(_SIGNS)))
# A character of several bytes is counted by the first of them.
_PER_BYTE = ((0.172, _LETTERS), (0.016, _DIGITS), (0.374, _SIGNS), (0.01, b" \t\r\n"))
_WIDE = (
    (0.47, bytes(range(0xC2, 0xCE))),  # Latin with accents, the first Greek
    (0.35, bytes(range(0xCE, 0xE0))),  # Greek, Cyrillic, Hebrew, Arabic
    (0.45, b"\xe0\xe1"),  # scripts of India and Southeast Asia
    (1.0, b"\xe2\xef"),  # signs, wide forms
    (0.79, bytes(range(0xE3, 0xEE))),  # Chinese, Japanese, Korean
    (1.86, bytes(range(0xF0, 0xF8))),  # emoji
)
_MARGIN, _WIDE_MARGIN = 1.12, 1.5
CURSOR_TOKENS_PER_BYTE = 0.7  # of base64


class Tokens(NamedTuple):
    """The tokens of a text: as many as it most likely has, and as many as it has at most."""

    likely: float
    most: float


def tokens_of(json: bytes) -> Tokens:
    runs = 0.0
    for cost, only in _PER_RUN:
        marked = json.translate(only)
        runs += cost * (marked.count(_END) + marked.endswith(_IN))
    plain, left = _count(json, _PER_BYTE)
    wide, _ = _count(left, _WIDE)
    plain += runs
    return Tokens(plain + wide, _MARGIN * plain + _WIDE_MARGIN * wide)


def _count(json: bytes, costs: tuple[tuple[float, bytes], ...]) -> tuple[float, bytes]:
    cost = 0.0
    for unit_cost, kind in costs:
        left = json.translate(None, kind)
        cost += unit_cost * (len(json) - len(left))
        json = left
    return cost, json
