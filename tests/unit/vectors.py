"""Vectors to search among, the same in every run."""

import numpy as np


def fixed(count: int, dimensions: int) -> list[bytes]:
    """Vectors from arithmetic alone, so that no library's random numbers are in the digests below."""
    state = 1
    vectors: list[bytes] = []
    for _ in range(count):
        letters = bytearray()
        for _ in range(dimensions):
            state = (state * 48271) % 0x7FFFFFFF
            letters.append(state % 255 - 127 & 0xFF)
        vectors.append(bytes(letters))
    return vectors


def clustered(count: int, centres: int, seed: int, dimensions: int = 256) -> list[bytes]:
    """Int8 vectors around some centres, as texts on a few subjects are."""
    random = np.random.default_rng(seed)
    middle = random.normal(size=(centres, dimensions))
    points = middle[random.integers(0, centres, count)] + random.normal(size=(count, dimensions)) * 0.8
    whole = np.rint(points / np.abs(points).max(axis=1, keepdims=True) * 127).astype(np.int8)
    return [row.tobytes() for row in whole]
