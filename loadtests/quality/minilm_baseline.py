"""A BERT sentence transformer in numpy, as a baseline.

Its folder has `model.safetensors`, `tokenizer.json` and `config.json`. Every text is run through all layers,
mean-pooled and normalized; vectors equal those of sentence-transformers with all-MiniLM-L6-v2 to four decimals.
"""

import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from loadtests.quality.dataset import Collection
from loadtests.quality.engine_adapter import Ranking

_BATCH = 32
_MAX_TOKENS = 256
_EPSILON = 1e-12
_MASKED = -1e4
_KEPT = 200

Array = NDArray[np.float32]


class _Config(msgspec.Struct):
    num_hidden_layers: int
    num_attention_heads: int


class Transformer:
    """A BERT model: its weights and its embeddings of texts."""

    def __init__(self, folder: Path) -> None:
        config = msgspec.json.decode((folder / "config.json").read_bytes(), type=_Config)
        self._layers, self._heads = config.num_hidden_layers, config.num_attention_heads
        self._weights = _tensors(folder / "model.safetensors")
        self._tokenizer: Any = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(_MAX_TOKENS)

    def embed(self, texts: Sequence[str]) -> Array:
        """A unit vector for each text, in order; texts of like length are computed together."""
        return self.pooled([encoding.ids for encoding in self._tokenizer.encode_batch(list(texts))])

    def alone(self, words: Sequence[str]) -> Array:
        """A unit vector for each entry of the vocabulary as a text of its own."""
        start, *ids, end = map(self._tokenizer.token_to_id, ("[CLS]", *words, "[SEP]"))
        return self.pooled([[start, one, end] for one in ids])

    def pooled(self, ids: Sequence[Sequence[int]]) -> Array:
        """A unit vector for each row of token ids, in order."""
        order = sorted(range(len(ids)), key=lambda at: len(ids[at]))
        found: dict[int, Array] = {}
        for at in range(0, len(order), _BATCH):
            batch = order[at : at + _BATCH]
            found.update(zip(batch, self._run([ids[one] for one in batch]), strict=True))
        return np.stack([found[at] for at in range(len(ids))])

    def _run(self, ids: Sequence[Sequence[int]]) -> Array:
        longest = max(map(len, ids))
        padded = np.zeros((len(ids), longest), np.int64)
        mask = np.zeros((len(ids), longest), np.float32)
        for row, one in enumerate(ids):
            padded[row, : len(one)] = one
            mask[row, : len(one)] = 1
        hidden = self._embedded(padded)
        hidden_from = ((1 - mask) * _MASKED)[:, None, None, :]
        for number in range(self._layers):
            hidden = self._layer(hidden, hidden_from, f"encoder.layer.{number}.")
        pooled = (hidden * mask[:, :, None]).sum(axis=1)
        return pooled / np.linalg.norm(pooled, axis=1, keepdims=True)

    def _embedded(self, ids: NDArray[np.int64]) -> Array:
        words = self._weights["embeddings.word_embeddings.weight"][ids]
        places = self._weights["embeddings.position_embeddings.weight"][: ids.shape[1]]
        kind = self._weights["embeddings.token_type_embeddings.weight"][0]
        return self._normed(words + places + kind, "embeddings.LayerNorm")

    def _layer(self, x: Array, hidden_from: Array, name: str) -> Array:
        mixed = self._attended(x, hidden_from, f"{name}attention.self.")
        x = self._normed(x + self._linear(mixed, f"{name}attention.output.dense"), f"{name}attention.output.LayerNorm")
        wide = _gelu(self._linear(x, f"{name}intermediate.dense"))
        return self._normed(x + self._linear(wide, f"{name}output.dense"), f"{name}output.LayerNorm")

    def _attended(self, x: Array, hidden_from: Array, name: str) -> Array:
        count, length, size = x.shape
        shape = (count, length, self._heads, size // self._heads)
        query, key, value = (
            self._linear(x, name + part).reshape(shape).transpose(0, 2, 1, 3) for part in ("query", "key", "value")
        )
        scores = query @ key.transpose(0, 1, 3, 2) / np.float32(np.sqrt(shape[-1])) + hidden_from
        scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
        scores /= scores.sum(axis=-1, keepdims=True)
        return (scores @ value).transpose(0, 2, 1, 3).reshape(x.shape)

    def _linear(self, x: Array, name: str) -> Array:
        flat = x.reshape(-1, x.shape[-1]) @ self._weights[f"{name}.weight"].T  # one product instead of one a text
        return flat.reshape(*x.shape[:-1], -1) + self._weights[f"{name}.bias"]

    def _normed(self, x: Array, name: str) -> Array:
        x = x - x.mean(axis=-1, keepdims=True)
        x /= np.sqrt((x * x).mean(axis=-1, keepdims=True) + _EPSILON)
        return x * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]


class Teacher:
    """The vectors of a collection by a transformer, searched within a scope."""

    def __init__(self, folder: Path, collection: Collection) -> None:
        self._model = Transformer(folder)
        vectors = dict(
            zip(
                (doc.id for doc in collection.docs),
                self._model.embed([doc.text for doc in collection.docs]),
                strict=True,
            )
        )
        self._scopes = {
            scope: ([doc.id for doc in docs], np.stack([vectors[doc.id] for doc in docs]))
            for scope, docs in collection.scopes.items()
        }

    def find(self, text: str, scope: str) -> Ranking:
        """The nearest by cosine."""
        if scope not in self._scopes:
            return Ranking({}, 0.0)
        keys, vectors = self._scopes[scope]
        begun = time.perf_counter()
        near = vectors @ self._model.embed([text])[0]
        best = np.argsort(-near, kind="stable")[:_KEPT]
        return Ranking({keys[at]: float(near[at]) for at in best}, time.perf_counter() - begun)


def _tensors(path: Path) -> dict[str, Array]:
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    head: dict[str, Any] = msgspec.json.decode(data[8 : 8 + size])
    found: dict[str, Array] = {}
    for name, about in head.items():
        if about.get("dtype") in ("F32", "F16"):
            begin, end = (8 + size + offset for offset in about["data_offsets"])
            values = np.frombuffer(data[begin:end], "<f4" if about["dtype"] == "F32" else "<f2").astype(np.float32)
            found[name.removeprefix("bert.")] = values.reshape(about["shape"])
    return found


def _gelu(x: Array) -> Array:
    """x times the normal distribution's function at x, by Abramowitz and Stegun 7.1.26, to seven decimals."""
    z = np.abs(x) / np.float32(math.sqrt(2))
    t = 1 / (1 + np.float32(0.3275911) * z)
    series = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    below = 0.5 * series * np.exp(-z * z)
    return x * np.where(x < 0, below, 1 - below)
