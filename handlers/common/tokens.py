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


# The class of a character, and the tokens that a run of it takes, and each character. A character of several bytes is
# counted by the first of them.
_PLAIN = ((_LETTERS, 0.394, 0.172), (_DIGITS, 1.4, 0.016), (_SIGNS, 0.077, 0.374))
_BLANKS, _PER_BLANK = b" \t\r\n", 0.01
_RUNS = [(_only(characters), per_run, per_byte) for characters, per_run, per_byte in _PLAIN]
_ASCII = _LETTERS + _DIGITS + _SIGNS + _BLANKS
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
    plain, runs, left = 0.0, 0.0, json.translate(None, _ASCII)
    blanks = len(json) - len(left)
    for only, per_run, per_byte in _RUNS:
        marked = json.translate(only)
        count = marked.count(_IN)
        runs += per_run * (marked.count(_END) + marked.endswith(_IN))
        plain += per_byte * count
        blanks -= count
    plain = plain + _PER_BLANK * blanks + runs
    wide = 0.0
    for per_byte, kind in _WIDE if left else ():
        size, left = len(left), left.translate(None, kind)
        wide += per_byte * (size - len(left))
    return Tokens(plain + wide, _MARGIN * plain + _WIDE_MARGIN * wide)
