"""Words that a vocabulary spells letter by letter: their vectors say which letters they have, not their meaning."""

import unicodedata
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from kernel.core.lazy_regex import regex
from kernel.embed.wordpiece import WordPieceEncoder, is_ideograph

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Flags = NDArray[np.bool_]
    Sizes = NDArray[np.int64]

MIN_WORD_SHARE = 0.5  # of the words and of the letters of a text that has a meaning; not measured
_MIN_IDEOGRAPHS = 2000  # a vocabulary with as many as a newspaper needs was trained on Chinese; that of English has 492
_MAX_LETTERS = 512  # of a text that are counted, since an unknown word may be a sentence; not measured
_EMOJI = regex("[\u2190-\u2bff\ufe0f\U0001f000-\U0001faff]+")


def without_emoji(text: str) -> str:
    """Return a text with blanks for its emoji, which are no words and no part of the words beside them."""
    return _EMOJI.sub(" ", text)


class _Pieces(NamedTuple):
    """For each token id whether it continues a word, is one letter that is not Latin, and how many letters it has."""

    continues: "Flags"
    single: "Flags"
    letters: "Sizes"


class Spelling:
    """Leaves out the words of a text that a WordPiece vocabulary spells, and all of a text that is mostly spelled."""

    def __init__(self, encoder: WordPieceEncoder) -> None:
        self._encoder = encoder

    def leave_out(self, text: str, ids: bytes, width: int) -> bytes:
        """Return the packed ids of a text without those of spelled words; none if less than half of it remains.

        A word is spelled if it is unknown, or if pieces of a single letter make up most of it.
        """
        import numpy as np

        tokens, pieces = np.frombuffer(ids, f"<u{width}"), self._pieces
        single = pieces.single[tokens]
        if not single.any():
            return ids
        begins = np.flatnonzero(~pieces.continues[tokens])
        letters = np.add.reduceat(pieces.letters[tokens], begins)
        spelled = 2 * np.add.reduceat(single, begins, dtype=np.int64) > letters
        kept = letters[~spelled]
        # A word of Thai is a sentence, and a word of Chinese a letter.
        if np.count_nonzero(kept) < MIN_WORD_SHARE * np.count_nonzero(letters):
            return b""
        if kept.sum() < MIN_WORD_SHARE * sum(map(str.isalpha, text[:_MAX_LETTERS])):
            return b""
        return tokens[np.repeat(~spelled, np.diff(np.append(begins, len(tokens))))].tobytes()

    @cached_property
    def _pieces(self) -> _Pieces:
        import numpy as np

        vocabulary, prefix = self._encoder.vocabulary, self._encoder.prefix
        learnt = sum(len(piece) == 1 and is_ideograph(piece) for piece in vocabulary) >= _MIN_IDEOGRAPHS
        size = 1 + max(*vocabulary.values(), *map(_token, self._encoder.added.values()))
        found = _Pieces(np.zeros(size, np.bool_), np.zeros(size, np.bool_), np.zeros(size, np.int64))
        for piece, token in vocabulary.items():
            text = piece.removeprefix(prefix)
            found.continues[token] = piece != text != ""
            found.letters[token] = sum(map(_is_letter, text))
            # An ideograph is a word of its own, if the model has learnt to read it.
            found.single[token] = (
                len(text) == 1 and not text.isascii() and _is_letter(text) and not (learnt and is_ideograph(text))
            )
        found.single[self._encoder.unknown] = True
        found.letters[self._encoder.unknown] = 1
        return found


def _token(packed: bytes) -> int:
    return int.from_bytes(packed, "little")


def _is_letter(char: str) -> bool:
    return char.isalpha() or unicodedata.category(char)[0] == "M"
