"""The keys that join the shipped WordPiece vocabulary, with first vectors in its space.

A piece of a teacher's vocabulary becomes a key as BERT's rules normalize it: `word` if it begins a word, `##piece` if
not, both if its script has no spaces. Its direction comes from ridge regression on the words that teacher and shipped
model both know, its length from the lengths of those words at the same log probability.
"""

import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np

from kernel.embed.tokenizer import (
    LONGEST_KEY,
    PREFIX_LENGTH,
    WHOLE,
    BertRules,
    CharacterMap,
    MoreKeys,
    WordPieceEncoder,
    hash_of,
    load_encoder,
)
from loadtests.multilingual.teachers import WORD_START, Pieces, unit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

UNSPACED = frozenset({"CJK", "HIRAGANA", "KATAKANA", "THAI"})
_SCRIPTS = frozenset(
    {*UNSPACED, "ARABIC", "BENGALI", "CYRILLIC", "DEVANAGARI", "GREEK", "HANGUL", "HEBREW", "LATIN"}
)  # of the languages of parallel_texts
_RIDGE = 30.0
_LEAST_ANCHOR = 3  # letters; shorter words mean too much
_SHORTEST_LATIN = 3
_CURVE_POINTS = 24
_FREQUENT = -12.5  # log probability
_GUARD = 10
_FEW = 50  # keys that a round of the guard takes away; fewer end it
_ANCHORS_PER_MODEL = 6_000  # keys of other scripts that join the words of the shipped model
CONTINUES = "##"


class Shipped(NamedTuple):
    """The model that is extended: keys with their rows, rows x 256."""

    folder: Path
    keys: Mapping[str, int]
    rows: "NDArray[np.int8]"


def load(folder: Path) -> Shipped:
    """Read `tokenizer.json` and the table of `model.safetensors` of the shipped model."""
    keys = msgspec.json.decode((folder / "tokenizer.json").read_bytes())["model"]["vocab"]
    raw = (folder / "model.safetensors").read_bytes()
    header = int.from_bytes(raw[:8], "little")
    start, end = msgspec.json.decode(raw[8 : 8 + header])["embeddings"]["data_offsets"]
    rows = np.frombuffer(raw[8 + header :][start:end], np.int8)
    return Shipped(folder, keys, rows.reshape(len(keys), -1))


class Normalizer:
    """BERT's rules without spaces around ideographs, so that words of several are keys."""

    def __init__(self) -> None:
        self._characters = CharacterMap(BertRules(True, False, None, True))

    def words(self, text: str) -> list[str]:
        """Return the words of a text as WordPiece meets them."""
        return text.translate(self._characters).split()


@cache
def script(text: str) -> str:
    """Return the script that all letters of a text share, empty if they do not or if the model does not read it."""
    names = {unicodedata.name(letter, "").split(" ")[0] for letter in text if letter.isalpha()}
    names.discard("KATAKANA-HIRAGANA")
    names = {"CJK" if name in UNSPACED - {"THAI"} else name for name in names}
    name = names.pop() if len(names) == 1 else ""
    return name if name in _SCRIPTS else ""


def candidates(pieces: Pieces) -> dict[str, list[tuple[int, float]]]:
    """Return each key that a vocabulary offers, with the numbers and probabilities of the pieces that become it."""
    normalizer, keys = Normalizer(), dict[str, list[tuple[int, float]]]()
    for number, (piece, score) in enumerate(zip(pieces.texts, pieces.scores, strict=True)):
        core = piece.removeprefix(WORD_START)
        words = normalizer.words(core)
        if len(words) != 1 or WORD_START in core or not (name := script(words[0])):
            continue
        if not all(unicodedata.category(letter)[0] in "LM" for letter in words[0]):
            continue
        begins = core != piece
        forms = (True, False) if name in UNSPACED else (begins,)
        for form in forms:
            key = words[0] if form else CONTINUES + words[0]
            keys.setdefault(key, []).append((number, float(np.exp(score))))
    return keys


class Teacher(NamedTuple):
    """The keys that a vocabulary offers, and a function that returns a vector for each of some keys."""

    offered: Mapping[str, list[tuple[int, float]]]
    embed: Callable[[Sequence[str]], "Floats"]


def first_vectors(
    shipped: Shipped, teacher: Teacher, wanted: Sequence[str], known: Mapping[str, "Floats"]
) -> dict[str, "Floats"]:
    """Return a first vector for each wanted key, mapped from the teacher's space.

    Anchors are the words that the teacher shares with the shipped model, and the most frequent of those in `known`,
    keys of other scripts with vectors from another teacher.
    """
    shared = [key for key in teacher.offered if key in shipped.keys and _is_anchor(key) and script(key) == "LATIN"]
    foreign = [key for key in known if key in teacher.offered and _is_anchor(key) and script(key) != "LATIN"]
    foreign = sorted(foreign, key=lambda key: (-score(teacher.offered[key]), key))[:_ANCHORS_PER_MODEL]
    table = shipped.rows[[shipped.keys[key] for key in shared]].astype(np.float32)
    targets = np.concatenate([table, *([np.stack([known[key] for key in foreign])] if foreign else [])])
    keys = [*shared, *foreign, *wanted]
    own = teacher.embed(keys)
    anchors, rest = own[: len(targets)], own[len(targets) :]
    square = anchors.T @ anchors + _RIDGE * np.eye(own.shape[1], dtype=np.float32)
    directions = unit(rest @ np.linalg.solve(square, anchors.T @ unit(targets)))
    curve = _length_curve([score(teacher.offered[key]) for key in shared], np.linalg.norm(table, axis=1))
    lengths = np.interp([score(teacher.offered[key]) for key in wanted], *curve)
    return dict(zip(wanted, (directions * lengths[:, None]).astype(np.float32), strict=True))


def of_pieces(offered: Mapping[str, list[tuple[int, float]]], vectors: "Floats") -> Teacher:
    """Return a teacher whose key has the mean vector of its pieces, by their probability."""

    def embed(keys: Sequence[str]) -> "Floats":
        mixed = np.empty((len(keys), vectors.shape[1]), np.float32)
        for at, key in enumerate(keys):
            numbers, chances = zip(*offered[key], strict=True)
            mixed[at] = np.average(vectors[list(numbers)], axis=0, weights=chances)
        return _with_bias(unit(mixed))

    return Teacher(offered, embed)


def of_texts(offered: Mapping[str, list[tuple[int, float]]], encode: Callable[[Sequence[str]], "Floats"]) -> Teacher:
    """Return a teacher whose key has the vector of its letters, without the mean of its script: the encoder tells
    scripts apart before it tells meanings apart.
    """

    def embed(keys: Sequence[str]) -> "Floats":
        letters = [key.removeprefix(CONTINUES) for key in keys]
        distinct = sorted(set(letters))
        vectors = encode(distinct)
        scripts = np.array([script(text) for text in distinct])
        for name in sorted(set(scripts)):
            vectors[scripts == name] -= vectors[scripts == name].mean(axis=0)
        place = {text: at for at, text in enumerate(distinct)}
        return _with_bias(unit(vectors)[[place[text] for text in letters]])

    return Teacher(offered, embed)


def _with_bias(vectors: "Floats") -> "Floats":
    return np.concatenate([vectors, np.ones((len(vectors), 1), np.float32)], axis=1)


def _is_anchor(key: str) -> bool:
    return not key.startswith(CONTINUES) and (len(key) >= _LEAST_ANCHOR or script(key) in UNSPACED)


def score(pieces: Sequence[tuple[int, float]]) -> float:
    """Return the log probability of a key that several pieces become."""
    return float(np.log(sum(chance for _, chance in pieces)))


def _length_curve(scores: Sequence[float], lengths: "Floats") -> tuple["Floats", "Floats"]:
    """Return points of the mean length over the log probability, made never to rise with it."""
    order = np.argsort(scores)
    parts = np.array_split(order, _CURVE_POINTS)
    points = np.array([np.mean([scores[at] for at in part]) for part in parts], np.float32)
    means = np.array([lengths[part].mean() for part in parts], np.float32)
    return points, np.minimum.accumulate(means)


class Counts(NamedTuple):
    """How often each word stands in English texts, in code, in texts of Latin scripts, and in those of all others."""

    english: "Counter[str]"
    code: "Counter[str]"
    latin: "Counter[str]"
    others: "Counter[str]"


def chosen(shipped: Shipped, offered: Mapping[str, float], counts: Counts) -> list[str]:
    """Return the keys to add, of those offered with their log probabilities.

    A key stays if the texts use it twice, or if it is frequent in its teacher's vocabulary: names of places are in no
    text. A Latin key leaves if English texts or code would use it, in proportion to their size, a tenth as often as
    other languages: greedy matching would break English words by it.
    """
    latin = {key: script(key.removeprefix(CONTINUES)) == "LATIN" for key in offered}
    # The shipped rows of other scripts are those of an English teacher: letters without a meaning.
    keys = [key for key in offered if not latin[key] or (key not in shipped.keys and len(key) >= _SHORTEST_LATIN)]
    keys = [key for key in keys if len(key) <= LONGEST_KEY]
    new = slice(len(shipped.keys), None)
    used = (uses(shipped, keys, counts.latin) + uses(shipped, keys, counts.others))[new]
    keys = [key for key, times in zip(keys, used, strict=True) if times > 1 or offered[key] > _FREQUENT]
    while True:
        used = [uses(shipped, keys, words) for words in (counts.english, counts.code, counts.latin)]
        english, code, other = (row[new] / row.sum() for row in used)
        kept = [
            key
            for key, here, there in zip(keys, english + code / 2, other, strict=True)
            if not latin[key] or not here or _GUARD * here < there
        ]
        if len(keys) - len(kept) < _FEW:
            return kept
        keys = kept


def uses(shipped: Shipped, keys: Sequence[str], words: "Counter[str]") -> "NDArray[np.int64]":
    """Return how often WordPiece uses each shipped and each new key over counted words."""
    encoder = encoder_of(shipped, keys)
    used = np.zeros(len(shipped.keys) + len(keys), np.int64)
    for word, times in words.items():
        for key in encoder.pieces(word):
            used[key] += times
    return used


def encoder_of(shipped: Shipped, keys: Sequence[str]) -> WordPieceEncoder:
    """Return the encoder of the shipped keys and the new ones, numbered in this order; ids take four bytes."""
    numbers = {key: len(shipped.keys) + at for at, key in enumerate(keys)}
    more = MoreKeys(*(column.data for column in more_keys(numbers, np.uint32))) if keys else None
    encoder = load_encoder((shipped.folder / "tokenizer.json").read_bytes(), 4, more)
    assert encoder is not None
    return encoder


def more_keys(ids: Mapping[str, int], kind: type) -> "list[NDArray[Any]]":
    """Return the columns of `MoreKeys` for keys with ids of a type."""
    lengths: dict[str, int] = {}
    for key in ids:
        if len(key) >= PREFIX_LENGTH and not key.endswith(WHOLE):
            lengths[key[:PREFIX_LENGTH]] = lengths.get(key[:PREFIX_LENGTH], 0) | 1 << len(key)
    columns: list[NDArray[Any]] = []
    for values, type_of in ((ids, kind), (lengths, np.uint32)):
        pairs = sorted((hash_of(text), value) for text, value in values.items())
        columns += [np.array([code for code, _ in pairs], np.uint64), np.array([value for _, value in pairs], type_of)]
    return columns
