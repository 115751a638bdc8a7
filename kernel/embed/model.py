"""Static embeddings of texts: token ids, the mean of their vectors, one int8 vector per text.

Late interaction (MaxSim) tells how well a text matches a query token by token, over the same vectors of tokens.
"""

import hashlib
import math
import mmap
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from kernel.embed.tokenizer import NO_BITS, ModelTokenizer, MoreKeys, id_width

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[Any]
    Floats = NDArray[np.float32]
    Ids = NDArray[np.unsignedinteger] | NDArray[np.signedinteger]
    Sizes = NDArray[np.int64]
    VectorLookup = Callable[[Ids], tuple[Floats, Floats]]  # the vectors of token ids, a row of each, and their lengths

MAX_QUERY_TOKENS = 16  # the heaviest of a long query; bounds its cost; not measured
LENGTH_PENALTY = 0.04  # times ln(tokens): long texts have better maxima by chance; no record of the choice
OPENING_TOKENS = 16  # with 12 or 24, nDCG@10 differs by at most .007, either way
_BIGRAM_SHARE = 1 / 3  # of the score comes from pairs of adjacent tokens; no record of the choice
_BATCH_TOKENS = 8192  # token positions compared together, so that the cosines stay in the processor's cache
_NO_TOKEN = -9.0  # the cosine if a text has no token any more: less than any sum of two
_EPSILON = 1e-12  # avoids division by zero
_SAME = 0.999  # the cosine of a token and itself, but for rounding


class Interaction(NamedTuple):
    """The scores of some texts for a query, the share of the query's subject that each holds, and the same with its
    likest tokens in place of equal ones; the heavier a token, the more it counts, by the square. Then the best cosine
    of each text (a row) and token of the query, and the share of the subject that each token has.
    """

    scores: "Floats"
    exact: "Floats"
    near: "Floats"
    cosines: "Floats"
    shares: "Floats"


def interaction(
    query: "Ids",
    tokens: "Ids",
    sizes: "Sizes",
    token_vectors: "VectorLookup",
    opening_share: float = 0.0,
    subject: "Ids | Sequence[int]" = (),
) -> Interaction:
    """Return a score of at most 1 for each text, and the shares of the query's `subject` that it holds, by default of
    all its tokens. `tokens` are the ids of all texts in turn, of which each has `sizes`.

    MaxSim as in ColBERT: for each query token the best cosine among the text's tokens, weighted by the length of the
    query token's vector, which is small for common tokens. A third of the score is the same over pairs of adjacent
    tokens, and LENGTH_PENALTY times the log of the text's tokens is subtracted. `opening_share` is the share of the
    score that the first OPENING_TOKENS tokens have, scored as a text of their own. 0 for a text without tokens.
    """
    import numpy as np

    results = np.zeros((3, len(sizes)), np.float32)
    vectors, weights = token_vectors(query)
    if len(query) > MAX_QUERY_TOKENS:
        heaviest = np.sort(np.argsort(-weights, kind="stable")[:MAX_QUERY_TOKENS])
        query, vectors, weights = query[heaviest], vectors[heaviest], weights[heaviest]
    shares, every = weights**2, np.zeros((len(sizes), len(query)), np.float32)
    if not len(tokens) or not np.add.reduce(weights) > _EPSILON:
        return Interaction(results[0], results[1], results[2], every, shares)
    if len(subject):
        about = np.logical_or.reduce(query[:, None] == subject, axis=1)
        shares = shares * about if np.logical_or.reduce(about) else shares
    shares /= max(float(np.add.reduce(shares)), _EPSILON)
    # Every distinct token is compared once: texts of one query share many of them.
    occurs = np.zeros(int(np.maximum.reduce(tokens)) + 1, np.bool_)
    occurs[tokens] = True
    (distinct,) = occurs.nonzero()
    positions = np.empty(len(occurs), np.intp)
    positions[distinct] = np.arange(len(distinct))
    cosines = _cosines(vectors, weights, *token_vectors(distinct))
    present, starts = positions.take(tokens), sizes.cumsum() - sizes
    for texts in _batches(sizes):
        begins, lengths = starts[texts], sizes[texts]
        # A row for each position, a column for each text.
        table = begins + np.arange(int(np.maximum.reduce(lengths)))[:, None]
        table = np.where(table < begins + lengths, present.take(table, mode="clip"), len(distinct))
        best, results[0, texts] = _score_batch(cosines.take(table, 0), lengths, weights, opening_share)
        results[1, texts], results[2, texts] = (best > _SAME) @ shares, np.maximum(best, 0) @ shares
        every[texts] = best
    return Interaction(results[0], results[1], results[2], every, shares)


def unmatched(first: "Ids", second: "Ids", token_vectors: "VectorLookup") -> tuple[float, float]:
    """Return how heavy the token of each text is that is least like any of the other text, over the mean weight of all.

    The weight of a token is the length of its vector, times 1 minus the best cosine; 0 if a text has no token.
    """
    import numpy as np

    if not len(first) or not len(second):
        return 0.0, 0.0
    (vectors, weights), (second_vectors, second_weights) = token_vectors(first), token_vectors(second)
    cosines = _cosines(second_vectors, second_weights, vectors, weights)[:-1]
    left = (weights * (1 - cosines.max(axis=1))).max(), (second_weights * (1 - cosines.max(axis=0))).max()
    mean = max(float(np.concatenate([weights, second_weights]).mean()), _EPSILON)
    return float(left[0]) / mean, float(left[1]) / mean


def _batches(sizes: "Sizes") -> "Iterator[Ids]":
    """Return the texts with tokens, in batches of at most _BATCH_TOKENS positions if each is filled up to the
    longest.
    """
    import numpy as np

    batches: list[Any] = [sizes.nonzero()[0]]
    while batches:
        texts = batches.pop()
        if len(texts) > 1 and int(np.maximum.reduce(sizes[texts])) * len(texts) > _BATCH_TOKENS:
            batches += np.array_split(texts[np.argsort(sizes[texts], kind="stable")], 2)
        else:
            yield texts


def _cosines(query: "Floats", query_lengths: "Floats", vectors: "Floats", lengths: "Floats") -> "Floats":
    """Return the cosine of each vector (a row) and each of the query's (a column), and a last row of _NO_TOKEN."""
    import numpy as np

    cosines = np.empty((len(vectors) + 1, len(query)), np.float32)
    # Of int8 vectors a product in float32 takes less time than SIMD over int8 pair by pair, and is exact.
    np.matmul(vectors, query.T, out=cosines[:-1])
    cosines[:-1] /= np.maximum(lengths, _EPSILON)[:, None]
    cosines[:-1] /= np.maximum(query_lengths, _EPSILON)
    cosines[-1] = _NO_TOKEN
    return cosines


def _score_batch(cosines: "Floats", sizes: "Sizes", weights: "Floats", opening_share: float) -> "tuple[Array, Array]":
    """Return the best cosine of each text (a row) and query token, and the score of each text; `cosines` are by
    position, text and query token.
    """
    import numpy as np

    table = cosines.reshape(len(cosines), -1)
    flat, step = table.ravel(), table.shape[1] + 1
    # Each cosine and that of the next tokens, as one sum; the sums over the end of the query are not used.
    pairs = np.empty_like(table[:-1])
    np.add(flat[:-step], flat[step:], out=pairs.reshape(-1)[:-1])
    pairs.reshape(-1)[-1:] = 0.0
    best = np.maximum.reduce(table).reshape(-1, len(weights))  # `max` and `sum` are Python around these
    scores = _scores(best, pairs, weights) - np.float32(LENGTH_PENALTY) * _log(sizes)
    if opening_share:
        best_of_opening = np.maximum.reduce(table[:OPENING_TOKENS]).reshape(-1, len(weights))
        opening = _scores(best_of_opening, pairs[: OPENING_TOKENS - 1], weights)
        opening -= np.float32(LENGTH_PENALTY) * _log(np.minimum(sizes, OPENING_TOKENS))
        scores += np.float32(opening_share) * (opening - scores)
    return best, scores


def _scores(best: "Floats", pairs: "Floats", weights: "Floats") -> "Floats":
    """Return the weighted mean of the best cosine of each token, and that of each pair of tokens, added up."""
    import numpy as np

    scores = best @ weights / np.add.reduce(weights)
    if len(weights) > 1:
        of_pairs = weights[:-1] + weights[1:]
        pair = np.maximum.reduce(pairs, initial=0.0).reshape(-1, len(weights))
        scores += _BIGRAM_SHARE * (pair[:, :-1] @ of_pairs / (2 * np.add.reduce(of_pairs)) - scores)
    return scores


def _log(sizes: "Sizes") -> "Floats":
    import numpy as np

    return np.log(sizes).astype(np.float32)


FILES = ("config.json", "tokenizer.json", "model.safetensors")
MORE_KEYS = ("more_keys", "more_ids", "more_beginnings", "more_lengths")  # tensors, the columns of MoreKeys
MORE_BITS = "more_keys.bits"  # no part of the identity, since vectors are the same without it
_INTEGERS = {"I8": "i1", "U8": "u1", "U16": "<u2", "I32": "<i4", "U32": "<u4", "I64": "<i8", "U64": "<u8"}
_DTYPES = _INTEGERS | {"F16": "<f2", "F32": "<f4", "F64": "<f8"}
# Of its tokens, and two or half of them: a name alone is none. Of 9,019 English texts 4 have as many, of 360 others 11
# fewer.
_FOREIGN_SHARE = 0.1
_NEIGHBOUR_TOKENS = 160  # of short texts summed at once: with 512 a write of 64 texts takes a fortieth longer
_SLICE_TOKENS = 512  # summed at once: bounds memory and rounding errors of a huge text; 512 is the shipped maximum
_MIN_PEAK = 1e-30  # below this a float32 cannot be scaled up without overflow
_MAX_HEADER_BYTES = 1 << 20  # of a safetensors file; that of the shipped model has 80


class Embedding(NamedTuple):
    """One embedded text; a text without any known token has a zero `vector`, `scale` 0.0 and no `tokens`.

    `vector` holds one signed byte per dimension, the largest being 127 or -127; times `scale` it is the unit vector.
    `tokens` holds the pooled token ids, little-endian, two bytes each, or four if the vocabulary exceeds 65,536.
    """

    vector: bytes
    scale: float
    tokens: bytes

    def cosine(self, other: "Embedding") -> float:
        import numpy as np

        left, right = (np.frombuffer(embedding.vector, np.int8).astype(np.float32) for embedding in (self, other))
        return float(left @ right) * self.scale * other.scale


class Embedder:
    """A model2vec folder, read at first use; safe to share between threads.

    Everything that reads the folder raises OSError for a missing and ValueError for a malformed file. The files
    stay mapped: replace the folder, never write into it, while a process uses it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = threading.Lock()
        self._loaded: tuple[ModelTokenizer, TokenVectors] | None = None
        self._last_words: tuple[str, Array, Array] | None = None  # of `nearest`, the same in each recall
        self._naming = threading.Lock()
        self._digest = ""

    @cached_property
    def identity(self) -> str:
        """Return the folder's name and a digest of its three files; vectors of different identities cannot be
        compared.
        """
        with self._naming:
            self._digest = self._digest or _digest_of(self.folder)
        return f"{self.folder.name}@{self._digest}"

    @cached_property
    def dimensions(self) -> int:
        return _layout(self.folder)["embeddings"].shape[1]

    @property
    def ready(self) -> bool:
        """Return whether the model is loaded, so that `embed` reads no files."""
        return self._loaded is not None

    def load(self) -> None:
        """Maps the vectors and reads the vocabulary, once, while another thread computes the identity."""
        if not self.ready:
            threading.Thread(target=self._identify, name="quipu-identity", daemon=True).start()
        self._load()

    def embed(self, texts: Sequence[str]) -> list[Embedding]:
        """Return one embedding per text, in order; loads the model if that has not happened yet."""
        tokenizer, vectors = self._loaded or self._load()
        return vectors.embed([tokenizer.encode_words(text) for text in texts])

    def tokens(self, text: str) -> bytes:
        """Return the `tokens` that the `Embedding` of a text has."""
        tokenizer, _ = self._loaded or self._load()
        return tokenizer.encode_words(text)

    def knows(self, word: str) -> bool:
        """Return whether a word is a single token of `tokenizer.json`; the keys beside it do not count."""
        tokenizer, _ = self._loaded or self._load()
        return tokenizer.is_word(word)

    def unmatched(self, first: bytes, second: bytes) -> tuple[float, float]:
        """Return the weight of the content that each of two texts has and the other lacks; both are `tokens` of an
        `Embedding`.
        """
        _, vectors = self._loaded or self._load()
        return unmatched(vectors.ids(first), vectors.ids(second), vectors.rows)

    def nearest(self, tokens: bytes, words: str) -> float:
        """Return the largest cosine of a token of a text and a token of some words; 0 if it is negative."""
        import numpy as np

        tokenizer, vectors = self._loaded or self._load()
        of_words = self._last_words
        if of_words is None or of_words[0] != words:
            of_words = self._last_words = words, *vectors.rows(vectors.ids(tokenizer.encode_words(words)))
        cosines = _cosines(*of_words[1:], *vectors.rows(vectors.ids(tokens)))
        return float(np.maximum.reduce(cosines[:-1], axis=None, initial=0.0))

    def interaction(
        self, query: bytes, texts: Sequence[bytes], opening: float = 0.0, subject: bytes = b""
    ) -> Interaction:
        """Return the late interaction of each text and the query, and the shares of the query's subject that it holds.

        All are the `tokens` of an `Embedding`; `opening` is the share of the score that a text's first tokens have.
        """
        _, vectors = self._loaded or self._load()
        ids = vectors.ids
        return interaction(ids(query), ids(b"".join(texts)), vectors.counts(texts), vectors.rows, opening, ids(subject))

    def counts(self, texts: Sequence[bytes]) -> "NDArray[np.int64]":
        """Return the number of tokens of each text, given as the `tokens` of an `Embedding`."""
        _, vectors = self._loaded or self._load()
        return vectors.counts(texts)

    def is_foreign(self, texts: Sequence[bytes]) -> "NDArray[np.bool_]":
        """Return for each text, given as `tokens`, whether it is in another language than English, of those read."""
        import numpy as np

        _, vectors = self._loaded or self._load()
        (foreign,) = vectors.are_foreign(b"".join(texts)).nonzero()
        if not len(foreign):
            return np.zeros(len(texts), np.bool_)
        counts = vectors.counts(texts)
        sums = np.bincount(counts.cumsum().searchsorted(foreign, "right"), minlength=len(texts))
        return (sums > 0) & (sums >= np.maximum(_FOREIGN_SHARE * counts, np.minimum(counts / 2, 2)))

    def _identify(self) -> str:
        with suppress(OSError):  # raised again if the identity is used
            return self.identity
        return ""

    def _load(self) -> "tuple[ModelTokenizer, TokenVectors]":
        with self._lock:
            if self._loaded is None:
                vectors = TokenVectors(self.folder)
                self._loaded = (ModelTokenizer(self.folder, vectors.vocabulary, vectors.more_keys), vectors)
            return self._loaded


def _digest_of(folder: Path) -> str:
    digest = hashlib.sha256()
    # Whole files: hashlib releases the interpreter's lock, for which this thread would queue after each part of a file.
    for name in FILES:
        digest.update(hashlib.sha256((folder / name).read_bytes()).digest())
    return digest.hexdigest()[:12]


class _Tensor(msgspec.Struct):
    dtype: str = ""
    shape: tuple[int, ...] = ()
    data_offsets: tuple[int, int] = (0, 0)


def _layout(folder: Path) -> dict[str, _Tensor]:
    """Return the tensors of `model.safetensors`, their offsets counted from the start of the file."""
    with (folder / "model.safetensors").open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        tensors = msgspec.json.decode(file.read(min(size, _MAX_HEADER_BYTES)), type=dict[str, _Tensor])
    for tensor in tensors.values():
        start, end = tensor.data_offsets
        tensor.data_offsets = (start + size + 8, end + size + 8)
    if len(tensors.get("embeddings", _Tensor()).shape) != 2:
        raise ValueError(f"{folder.name}/model.safetensors has no matrix named 'embeddings'")
    return tensors


def _more_keys(tensors: "Sequence[NDArray[Any] | None]", file: Path) -> MoreKeys | None:
    keys, ids, beginnings, lengths = tensors
    if keys is None or ids is None or beginnings is None or lengths is None:
        return None
    return MoreKeys(keys.data, ids.data, beginnings.data, lengths.data, bits=bits_of(keys, file))


def bits_of(keys: "NDArray[np.uint64]", file: Path) -> bytes:
    """Return the bits of `MoreKeys` from a file that begins with the XOR of the keys; none if that is of other keys."""
    import numpy as np

    raw = file.read_bytes() if file.is_file() else b""
    size = len(raw) - keys.itemsize
    is_of_keys = size > 0 and not size & (size - 1) and raw[:-size] == np.bitwise_xor.reduce(keys).tobytes()
    return raw[-size:] if is_of_keys else NO_BITS


def _neighbours(sizes: Sequence[int], most: int) -> Iterator[slice]:
    """Yield parts of a list, one after the other, whose sizes add up to `most` at most or that have one item."""
    start = total = 0
    for end, size in enumerate(sizes):
        if end > start and total + size > most:
            yield slice(start, end)
            start, total = end, 0
        total += size
    yield slice(start, len(sizes))


class TokenVectors:
    """The mapped matrix of token vectors, with the optional row and weight of each token."""

    def __init__(self, folder: Path) -> None:
        import numpy as np

        tensors = _layout(folder)
        with (folder / "model.safetensors").open("rb") as file:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)

        def tensor(name: str) -> "NDArray[Any] | None":
            if (about := tensors.get(name)) is None:
                return None
            if about.dtype not in _DTYPES:
                raise ValueError(f"{folder.name}/model.safetensors: cannot read {name!r} of type {about.dtype}")
            count = math.prod(about.shape)
            return np.frombuffer(data, _DTYPES[about.dtype], count, about.data_offsets[0]).reshape(about.shape)

        matrix, more = tensor("embeddings"), tensor("more_embeddings")
        assert matrix is not None  # _layout has checked it
        own_rows = len(matrix)
        if more is not None:
            start, end = tensors["embeddings"].data_offsets
            if more.dtype != matrix.dtype or tensors["more_embeddings"].data_offsets[0] != end:
                raise ValueError(f"{folder.name}/model.safetensors: 'more_embeddings' must follow 'embeddings'")
            numbers = np.frombuffer(data, matrix.dtype, matrix.size + more.size, start)
            matrix = numbers.reshape(-1, matrix.shape[1])
        self._matrix = matrix
        self._rows = tensor("mapping")
        self._weights = tensor("weights")
        self.more_keys = _more_keys([tensor(name) for name in MORE_KEYS], folder / MORE_BITS)
        self._ones = np.ones(_SLICE_TOKENS, np.float32)
        self._exact = matrix.dtype == np.int8 and self._weights is None
        self.vocabulary = len(matrix if self._rows is None else self._rows)
        self._more_from = self.vocabulary if more is None else own_rows
        self._id = np.dtype(f"<u{id_width(self.vocabulary)}")

    def ids(self, tokens: bytes) -> "Ids":
        import numpy as np

        return np.frombuffer(tokens, self._id)

    def counts(self, texts: Sequence[bytes]) -> "Sizes":
        import numpy as np

        return np.fromiter(map(len, texts), np.int64, len(texts)) // self._id.itemsize

    def are_foreign(self, tokens: bytes) -> "NDArray[np.bool_]":
        """Return of each of the packed tokens whether another language than English brought it."""
        return self.ids(tokens) >= self._more_from

    @cached_property
    def _lengths(self) -> "Array":
        import numpy as np

        lengths = np.sqrt(np.einsum("ij,ij->i", self._matrix, self._matrix, dtype=np.float32))
        lengths = lengths if self._rows is None else lengths.take(self._rows)
        return lengths if self._weights is None else np.abs(lengths * self._weights).astype(np.float32)

    def rows(self, ids: "Ids") -> "tuple[Array, Array]":
        """Return the vectors of tokens, as rows, times their weights, and their lengths."""
        vectors = self._matrix.take(ids if self._rows is None else self._rows.take(ids), 0).astype("f4", copy=False)
        if self._weights is not None:
            vectors = vectors * self._weights.take(ids).astype("f4")[:, None]
        return vectors, self._lengths.take(ids)

    def sum(self, tokens: bytes) -> "Array":
        """Return the weighted sum of the vectors of packed `tokens`, which has the direction of their mean."""
        ids = self.ids(tokens)
        total = self._sum_slice(ids[:_SLICE_TOKENS])
        for at in range(_SLICE_TOKENS, len(ids), _SLICE_TOKENS):
            total += self._sum_slice(ids[at : at + _SLICE_TOKENS])
        return total

    def embed(self, batch: Sequence[bytes]) -> list[Embedding]:
        import numpy as np

        if self._exact:
            return self._embed_int8(batch) if len(batch) > 1 else [self._embed(tokens) for tokens in batch]
        with np.errstate(all="ignore"):  # sums that overflow or are not a number become zero vectors
            return [self._embed(tokens) for tokens in batch]

    def _sum_slice(self, ids: "Ids") -> "Array":
        rows = ids if self._rows is None else self._rows.take(ids)
        # A dot product with a vector of 1s is the fastest column sum here, and exact for int8 while sums stay below 2
        # ** 24.
        weights = self._ones[: len(ids)] if self._weights is None else self._weights.take(ids).astype("f4")
        return weights.dot(self._matrix.take(rows, 0).astype("f4", copy=False))

    def _sum_some(self, batch: Sequence[bytes], totals: "Array") -> None:
        """Write the sums of some short texts or one text into `totals`, with one look-up of all tokens.

        Most numpy calls let another thread take the interpreter's lock, so fewer calls change hands less often.
        """
        ids = self.ids(b"".join(batch))
        if self._weights is not None or len(batch) == 1:
            for number, tokens in enumerate(batch):
                totals[number] = self.sum(tokens)
            return
        vectors = self._matrix.take(ids if self._rows is None else self._rows.take(ids), 0).astype("f4", copy=False)
        end = 0
        for number, tokens in enumerate(batch):
            start, end = end, end + len(tokens) // self._id.itemsize
            self._ones[: end - start].dot(vectors[start:end], totals[number])

    def _embed_int8(self, batch: Sequence[bytes]) -> list[Embedding]:
        """Return `_embed` for many texts of an int8 model, each step one numpy call for all of them."""
        import numpy as np

        totals = np.zeros((len(batch), self._matrix.shape[1]), np.float32)
        for part in _neighbours([len(tokens) for tokens in batch], _NEIGHBOUR_TOKENS * self._id.itemsize):
            self._sum_some(batch[part], totals[part])
        peaks = np.abs(totals).max(axis=1).astype(np.float64)
        whole = np.rint(totals * (127 / np.maximum(peaks, 1)).astype(np.float32)[:, None])
        lengths = np.sqrt(np.add.reduce(whole * whole, axis=1, dtype=np.float64))
        vectors = whole.astype(np.int8).tobytes()
        size = totals.shape[1]
        return [
            Embedding(vectors[at * size : (at + 1) * size], 1 / length if length else 0.0, tokens)
            for at, (length, tokens) in enumerate(zip(lengths.tolist(), batch, strict=True))
        ]

    def _embed(self, tokens: bytes) -> Embedding:
        import numpy as np

        total = self.sum(tokens)
        peak = abs(float(total[np.abs(total).argmax()]))
        if not _MIN_PEAK < peak < math.inf:
            return Embedding(bytes(len(total)), 0.0, tokens)
        whole = np.rint(total * (127 / peak))
        # Scaling by the length of the rounded vector, not of the sum, makes every stored vector exactly a unit long.
        return Embedding(whole.astype(np.int8).tobytes(), 1 / math.sqrt(whole.dot(whole)), tokens)
