"""Bit sketches of vectors: signs after fixed rotations about a middle, and how near a query is to many of them."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ROTATIONS = 2
_SMALLEST = 64 // ROTATIONS
_PLANES = 4
_STEPS = (1 << _PLANES) - 1
_FINE = 8
_MIDDLE = 0.5


class Probe(NamedTuple):
    """A query turned like the vectors it is compared with: its signs, and its values in bits of `_PLANES` planes."""

    signs: "NDArray[np.uint64]"
    planes: "NDArray[np.uint64]"

    def distance(self, words: "Sequence[NDArray[np.uint64]]", first: int = 0) -> "NDArray[np.uint16]":
        """In how many bits each sketch differs from that of the query; `words` are its columns from `first` on."""
        import numpy as np

        total = np.zeros(len(words[0]), np.uint16)
        for column, word in zip(words, self.signs[first:], strict=False):
            total += np.bitwise_count(column ^ word)
        return total

    def nearness(self, words: "Sequence[NDArray[np.uint64]]") -> "NDArray[np.int32]":
        """The product of the query's values and the signs of each sketch, but for factors: larger is nearer.

        Finer than `distance`, since the query keeps more than its signs, and several times as dear.
        """
        import numpy as np

        table = np.stack(words)
        total = np.bitwise_count(table).sum(0, dtype=np.int32) * -_STEPS
        for plane, mask in enumerate(self.planes):
            total += np.bitwise_count(table & mask[:, None]).sum(0, dtype=np.int32) << plane + 1
        return total


class Sketcher:
    """Turns vectors into `2 x dimensions` sign bits after two fixed rotations, the same on every machine.

    A rotation is a Hadamard matrix with fixed sign flips: no library's random numbers or factorisation is involved,
    so sketches stored by one process can be compared with those of another.

    What all texts have in common says nothing of any, and takes the place of what would in every sign: with the int8
    vector of such a text as `middle`, signs are of what differs from it. Measured at 1M, a sixth as many candidates
    by half of the bits then hold as many of the true ten.
    """

    def __init__(self, dimensions: int, middle: bytes = b"") -> None:
        import numpy as np

        common = np.frombuffer(middle, np.int8).astype(np.float64)
        self._middle = common * (_MIDDLE * _FINE / math.sqrt(common @ common)) if common.any() else None
        self._size = max(_SMALLEST, 1 << (dimensions - 1).bit_length())
        self._flips = np.array([_signs(self._size, seed) for seed in range(ROTATIONS)], np.float32)[:, :dimensions]
        self._left = _matrix(1 << (self._size.bit_length() - 1) // 2)
        self._right = _matrix(self._size // len(self._left))
        self.words = self._size * ROTATIONS // 64

    def sketch(self, vectors: Sequence[bytes]) -> list[bytes]:
        """The sketch of each int8 vector, `words` 64-bit words long."""
        import numpy as np

        return [row.tobytes() for row in np.packbits(self._turned(vectors) > 0, axis=1)] if vectors else []

    def probe(self, vector: bytes) -> Probe:
        """What compares one int8 vector with many sketches."""
        import numpy as np

        (values,) = self._turned([vector])
        scale = max(float(np.abs(values).max()), 1.0)
        steps = np.rint((values / scale + 1) * (_STEPS / 2)).astype(np.uint8)
        bits = [values > 0, *(steps >> plane & 1 for plane in range(_PLANES))]
        signs, *planes = (np.packbits(plane).view(np.uint64) for plane in bits)
        return Probe(signs, np.stack(planes))

    def _turned(self, vectors: Sequence[bytes]) -> "NDArray[Any]":
        import numpy as np

        count, dimensions = len(vectors), self._flips.shape[1]
        turned = np.zeros((count, ROTATIONS, self._size), np.float32)
        flat = self._moved(np.frombuffer(b"".join(vectors), np.int8).reshape(count, 1, dimensions))
        np.multiply(flat, self._flips, out=turned[:, :, :dimensions])
        # The transform of a length a x b is one of length a on the columns and one of length b on the rows.
        squares = turned.reshape(count, ROTATIONS, len(self._left), len(self._right))
        return (self._left @ (squares @ self._right)).reshape(count, -1)

    def _moved(self, flat: "NDArray[np.int8]") -> "NDArray[Any]":
        """The vectors less as much of the middle as their length asks for; whole numbers, whose sums are exact."""
        import numpy as np

        if self._middle is None:
            return flat
        wide = flat.astype(np.float32)
        lengths = np.sqrt(np.square(wide).sum(axis=2, keepdims=True), dtype=np.float64)
        return wide * _FINE - np.rint(lengths * self._middle).astype(np.float32)


def _signs(size: int, seed: int) -> list[float]:
    state = 0x9E3779B97F4A7C15 * (seed + 1) & 0xFFFFFFFFFFFFFFFF
    signs: list[float] = []
    for _ in range(size):
        state = (state * 6364136223846793005 + 1442695040888963407) & 0xFFFFFFFFFFFFFFFF
        signs.append(1.0 if state >> 63 else -1.0)
    return signs


def _matrix(size: int) -> "NDArray[np.float32]":
    import numpy as np

    matrix = np.ones((1, 1), np.float32)
    while len(matrix) < size:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    return matrix
