"""The sketches of every vector in memory: a coarse nearest-neighbour stage, filtered by place before it chooses."""

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from kernel.search.binary_codes import Probe, Sketcher

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

CHUNK = 1 << 16
_WIDER = 16  # candidates by distance for every one that is wanted by nearness
_SAMPLE = 16
_SPARE = 8
_MOST = 4
_ROUGH = 0.05
_ROUGHLY = 2
_FARTHEST = 65535
_GONE = 0  # no place has this number


class Row(NamedTuple):
    """What is kept of one vector: its row id, the place of its document and its sketch; no place where it has none."""

    id: int
    place: int | None
    sketch: bytes


class Block(NamedTuple):
    """Many rows with rising ids, up to `last`: ids (int64) and places (uint32) as bytes, and the columns of the
    sketches (uint64) one after the other.
    """

    last: int
    ids: bytes
    places: bytes
    words: bytes


class Deletion(NamedTuple):
    """A vector that was deleted, and the number of this deletion; 0 numbers the last deletion nobody can read of."""

    id: int
    vector: int


class VectorFeed(NamedTuple):
    """What can be read of one snapshot of the store, each after the number given and in its order; at most `most` rows
    come at once.
    """

    blocks: Callable[[int], Sequence[Block]]
    rows: Callable[[int], Sequence[Row]]
    gone: Callable[[int], Sequence[Deletion]]
    most: int


class _Chunk:
    """At most `CHUNK` rows with rising ids; rows are added behind `count` and never moved."""

    def __init__(self, words: int) -> None:
        import numpy as np

        self.count = 0
        self.gone = 0
        self.ids = np.empty(CHUNK, np.int64)
        self.places = np.empty(CHUNK, np.uint32)
        self.words = [np.empty(CHUNK, np.uint64) for _ in range(words)]

    def add(self, ids: "NDArray[np.int64]", places: "NDArray[np.uint32]", words: "NDArray[np.uint64]") -> None:
        span = slice(self.count, self.count + len(ids))
        self.ids[span], self.places[span] = ids, places
        for column, new in zip(self.words, words, strict=True):
            column[span] = new
        self.count += len(ids)

    def drop(self, vectors: "NDArray[np.int64]") -> None:
        """Marks the rows of these ids as gone."""
        import numpy as np

        ids = self.ids[: self.count]
        inside = vectors[(vectors >= ids[0]) & (vectors <= ids[-1])]
        at = ids.searchsorted(inside)
        at = np.unique(at[ids[at] == inside])
        self.gone += int(np.count_nonzero(self.places[at]))
        self.places[at] = _GONE

    def without_gone(self) -> "_Chunk":
        """A chunk of the rows that are left."""
        import numpy as np

        left = np.flatnonzero(self.places[: self.count])
        chunk = _Chunk(len(self.words))
        chunk.add(self.ids[left], self.places[left], np.stack([column[left] for column in self.words]))
        return chunk


class Sketches:
    """The sketches of one model's vectors, grown by reading what is new and what was deleted.

    Row ids are never used twice by what was committed, so a row once loaded stays true until its deletion is read.
    """

    def __init__(self, sketcher: Callable[[], Sketcher]) -> None:
        self._make = sketcher
        self._lock = threading.Lock()
        self._sketcher: Sketcher | None = None
        self._chunks: list[_Chunk] = []
        self._last = 0
        self._sealed = 0
        self._seen = 0

    @property
    def last(self) -> int:
        """The largest row id read."""
        return self._last

    @property
    def sketcher(self) -> Sketcher:
        """The rotations, built at first use."""
        if self._sketcher is None:
            self._sketcher = self._make()
        return self._sketcher

    def extend(self, source: VectorFeed) -> None:
        """Reads what is new and what is gone since the last time; others who want to wait meanwhile."""
        import numpy as np

        with self._lock:
            gone = source.gone(self._seen)
            if gone and gone[0].id == 0 and gone[0].vector > self._seen:
                if self._last:  # some deletions can no longer be read
                    self._clear()
                    gone = source.gone(0)
                self._seen = gone[0].vector
            self._read(source)
            if vectors := [row.vector for row in gone if row.id > self._seen]:
                self._drop(np.array(vectors, np.int64))
                self._seen = gone[-1].id

    def nearest(self, vector: bytes, limit: int, places: Sequence[int] | None) -> list[int]:
        """At most `limit` row ids whose sketches are nearest to `vector`, inside `places` if given, nearest first."""
        import numpy as np

        chunks = [(chunk, chunk.count) for chunk in self._chunks]
        if not chunks or (places is not None and not places):
            return []
        probe = self.sketcher.probe(vector)
        found = _Near(probe, limit * _WIDER)
        wanted = None if places is None else np.array(places, np.uint32)
        for chunk, count in chunks:
            found.look(chunk, count, wanted)
        ids, words = found.best()
        near = probe.nearness(words) if len(ids) else np.empty(0, np.int32)
        if len(ids) > limit:
            best = np.argpartition(-near, limit)[:limit]
            ids, near = ids[best], near[best]
        return ids[np.argsort(-near, kind="stable")].tolist()

    @property
    def _width(self) -> int:
        return self.sketcher.words

    def _clear(self) -> None:
        self._chunks = []
        self._last = self._sealed = self._seen = 0

    def _read(self, source: VectorFeed) -> None:
        sound = self._last == self._sealed  # blocks are of use from the start on only
        while sound and (blocks := source.blocks(self._last)):
            for block in blocks:
                sound = sound and self._add_block(block)
        more = True
        while more and (rows := source.rows(self._last)):
            self._add_rows([row for row in rows if row.place is not None and row.id > self._last])
            self._last = max(self._last, rows[-1].id)
            more = len(rows) == source.most

    def _add_block(self, block: Block) -> bool:
        """Whether the block is whole; what comes after one that is not is read row by row."""
        import numpy as np

        count = len(block.ids) // 8
        if (len(block.ids), len(block.places), len(block.words)) != (8 * count, 4 * count, 8 * count * self._width):
            return False
        ids = np.frombuffer(block.ids, np.int64)
        words = np.frombuffer(block.words, np.uint64).reshape(self._width, count)
        known = int(ids.searchsorted(self._last, "right"))
        self._add(ids[known:], np.frombuffer(block.places, np.uint32)[known:], words[:, known:])
        self._last = self._sealed = block.last
        return True

    def _add_rows(self, rows: Sequence[Row]) -> None:
        import numpy as np

        if rows:
            bits = np.frombuffer(b"".join(row.sketch for row in rows), np.uint64).reshape(len(rows), -1)
            places = np.array([row.place for row in rows], np.uint32)
            self._add(np.array([row.id for row in rows], np.int64), places, bits.T)

    def _add(self, ids: Any, places: Any, words: Any) -> None:
        at = 0
        while at < len(ids):
            if not self._chunks or self._chunks[-1].count == CHUNK:
                self._chunks = [*self._chunks, _Chunk(self._width)]
            end = at + CHUNK - self._chunks[-1].count
            self._chunks[-1].add(ids[at:end], places[at:end], words[:, at:end])
            at = end

    def _drop(self, vectors: "NDArray[np.int64]") -> None:
        chunks: list[_Chunk] = []
        for chunk in self._chunks:
            chunk.drop(vectors)
            if chunk.gone * _SPARE > chunk.count:
                chunk = chunk.without_gone()
            if chunk.count:
                chunks.append(chunk)
        self._chunks = chunks


class _Near:
    """The rows of all chunks that differ least from a query: by half of each sketch, then of those by the whole."""

    def __init__(self, probe: Probe, room: int) -> None:
        self._probe = probe
        self._room = room
        self._half = (len(probe.signs) + 1) // 2
        self._parts: list[_Part] = []

    def look(self, chunk: _Chunk, count: int, places: "NDArray[np.uint32] | None") -> None:
        """Compares the first `count` rows of a chunk, or those of them in `places`."""
        import numpy as np

        words = [column[:count] for column in chunk.words[: self._half]]
        if places is None and not chunk.gone:
            self._parts.append(_Part(chunk, None, self._probe.distance(words)))
            return
        held = chunk.places[:count]  # rows may go while this is read: only what is made of it at once is counted
        chosen = np.flatnonzero(held != _GONE if places is None else _members(held, places))
        if 2 * len(chosen) > count:  # picking most of them costs more than to compare them all
            self._parts.append(_Part(chunk, chosen, self._probe.distance(words)[chosen]))
        elif len(chosen):
            self._parts.append(_Part(chunk, chosen, self._probe.distance([column[chosen] for column in words])))

    def best(self) -> "tuple[NDArray[np.int64], list[NDArray[np.uint64]]]":
        """Ids and sketches of about as many as there is room for."""
        import numpy as np

        total = sum(len(part.distance) for part in self._parts)
        if total > self._room:
            self._parts = _within(self._parts, max(_ROUGHLY * self._room, int(total * _ROUGH)))
            self._parts = _within([part.closer(self._probe, self._half) for part in self._parts], self._room)
        if not self._parts:
            return np.empty(0, np.int64), []
        return np.concatenate([part.chunk.ids[part.rows] for part in self._parts]), [
            np.concatenate([part.chunk.words[column][part.rows] for part in self._parts])
            for column in range(len(self._probe.signs))
        ]


class _Part(NamedTuple):
    """Rows of a chunk, all of the first ones where none are `chosen`, and how far they are from the query."""

    chunk: _Chunk
    chosen: "NDArray[np.int64] | None"
    distance: "NDArray[np.uint16]"

    @property
    def rows(self) -> "NDArray[np.int64] | slice":
        return slice(0, len(self.distance)) if self.chosen is None else self.chosen

    def closer(self, probe: Probe, first: int) -> "_Part":
        """With the distance by the words from `first` on too."""
        words = [column[self.rows] for column in self.chunk.words[first:]]
        return self._replace(distance=self.distance + probe.distance(words, first)) if words else self

    def taken(self, at: "NDArray[np.int64]") -> "_Part":
        return _Part(self.chunk, at if self.chosen is None else self.chosen[at], self.distance[at])


def _within(parts: Sequence[_Part], room: int) -> list[_Part]:
    """About as many of the nearest rows as there is room for; where too many are alike, the newest."""
    import numpy as np

    reach, left = _reach([part.distance for part in parts], room), room * _MOST
    found: list[_Part] = []
    for part in reversed(parts):
        at = np.flatnonzero(part.distance <= reach)[-left:] if left else np.empty(0, np.int64)
        left -= len(at)
        if len(at):
            found.append(part.taken(at))
    return found[::-1]


def _reach(distances: "Sequence[NDArray[np.uint16]]", room: int) -> int:
    """The distance within which as many rows lie as there is room for; guessed from some, and then widened."""
    import numpy as np

    total = sum(map(len, distances))
    if total <= room:
        return _FARTHEST
    some: NDArray[np.uint16] = np.concatenate([distance[::_SAMPLE] for distance in distances])
    sample: NDArray[np.int64] = np.bincount(some).cumsum()
    reach = int(np.count_nonzero(sample < room / total * sample[-1]))
    while sum(int(np.count_nonzero(distance <= reach)) for distance in distances) < room:
        reach += 1
    return reach


def _members(held: "NDArray[np.uint32]", places: "NDArray[np.uint32]") -> "NDArray[np.bool_]":
    """Where `held` is one of `places`; place numbers are small, so that a table of them is."""
    import numpy as np

    if len(places) == 1:
        return held == places[0]
    table = np.zeros(int(places.max()) + 2, np.bool_)
    table[places] = True
    return table[np.minimum(held, len(table) - 1)]
