"""BM25 from term frequencies that FTS5 reports row by row.

FTS5's own `bm25()` first counts the rows of every term of the query, which is most of a query's cost in a large store.
Here the caller supplies the document frequencies, from a cache or of some partitions only.
"""

import struct
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from kernel.core.lazy_numpy import np

if TYPE_CHECKING:
    from kernel.engines.sqlite.connection import Fts5Row

BM25_K1 = 1.2  # k1 and b as in FTS5's bm25() (https://sqlite.org/fts5.html#the_bm25_function)
BM25_B = 0.75
COMMON_TERM_SHARE = 0.25  # a term in more documents than this hardly ranks: LoCoMo R@10 .750, with every term .740
_COMMON_TERM_WEIGHT = 0.01  # of its idf; above 0, so that documents with common terms only keep an order; not measured
_COMMON_TERM_MIN_DOCS = 50  # in fewer documents a quarter is no evidence that a term is common; not measured
_HEADER = struct.Struct("<If")  # tokens of the row, mean tokens of all rows; then a byte for each term
_MAX_TF = 255  # saturated long before: a frequency of 255 counts .5 % more than 128


def match_tf(row: "Fts5Row", *skip: Any) -> bytes:
    """Return the term frequencies of a row, as `pack_tf` packs them; an auxiliary function of FTS5.

    The first `skip` phrases of the expression select rows only and are not reported.
    """
    first = skip[0] if skip else 0
    common = row.aux_data
    if common is None:
        mean = row.column_total_size() / row.row_count - 1  # one token of each row is its partition term
        row.aux_data = common = (mean, range(first, row.phrase_count), _layout(row.phrase_count - first).pack)
    mean, phrases, pack = common
    counts = [len(text) + len(grams) for text, grams, _partition in map(row.phrase_locations, phrases)]
    try:
        return pack(row.column_size() - 1, mean, *counts)
    except struct.error:
        return pack_tf(counts, row.column_size() - 1, mean)


@lru_cache(maxsize=256)  # one entry for each number of terms up to MAX_QUERY_TERMS
def _layout(terms: int) -> struct.Struct:
    return struct.Struct(f"{_HEADER.format}{terms}B")


def pack_tf(counts: Sequence[int], length: int, mean_length: float) -> bytes:
    """Return length of a document (uint32), mean length (float32), and a term frequency of at most 255 for
    each term.
    """
    return _HEADER.pack(length, mean_length) + bytes([min(_MAX_TF, count) for count in counts])


def bm25(rows: Sequence[bytes], terms: int, total: int, frequencies: Sequence[int] | None) -> list[float]:
    """Return the BM25 score of each packed row for a query of `terms` terms; larger is better.

    `total` is the number of documents, `frequencies` the number that holds each term, or None if `rows` are all
    that hold any. Rows with fewer counts than terms have frequency 0 in the others. A term in more than
    COMMON_TERM_SHARE of the documents, such as a participant's name in a chat, hardly counts, unless all terms are.
    """
    if not rows:
        return []
    width = _HEADER.size + terms
    dtype = np.dtype([("length", "<u4"), ("mean", "<f4"), ("tf", np.uint8, (terms,))])
    table = np.frombuffer(b"".join([row.ljust(width, b"\0") for row in rows]), dtype)
    lengths, means, tf = table["length"], table["mean"], table["tf"].astype(np.float64)
    df = np.count_nonzero(tf, axis=0) if frequencies is None else np.minimum(frequencies, total)
    idf = np.log1p((total - df + 0.5) / (df + 0.5))
    common = df > total * COMMON_TERM_SHARE
    if total >= _COMMON_TERM_MIN_DOCS and not common.all():
        idf[common] *= _COMMON_TERM_WEIGHT
    norm = BM25_K1 * (1 - BM25_B + BM25_B * lengths / np.maximum(means, 1))
    return (tf * (BM25_K1 + 1) / (tf + norm[:, None]) @ idf).tolist()
