"""The evidence a search returns for documents."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ids = NDArray[np.int64]
    Floats = NDArray[np.float64]
    Array = NDArray[Any]


class Hit(NamedTuple):
    """Evidence for one document; None where a signal did not run or did not find it.

    `text_rank` is BM25, larger is better; `similarity` the cosine in [-1, 1]; `distance` the L2 distance of the unit
    vectors in [0, 2]; `late` the late-interaction score. `space` and `id` are empty where they were not read.
    """

    doc: int
    space: str
    id: str
    text_rank: float | None
    distance: float | None
    similarity: float | None
    late: float | None = None


class Candidates(NamedTuple):
    """Documents in rising order of their ids, with BM25, cosine and late interaction; NaN where a signal found none."""

    docs: "Ids"
    words: "Floats"
    meaning: "Floats"
    late: "Floats"

    def take(self, at: "Array") -> "Candidates":
        """The documents at these positions, or where a mask is true."""
        return Candidates(*(column[at] for column in self))


def candidates(ranks: Mapping[int, float], cosines: Mapping[int, float]) -> Candidates:
    """The documents found by words, with their BM25, and those found by meaning, with their cosine."""
    import numpy as np

    docs = sorted(ranks.keys() | cosines.keys())
    none = float("nan")
    return Candidates(
        np.array(docs, np.int64),
        np.array([ranks.get(doc, none) for doc in docs], np.float64),
        np.array([cosines.get(doc, none) for doc in docs], np.float64),
        np.full(len(docs), none),
    )
