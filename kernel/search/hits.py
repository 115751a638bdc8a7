"""The evidence a search returns for one document."""

from typing import NamedTuple


class Hit(NamedTuple):
    """Evidence for one document; None where a signal did not run or did not find it.

    `text_rank` is BM25, larger is better; `similarity` the cosine in [-1, 1]; `distance` the L2 distance of the unit
    vectors in [0, 2]; `late` the late-interaction score.
    """

    doc: int
    space: str
    id: str
    text_rank: float | None
    distance: float | None
    similarity: float | None
    late: float | None = None
