"""Evidence for a search: what a hit tells, where a search looks, and what it remembers between calls."""

import zlib
from collections.abc import Callable, Container, Sequence
from typing import Any, NamedTuple

import msgspec

from kernel.embed.model import Embedding
from kernel.errors import Fault
from kernel.search.ann import Sketches
from kernel.search.query import SMALL, STOP_WORDS
from kernel.store.transaction import Tx

FEW = 64
COMMON = " ".join(sorted(STOP_WORDS))  # a text that says what all texts say
_COMMON_DIGEST = zlib.crc32(COMMON.encode())
_FREQUENCY_DRIFT = 1.125
_MOST_COUNTED = 64


class Hit(NamedTuple):
    """Evidence about one document; None where a signal did not run or did not find it.

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


class SearchCache:
    """What search keeps between calls: sketches of the vectors and how often words occur.

    While it is `warming` somebody reads the sketches beside the calls, which need not wait for them.
    """

    def __init__(self, sketches: Sketches) -> None:
        self.sketches = sketches
        self.warming = False
        self._frequencies: dict[str, int] = {}
        self._total = 0
        self._changer: Tx | None = None

    def change(self, tx: Tx) -> None:
        """Notes that `tx` sees rows, or the lack of rows, that a rollback would undo."""
        self._changer = tx

    def can_cache(self, tx: Tx) -> bool:
        """Whether all that `tx` sees of the index is committed, so that it may be kept for others."""
        return tx.readonly or tx is not self._changer

    def frequencies(
        self, total: int, stems: Sequence[str], count: Callable[[list[str]], dict[str, int]]
    ) -> dict[str, int]:
        """How many documents hold each stem; counted once, and again when the index has grown by an eighth."""
        if not self._total <= total <= self._total * _FREQUENCY_DRIFT:
            self._frequencies = {}
            self._total = total
        known = self._frequencies
        if missing := [stem for stem in stems if not known.get(stem)]:
            known.update(count(missing))
        return {stem: known.get(stem, 0) for stem in stems}


class PartitionSet(NamedTuple):
    """Where a search looks: `small` places hold few documents together, `large` ones more.

    `held` is the number of documents where there are no large places; with `few` it is worth to read them all.
    """

    ids: Sequence[int]
    small: Sequence[int]
    large: Sequence[int]
    held: int
    few: bool


class _Size(NamedTuple):
    place: int
    docs: int


def partitions_within(tx: Tx, ids: Sequence[int]) -> PartitionSet:
    """The places of these numbers, told apart by how many documents they hold."""
    return PartitionSet(ids, (), ids, 0, few=False) if len(ids) > _MOST_COUNTED else _told_apart(ids, _sizes(tx, ids))


def partitions_of(tx: Tx, ids: Sequence[int], large: Container[int]) -> list[PartitionSet]:
    """Each of these places by itself, of which some are known to be `large`."""
    sizes = {size.place: size for size in _sizes(tx, [one for one in ids if one not in large])}
    return [_told_apart([one], [sizes.get(one) or _Size(one, SMALL + 1)]) for one in ids]


def _sizes(tx: Tx, ids: Sequence[int]) -> list[_Size]:
    return tx.all("kernel.evidence.partition_sizes", _Size, places=as_json(ids), most=SMALL + 1) if ids else []


def _told_apart(ids: Sequence[int], sizes: Sequence[_Size]) -> PartitionSet:
    held = sum(size.docs for size in sizes)
    small: list[int] = []
    room = SMALL
    for size in sorted(sizes, key=lambda size: size.docs):
        room -= size.docs
        if room >= 0:
            small.append(size.place)
    return PartitionSet(ids, small, sorted(set(ids) - set(small)), held, few=held <= FEW)


def model_id(tx: Tx) -> int:
    """The number under which the configured model's vectors are stored; 0 before the first, or without a model."""
    known = kind(tx)
    return tx.one("kernel.evidence.model_id", int, identity=known[0]) or 0 if known else 0


def kind(tx: Tx) -> tuple[str, int] | None:
    """What vectors and their sketches must have in common to be compared, and their dimensions."""
    known = tx.embedding_model
    return known and (f"{known[0]}/{_COMMON_DIGEST:08x}", known[1])


def has_model(tx: Tx) -> bool:
    """Whether an embedding model is configured and can be read."""
    return tx.embedding_model is not None


def embedded(tx: Tx, texts: Sequence[str]) -> list[Embedding] | None:
    """The embeddings of `texts`, or None where the model cannot be read: words alone must do then."""
    try:
        return tx.embed(texts)
    except Fault as fault:
        if fault.code != "disabled":
            raise
        return None


def as_json(value: Any) -> str:
    """`value` as the JSON text that `json_each` takes."""
    return msgspec.json.encode(value).decode()
