"""How often the words of a query stand in a row of the full-text index, told row by row, and what that is worth.

FTS5's own rank counts the rows of every word of the query first, which is most of what a query costs where rows are
many; here the caller knows how many there are, or counts them in a part of the store only.
"""

import struct
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

_HEAD = struct.Struct("<If")
_MOST = 255
_SATURATION = 1.2
_LENGTH = 0.75
COMMON_SHARE = 0.25
_SLIGHT = 0.01
_FEW = 50


def match_tf(row: Any, *skipped: Any) -> bytes:
    """An auxiliary function of FTS5: the row's number of tokens (uint32), the mean number of all rows (float32), and
    for each phrase of the query but those `skipped` at the start how often it stands there (uint8).
    """
    first = skipped[0] if skipped else 0
    common = row.aux_data
    if common is None:
        mean = row.column_total_size() / row.row_count - 1
        row.aux_data = common = (mean, range(first, row.phrase_count), _shape(row.phrase_count - first).pack)
    mean, phrases, pack = common
    counts = [len(text) + len(grams) for text, grams, _place in map(row.phrase_locations, phrases)]
    try:
        return pack(row.column_size() - 1, mean, *counts)
    except struct.error:
        return packed(counts, row.column_size() - 1, mean)


@lru_cache(maxsize=256)
def _shape(words: int) -> struct.Struct:
    return struct.Struct(f"{_HEAD.format}{words}B")


def packed(counts: Sequence[int], size: int, mean: float) -> bytes:
    """The tally of a row of `size` tokens."""
    return _HEAD.pack(size, mean) + bytes([min(_MOST, count) for count in counts])


def bm25(tallies: Sequence[bytes], words: int, rows: int, holding: Sequence[int] | None) -> list[float]:
    """The BM25 of each tally, larger is better: of `words` counts, the missing ones being 0.

    `rows` is how many rows there are, `holding` how many of them hold each word; None where the tallies are of all that
    hold any. Words in more than `COMMON_SHARE` of many rows, such as the names of those who talk there, find but hardly
    rank, unless all are such.
    """
    import numpy as np

    if not tallies:
        return []
    wide = _HEAD.size + words
    shape = np.dtype([("size", "<u4"), ("mean", "<f4"), ("counts", np.uint8, (words,))])
    table = np.frombuffer(b"".join([one.ljust(wide, b"\0") for one in tallies]), shape)
    sizes, means, counts = table["size"], table["mean"], table["counts"].astype(np.float64)
    held = np.count_nonzero(counts, axis=0) if holding is None else np.minimum(holding, rows)
    worth = np.log1p((rows - held + 0.5) / (held + 0.5))
    common = held > rows * COMMON_SHARE
    if rows >= _FEW and not common.all():
        worth[common] *= _SLIGHT
    norm = _SATURATION * (1 - _LENGTH + _LENGTH * sizes / np.maximum(means, 1))
    return (counts * (_SATURATION + 1) / (counts + norm[:, None]) @ worth).tolist()
