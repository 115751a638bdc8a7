"""The evidence a search returns for documents."""

import math
from collections.abc import Mapping, Sequence
from itertools import repeat
from typing import Any, NamedTuple

from msgspec import Struct

from kernel.core.lazy_numpy import Array, Floats, Ids, np


class Hit(Struct, frozen=True, order=True, gc=False):
    """Evidence for one document; None if a signal did not run or did not find it.

    `text_rank` is BM25, larger is better; `similarity` the cosine in [-1, 1]; `distance` the L2 distance of the unit
    vectors in [0, 2]; `late` the late-interaction score. `space` and `id` are empty if they were not read.
    """

    doc: int
    space: str = ""
    id: str = ""
    text_rank: float | None = None
    distance: float | None = None
    similarity: float | None = None
    late: float | None = None


class Reading(NamedTuple):
    """A query as it was read, the BM25 of a text of mean length that holds each of its words once, the number of its
    words but for function words, and that of the documents searched; whether it was searched for by words, whether
    it asks for something to be done or advised, the documents of the days that it names, whether it names a value, and
    the standing instructions that may bear on it.
    """

    text: str = ""
    information: float = 0.0
    words: int = 1
    documents: int = 1
    by_words: bool = True
    is_request: bool = False
    dated: Sequence[int] = ()
    names_value: bool = False
    instructions: Sequence[int] = ()


class Candidates(NamedTuple):
    """Documents in rising order of their ids, with BM25, cosine, late interaction, the shares of the query's subject
    that they hold, exactly and nearly, and that of the value that the query is or names, 0 for another value; NaN if a
    signal found none.
    """

    docs: Ids
    words: Floats
    meaning: Floats
    late: Floats
    exact: Floats
    near: Floats
    value: Floats
    query: Reading = Reading()

    @property
    def columns(self) -> tuple[Ids, Floats, Floats, Floats, Floats, Floats, Floats]:
        """Return ids and evidence, without the query that they share."""
        return self.docs, self.words, self.meaning, self.late, self.exact, self.near, self.value

    def take(self, at: Array | Sequence[int]) -> "Candidates":
        """Return the documents at these positions or of a mask."""
        evidence = [column[at] for column in self.columns[1:]]
        return Candidates(self.docs[at], *evidence, query=self.query)

    def joined(self, more: "Candidates") -> "Candidates":
        """Both, in rising order of their ids."""
        pairs: Any = zip(self.columns, more.columns, strict=True)
        docs, *evidence = map(np.concatenate, pairs)
        return Candidates(docs, *evidence, query=self.query).sorted()

    def sorted(self) -> "Candidates":
        """Return the same in rising order of their ids."""
        return self.take(self.docs.argsort())


def candidates(ranks: Mapping[int, float], cosines: Mapping[int, float], query: Reading = Reading()) -> Candidates:
    """Return the documents found by words, with their BM25, and those found by meaning, with their cosine."""
    docs, missing = sorted({*ranks, *cosines}), repeat(math.nan)
    words, meaning = [np.fromiter(map(evidence.get, docs, missing), np.float64) for evidence in (ranks, cosines)]
    return Candidates(np.array(docs, np.int64), words, meaning, *np.full((4, len(docs)), math.nan), query=query)


def positions(docs: Ids, ids: Ids) -> Ids:
    """Return the position of each of `ids` in the rising `docs`, -1 if it is absent."""
    at = docs.searchsorted(ids)
    return np.where(docs.take(at, mode="clip") == ids, at, -1) if len(docs) else at - 1
