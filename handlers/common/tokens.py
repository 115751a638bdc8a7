"""The tokens of an answer as models count them, estimated by classes of characters.

Fitted to o200k_base on answers of recall, with the vocabulary in the npm package js-tiktoken 1.0.21: 2 % off in the
mean, 10 % at most, on conversations, a novel, code, procedures and seven languages.
"""

import re
from typing import NamedTuple

from kernel.lazy_regex import regex

_ASCII = (
    (1.01, regex(r"[A-Za-z]+")),
    (1.05, regex(r"[A-Za-z]{9}")),
    (0.54, regex(r"[a-z][A-Z]")),
    (1.35, regex(r"\d{1,3}", re.ASCII)),
    (0.87, regex(r"[!-/:-@\[-`{-~]{1,4}")),
    (1.0, regex(r"\s{16}", re.ASCII)),
)
_WIDE = (
    (0.35, regex(r"[\u00c0-\u0233\u0370-\u08ff\u1e00-\u1fff]")),  # Latin with accents, Greek, Cyrillic, Hebrew, Arabic
    (0.45, regex(r"[\u0900-\u11ff\u1380-\u1cff]")),
    (0.79, regex(r"[\u3005-\ud7ff\uf900-\ufaff]")),  # Chinese, Japanese, Korean
    (1.85, regex(r"[\u0080-\u00bf\u1200-\u137f\u2000-\u2fff\ufb00-\uffff\U00010000-\U0010ffff]")),
)
_MARGIN, _WIDE_MARGIN = 1.12, 1.5
CURSOR_TOKENS_PER_BYTE = 0.7  # of base64


class Tokens(NamedTuple):
    """The tokens of a text: as many as it most likely has, and as many as it has at most."""

    likely: float
    most: float


def tokens_of(json: bytes) -> Tokens:
    """The tokens of a part of an answer."""
    text = json.decode()
    plain = sum(cost * len(pattern.findall(text)) for cost, pattern in _ASCII)
    wide = 0.0 if json.isascii() else sum(cost * len(pattern.findall(text)) for cost, pattern in _WIDE)
    return Tokens(plain + wide, _MARGIN * plain + _WIDE_MARGIN * wide)
