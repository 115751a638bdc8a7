"""Binary codes of vectors ("sketches"): signs after fixed rotations, and a finer comparison than by bits."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from kernel.core.lazy_numpy import Array, Matrix, np

ROTATIONS = 2  # sign bits per dimension: 512 bits at 256 dimensions, 76 bytes a row with id and partition
_MIN_SIZE = 64 // ROTATIONS  # dimensions, so that a sketch fills one 64-bit word
_QUERY_BITS = 4  # bits per value of the query in `SketchQuery.dot`; not measured
_QUERY_LEVELS = (1 << _QUERY_BITS) - 1
_FIXED_POINT = 8  # int8 vectors are scaled by it before centring, so that sums of whole numbers stay exact
_CENTRE_SHARE = 0.5  # of the common direction that is subtracted: at 1M a sixth of the candidates gives the same recall


class SketchQuery(NamedTuple):
    """A query, rotated like the vectors: its signs, and its values as bit planes of _QUERY_BITS bits."""

    signs: Array
    planes: Array

    def dot(self, sketches: Array) -> Array:
        """Return the product of the query's values and the signs of each sketch, up to scale and offset; larger is
        nearer.

        Finer than the Hamming distance, since the query is not reduced to signs, and several times as expensive.
        """
        table = sketches.view(np.uint64)
        total = np.bitwise_count(table).sum(1, dtype=np.int32) * -_QUERY_LEVELS
        for plane, mask in enumerate(self.planes):
            total += np.bitwise_count(table & mask).sum(1, dtype=np.int32) << plane + 1
        return total


class Sketcher:
    """Encodes int8 vectors as `ROTATIONS x dimensions` sign bits, the same on every machine.

    A rotation is a Hadamard matrix with fixed sign flips. No library's random numbers or factorisation is involved,
    so sketches of different processes can be compared.

    All texts share a direction that would decide most signs. `centre` is the int8 vector of a text without content:
    half of the length along it is subtracted first.
    """

    def __init__(self, dimensions: int, centre: bytes = b"") -> None:
        self.dimensions = dimensions
        common = np.frombuffer(centre, np.int8).astype(np.float64)
        self._centre = common * (_CENTRE_SHARE * _FIXED_POINT / math.sqrt(common @ common)) if common.any() else None
        self._size = max(_MIN_SIZE, 1 << (dimensions - 1).bit_length())
        self._flips = np.array([_signs(self._size, seed) for seed in range(ROTATIONS)], np.float32)[:, :dimensions]
        self._left = _hadamard(1 << (self._size.bit_length() - 1) // 2)
        self._right = _hadamard(self._size // len(self._left))
        self.words = self._size * ROTATIONS // 64

    def sketch(self, vectors: Sequence[bytes]) -> list[bytes]:
        """Return the sketch of each int8 vector, `words` 64-bit words long."""
        return [row.tobytes() for row in np.packbits(self._rotated(vectors) > 0, axis=1)] if vectors else []

    def query(self, vector: bytes) -> SketchQuery:
        """Return an int8 vector, prepared for comparison with many sketches."""
        (values,) = self._rotated([vector])
        scale = max(float(np.abs(values).max()), 1.0)
        levels = np.rint((values / scale + 1) * (_QUERY_LEVELS / 2)).astype(np.uint8)
        bits = [values > 0, *(levels >> plane & 1 for plane in range(_QUERY_BITS))]
        signs, *planes = (np.packbits(plane) for plane in bits)
        return SketchQuery(signs, np.stack(planes).view(np.uint64))

    def _rotated(self, vectors: Sequence[bytes]) -> Array:
        count, dimensions = len(vectors), self._flips.shape[1]
        rotations = np.zeros((count, ROTATIONS, self._size), np.float32)
        flat = self._centred(np.frombuffer(b"".join(vectors), np.int8).reshape(count, 1, dimensions))
        np.multiply(flat, self._flips, out=rotations[:, :, :dimensions])
        # A Hadamard transform of length a x b is a transform of length a over the columns, then of length b over the
        # rows.
        squares = rotations.reshape(count, ROTATIONS, len(self._left), len(self._right))
        return (self._left @ (squares @ self._right)).reshape(count, -1)

    def _centred(self, flat: Array) -> Array | Matrix:
        """Return the vectors, scaled, less the centre in proportion to their length: whole numbers, with exact sums."""
        if self._centre is None:
            return flat
        wide = flat.astype(np.float32)
        lengths = np.sqrt(np.square(wide).sum(axis=2, keepdims=True), dtype=np.float64)
        return wide * _FIXED_POINT - np.rint(lengths * self._centre).astype(np.float32)


def _signs(size: int, seed: int) -> list[float]:
    """Signs from a 64-bit linear congruential generator with Knuth's MMIX constants; they are part of the format."""
    state = 0x9E3779B97F4A7C15 * (seed + 1) & 0xFFFFFFFFFFFFFFFF
    signs: list[float] = []
    for _ in range(size):
        state = (state * 6364136223846793005 + 1442695040888963407) & 0xFFFFFFFFFFFFFFFF
        signs.append(1.0 if state >> 63 else -1.0)
    return signs


def _hadamard(size: int) -> Matrix:
    matrix = np.ones((1, 1), np.float32)
    while len(matrix) < size:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    return matrix
