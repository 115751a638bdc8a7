"""How often the words of a query stand in a row of the full-text index, told row by row, and what that is worth.

FTS5's own rank counts the rows of every word of the query first, which is most of what a query costs where rows are
many; here the caller knows how many there are, or counts them in a part of the store only.
"""

import struct
from collections.abc import Sequence
from typing import Any

_HEAD = struct.Struct("<If")
_COLUMNS = 2  # of text; the last one holds the one word of the place
_MOST = 255
_SATURATION = 1.2
_LENGTH = 0.75


def tally(row: Any, *skipped: Any) -> bytes:
    """An auxiliary function of FTS5: the row's number of tokens (uint32), the mean number of all rows (float32), and
    for each phrase of the query but those `skipped` at the start how often it stands there (uint8).
    """
    first = skipped[0] if skipped else 0
    counts = [
        min(_MOST, sum(map(len, row.phrase_locations(phrase)[:_COLUMNS]))) for phrase in range(first, row.phrase_count)
    ]
    return _HEAD.pack(row.column_size() - 1, row.column_total_size() / row.row_count - 1) + bytes(counts)


def packed(counts: Sequence[int], size: int, mean: float) -> bytes:
    """A tally of what was counted elsewhere."""
    return _HEAD.pack(size, mean) + bytes(min(_MOST, count) for count in counts)


def bm25(tallies: Sequence[bytes], words: int, rows: int, holding: Sequence[int] | None) -> list[float]:
    """The BM25 of each tally, larger is better: of `words` counts, the missing ones being 0.

    `rows` is how many rows there are, `holding` how many of them hold each word; None where the tallies are of all that
    hold any.
    """
    import numpy as np

    if not tallies:
        return []
    wide = _HEAD.size + words
    table = np.frombuffer(b"".join(one.ljust(wide, b"\0") for one in tallies), np.uint8).reshape(len(tallies), wide)
    head = np.ascontiguousarray(table[:, : _HEAD.size])
    sizes, means = head[:, :4].copy().view("<u4")[:, 0], head[:, 4:].copy().view("<f4")[:, 0]
    counts = table[:, _HEAD.size :].astype(np.float64)
    held = np.count_nonzero(counts, axis=0) if holding is None else np.minimum(holding, rows)
    worth = np.log1p((rows - held + 0.5) / (held + 0.5))
    norm = _SATURATION * (1 - _LENGTH + _LENGTH * sizes / np.maximum(means, 1))
    return (counts * (_SATURATION + 1) / (counts + norm[:, None]) @ worth).tolist()
