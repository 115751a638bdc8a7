"""The steps that build the rows of other languages."""

import struct
from pathlib import Path

import numpy as np
import pytest

from kernel.core.config import MODEL
from kernel.embed.model import MORE_BITS, TokenVectors
from kernel.embed.tokenizer import WHOLE
from loadtests.multilingual import parallel_texts, words
from loadtests.multilingual.fit import merged
from loadtests.multilingual.model_folder import add_keys, few_levels, write
from loadtests.multilingual.parallel_texts import LANGUAGES, Pair
from loadtests.multilingual.sources import sources
from loadtests.multilingual.vocabulary import CONTINUES, Normalizer, load, script


def catalogue(messages: dict[str, str]) -> bytes:
    """A GNU .mo file."""
    count, body = len(messages), b""
    tables: list[bytes] = []
    for texts in (messages.keys(), messages.values()):
        table = b""
        for text in texts:
            table += struct.pack("<II", len(text.encode()), 28 + 16 * count + len(body))
            body += text.encode() + b"\0"
        tables.append(table)
    return struct.pack("<7I", 0x950412DE, 0, count, 28, 28 + 8 * count, 0, 0) + b"".join(tables) + body


def test_messages_help_and_names_are_paired(tmp_path: Path) -> None:
    messages = tmp_path / "wagtail/locale/de/LC_MESSAGES/django.mo"
    messages.parent.mkdir(parents=True)
    messages.write_bytes(catalogue({"menu\x04~Open <b>file</b>": "Datei _öffnen", "Same": "Same"}))
    for language, text in (("en-US", "Insert a note."), ("de", "Eine <b>Notiz</b> einfügen.")):
        package = f"libreoffice-help-{language.lower()}"
        page = tmp_path / package / "usr/share/libreoffice/help" / language / "text/page.html"
        page.parent.mkdir(parents=True)
        page.write_text(f'<p id="par_id1" class="a">{text}</p>')
    for language, text in (("en", "guide dog"), ("de", "Blindenhund")):
        names = tmp_path / f"cldr-annotations-full/package/annotations/{language}/annotations.json"
        names.parent.mkdir(parents=True)
        names.write_text(f'{{"annotations": {{"identity": {{}}, "annotations": {{"🐕": {{"tts": ["{text}"]}}}}}}}}')

    pairs = [pair for pair in parallel_texts.read(tmp_path) if pair.kind != "everyday"]

    assert sorted(pairs) == [
        Pair("de", "help", "Insert a note.", "Eine Notiz einfügen."),
        Pair("de", "names", "guide dog", "Blindenhund"),
        Pair("de", "program", "Open file", "Datei öffnen"),
    ]


def test_everyday_words_stand_in_every_language() -> None:
    lines = Path(parallel_texts.__file__).with_name("everyday.txt").read_text(encoding="utf-8").splitlines()

    assert sorted(lines[0].split("|")) == sorted(["en", *LANGUAGES])
    assert {len(line.split("|")) for line in lines} == {len(LANGUAGES) + 1}
    assert all(cell for line in lines for cell in line.split("|"))


def test_every_source_is_exact() -> None:
    assert {source.registry for source in sources()} == {"debian", "lists", "npm", "pypi"}
    assert all(len(source.digest) == 64 for source in sources())
    assert len({source.name for source in sources()}) == len(sources())


@pytest.mark.slow
def test_keys_join_a_model_whose_rows_and_keys_stay(tmp_path: Path) -> None:
    added = {f"zugluftig{WHOLE}": 30_000, "犬夜叉犬": 40_000, f"{CONTINUES}犬夜叉犬": 40_000}
    add_keys(MODEL, tmp_path, added)

    old, new = (TokenVectors(folder) for folder in (MODEL, tmp_path))
    assert old.more_keys is not None
    assert new.more_keys is not None
    everything = np.arange(old.vocabulary)
    assert np.array_equal(old.rows(everything)[0], new.rows(everything)[0])
    assert [new.more_keys.get(key) for key in (*added, "собака", "zugluftig")] == [
        *added.values(),
        old.more_keys.get("собака"),
        None,
    ]
    assert new.more_keys.sizes("犬夜叉犬") == {4}
    assert new.more_keys.sizes("zugl") == old.more_keys.sizes("zugl")
    before, after = ((folder / MORE_BITS).read_bytes()[8:] for folder in (MODEL, tmp_path))
    unlike = int.from_bytes(before, "little") ^ int.from_bytes(after, "little")
    assert (len(after), unlike.bit_count()) == (len(before), len(added))


def test_bits_are_those_of_the_keys(tmp_path: Path) -> None:
    keys = {"犬夜叉犬": 40_000, "zugluftig": 30_000}
    write(tmp_path, load(MODEL), keys, np.zeros((36_011, 256), np.int8))

    bits = (tmp_path / MORE_BITS).read_bytes()[8:]
    assert int.from_bytes(bits, "little").bit_count() == len(keys)
    more = TokenVectors(tmp_path).more_keys
    assert more is not None
    assert [more.get(key) for key in (*keys, "犬夜叉")] == [*keys.values(), None]


def test_words_of_a_list_are_read_as_the_model_meets_them(tmp_path: Path) -> None:
    file = tmp_path / "list.txt"
    file.write_text("Straße\nstraße\nдом\nl'eau\nа\nÉté\n", encoding="utf-8")

    assert words.read(file, "LATIN") == [words.Word("Straße", "straße"), words.Word("Été", "ete")]


def test_the_likest_english_words_mean_the_same() -> None:
    likeness = np.array([0.6, 0.78, 0.64, 0.3, 0.7, 0, 0.66, 0.65, 0, 0], np.float32)

    assert words.synonyms(likeness) == [1, 4, 6, 7]
    assert words.synonyms(np.where(likeness == likeness.max(), likeness, np.float32(0))) == [1]
    assert words.synonyms(likeness - np.float32(0.4)) == []


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Hund", "LATIN"),
        ("собака", "CYRILLIC"),
        ("狗", "CJK"),
        ("イヌ", "CJK"),
        ("หมา", "THAI"),
        ("dogсобака", ""),
        ("12", ""),
    ],
)
def test_the_script_of_a_word(text: str, name: str) -> None:
    assert script(text) == name


def test_words_of_several_ideographs_stay_together() -> None:
    assert Normalizer().words("Le Chien, 狗在沙发上 Straße") == ["le", "chien", ",", "狗在沙发上", "straße"]


def test_the_nearest_rows_share_the_more_used_of_them() -> None:
    rows = np.array([[1, 0], [0.9, 0.1], [0, 1], [0.1, 1], [-1, 0]], np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)

    assert merged(rows, np.array([1.0, 9, 5, 2, 1]), 3).tolist() == [1, 1, 2, 2, 4]
    assert merged(rows, np.array([1.0, 9, 5, 2, 1]), 9).tolist() == [0, 1, 2, 3, 4]


def test_few_levels_keep_direction_and_length() -> None:
    random = np.random.default_rng(1)
    rows = random.normal(size=(200, 256)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    lengths = np.linspace(180, 320, 200).astype(np.float32)

    rounded = few_levels(rows, lengths, 7).astype(np.float64)

    sizes = np.linalg.norm(rounded, axis=1)
    assert all(len(np.unique(row)) <= 7 for row in rounded)
    assert ((rounded * rows).sum(axis=1) / sizes).min() > 0.93
    assert np.abs(sizes / lengths - 1).max() < 0.15
