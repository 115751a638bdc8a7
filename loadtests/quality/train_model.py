"""Fit the model's token vectors to a teacher's vectors of whole texts; see `README.md` in this folder.

Takes the folder of the model whose word pieces are kept, texts (from `training_texts.py`) and a teacher's folder
(read by `minilm_baseline.py`); writes a folder with the same word pieces and new vectors. The teacher's vectors, hours
of work for one core, are cached in a file (.npy, a row for each text); if it exists, as many texts are read.
"""

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from kernel.embed.model import TokenVectors
from kernel.embed.tokenizer import ModelTokenizer
from loadtests.lib.servers import options
from loadtests.quality.minilm_baseline import Transformer

Array = NDArray[np.float32]
DIMENSIONS = 256
ROUNDS = 3
BATCH = 2048
RATE = 0.003
TOKEN_DROPOUT = 0.3  # share of tokens dropped per round, so that vectors do not co-adapt
SINGLE_TOKEN_WEIGHT = 0.8  # weight of the teacher's vector of a single token against 1 for the fitted one
FREQUENT = 1e-3  # SIF smoothing: initial weight a / (a + share of the token)
CUT = 0.999  # quantile of components that int8 covers without clipping
_START = 0.1
_WARMUP_STEPS = 20
_SAMPLE = 40_000


class Bags(NamedTuple):
    """Texts as token ids in one array; text n begins at `starts[n]` and has at least one token."""

    ids: NDArray[np.int64]
    starts: NDArray[np.int64]

    def take(self, texts: NDArray[np.int64]) -> "Bags":
        """The bags of these texts."""
        ends = np.append(self.starts, len(self.ids))
        lengths = ends[texts + 1] - ends[texts]
        starts = np.cumsum(lengths) - lengths
        return Bags(self.ids[np.arange(lengths.sum()) + np.repeat(ends[texts] - starts, lengths)], starts)

    def thinned(self, share: float, lot: np.random.Generator) -> "Bags":
        """A random share of the tokens removed; the first token drawn of each text stays."""
        draws = lot.random(len(self.ids))
        draws[self.starts] = 1.0
        kept = draws >= share
        return Bags(self.ids[kept], np.cumsum(kept)[self.starts] - 1)

    def sums(self, vectors: Array) -> Array:
        """The sum of the token vectors of each text."""
        return np.add.reduceat(vectors[self.ids], self.starts, axis=0)

    def spread(self, gradient: Array, size: int) -> Array:
        """For each of `size` tokens, the sum of the gradients of its texts."""
        lengths = np.diff(np.append(self.starts, len(self.ids)))
        order = np.argsort(self.ids, kind="stable")
        known, first = np.unique(self.ids[order], return_index=True)
        rows = np.repeat(np.arange(len(lengths)), lengths)[order]
        out = np.zeros((size, gradient.shape[1]), np.float32)
        out[known] = np.add.reduceat(gradient[rows], first, axis=0)
        return out


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the fitted model."""
    path = {"type": Path, "required": True}
    chosen = options(__doc__, arguments, model=path, teacher=path, texts=path, taught=path, into=path)
    vocabulary = msgspec.json.decode((chosen.model / "tokenizer.json").read_bytes())["model"]["vocab"]
    words = sorted(vocabulary, key=vocabulary.__getitem__)
    texts = [msgspec.json.decode(line, type=str) for line in chosen.texts.read_bytes().splitlines()]
    teacher = Transformer(chosen.teacher)
    if not chosen.taught.exists():
        np.save(chosen.taught, teacher.embed(texts).astype(np.float16))
    targets = np.load(chosen.taught).astype(np.float32)
    bags, known = bagged(ModelTokenizer(chosen.model, len(words)), texts[: len(targets)])
    print(f"{len(known):,} texts, {len(bags.ids):,} tokens")
    alone = teacher.alone(words)
    lengths = lengths_of(TokenVectors(chosen.model))
    vectors = reduced(bags, directed(fitted(bags, targets[known], alone), alone, lengths))
    save(chosen.model, chosen.into, whole(unit(vectors) * lengths[:, None]))
    return 0


def bagged(tokens: ModelTokenizer, texts: Sequence[str]) -> tuple[Bags, NDArray[np.int64]]:
    """The texts of two tokens or more, and their positions."""
    rows = [np.frombuffer(tokens.encode(text), "<u2") for text in texts]
    known = [at for at, row in enumerate(rows) if len(row) > 1]
    lengths = np.array([len(rows[at]) for at in known])
    ids = np.concatenate([rows[at] for at in known]).astype(np.int64)
    return Bags(ids, np.cumsum(lengths) - lengths), np.array(known)


def frequency(bags: Bags, size: int) -> Array:
    """The weight of each token, which falls with its share of all tokens."""
    count = np.bincount(bags.ids, minlength=size) + 1
    return (FREQUENT / (FREQUENT + count / count.sum())).astype(np.float32)


def fitted(bags: Bags, targets: Array, alone: Array, seed: int = 0) -> Array:
    """Token vectors fitted so that their sums point in the directions of the teacher's vectors: Adam on the cosine."""
    vectors = alone * frequency(bags, len(alone))[:, None] * np.float32(_START)
    lot = np.random.default_rng(seed)
    mean, square = np.zeros_like(vectors), np.zeros_like(vectors)
    steps = ROUNDS * (len(targets) // BATCH)
    for step, texts in enumerate(rounds(len(targets), lot), 1):
        gradient, cosine = slope(bags.take(texts).thinned(TOKEN_DROPOUT, lot), targets[texts], vectors)
        mean += 0.1 * (gradient - mean)
        square += 0.01 * (gradient * gradient - square)
        rate = RATE * min(1.0, step / _WARMUP_STEPS) * (1 - (step - 1) / steps)
        vectors -= rate / (1 - 0.9**step) * mean / (np.sqrt(square / (1 - 0.99**step)) + np.float32(1e-9))
        if step % 25 == 0 or step == steps:
            print(f"step {step} of {steps}: cosine {cosine:.3f}", flush=True)
    return vectors


def rounds(texts: int, lot: np.random.Generator) -> Iterator[NDArray[np.int64]]:
    """All texts in batches, in a new order for each round."""
    for _ in range(ROUNDS):
        order = lot.permutation(texts)
        yield from (order[at : at + BATCH] for at in range(0, texts - BATCH + 1, BATCH))


def slope(bags: Bags, targets: Array, vectors: Array) -> tuple[Array, float]:
    """The gradient of the summed cosines by token vector, and the mean cosine."""
    sums = bags.sums(vectors)
    lengths = np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), np.float32(1e-3))
    units = sums / lengths
    cosines = (units * targets).sum(axis=1, keepdims=True)
    return bags.spread((cosines * units - targets) / lengths, len(vectors)), float(cosines.mean())


def directed(vectors: Array, alone: Array, lengths: Array) -> Array:
    """Fitted directions blended with the teacher's vectors of single tokens, with the given lengths.

    The mean of the teacher's vectors is subtracted, since it brings all texts nearer. Fitted lengths are dropped: they
    make names light, so that the same fact about two people becomes a duplicate.
    """
    common: Array = alone.mean(axis=0)
    mixed = unit(vectors) + np.float32(SINGLE_TOKEN_WEIGHT) * unit(alone - common)
    return unit(mixed.astype(np.float32)) * lengths[:, None]


def lengths_of(vectors: TokenVectors) -> Array:
    """The norm of each token's vector."""
    rows = (vectors.sum(at.to_bytes(2, "little")) for at in range(vectors.vocabulary))
    return np.array([np.linalg.norm(row) for row in rows], np.float32)


def unit(vectors: Array) -> Array:
    """The rows, normalized."""
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), np.float32(1e-9))


def reduced(bags: Bags, vectors: Array) -> Array:
    """The principal directions of the text vectors, as many as the model has dimensions."""
    units = unit(bags.take(np.arange(min(_SAMPLE, len(bags.starts)))).sums(vectors))
    _, directions = np.linalg.eigh(units.T @ units)
    return vectors @ directions[:, ::-1][:, :DIMENSIONS]


def whole(vectors: Array) -> NDArray[np.int8]:
    """The vectors as int8: outliers are clipped, and every vector keeps a nonzero component."""
    scaled = vectors * (127 / np.quantile(np.abs(vectors).max(axis=1), CUT))
    least = np.maximum(1, 1 / np.maximum(np.abs(scaled).max(axis=1, keepdims=True), np.float32(1e-9)))
    return np.clip(np.rint(scaled * least), -127, 127).astype(np.int8)


def save(old: Path, new: Path, matrix: NDArray[np.int8]) -> None:
    """A model2vec folder with the tokenizer of the old one and these vectors."""
    new.mkdir(parents=True, exist_ok=True)
    shutil.copy(old / "tokenizer.json", new)
    config: dict[str, Any] = msgspec.json.decode((old / "config.json").read_bytes())
    config |= {"apply_pca": matrix.shape[1], "hidden_dim": matrix.shape[1]}
    (new / "config.json").write_bytes(msgspec.json.format(msgspec.json.encode(config), indent=2))
    tensor = {"embeddings": {"dtype": "I8", "shape": matrix.shape, "data_offsets": (0, matrix.size)}}
    header = msgspec.json.encode(tensor)
    header += b" " * (-len(header) % 8)
    (new / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + matrix.tobytes())


if __name__ == "__main__":
    raise SystemExit(main())
