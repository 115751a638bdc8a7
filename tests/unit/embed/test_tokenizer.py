"""Words that the vocabulary spells have no meaning; words of other languages are read, and English keeps its tokens."""

import json
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel.core.config import MODEL
from kernel.embed.model import FILES, MORE_BITS, Embedder, Embedding, TokenVectors
from kernel.embed.tokenizer import WHOLE, ModelTokenizer, MoreKeys, load_encoder, pack
from loadtests.lib.corpus import memory
from loadtests.multilingual.vocabulary import more_keys
from loadtests.quality import facts
from tests.support.embed_model import bert, english, matrix, save

EMBEDDER = Embedder(MODEL)
VECTORS = TokenVectors(MODEL)
TOKENIZER = ModelTokenizer(MODEL, VECTORS.vocabulary, VECTORS.more_keys)
ENGLISH = ModelTokenizer(english(MODEL, Path(tempfile.mkdtemp()) / "english"), 29_525)
SENTENCES = {
    "ar": "الكلب ينام على الأريكة.",
    "bn": "কুকুরটি সোফায় ঘুমায়।",
    "cs": "Pes spí na pohovce.",
    "de": "Der Hund schläft auf dem Sofa.",
    "el": "Ο σκύλος κοιμάται στον καναπέ.",
    "es": "El perro duerme en el sofá.",
    "fa": "سگ روی مبل می‌خوابد.",
    "fr": "Le chien dort sur le canapé.",
    "he": "הכלב ישן על הספה.",
    "hi": "कुत्ता सोफे पर सो रहा है।",
    "id": "Anjing itu tidur di sofa.",
    "it": "La fattura è stata pagata lunedì.",  # in "cane" the model reads the English word
    "ja": "犬はソファで寝ています。",
    "ko": "개가 소파에서 잔다.",
    "nl": "De hond slaapt op de bank.",
    "pl": "Pies śpi na kanapie.",
    "pt": "O cachorro dorme no sofá.",
    "ru": "Собака спит на диване.",
    "sv": "Hunden sover i soffan.",
    "th": "สุนัขนอนบนโซฟา",
    "tr": "Köpek kanepede uyuyor.",
    "uk": "Собака спить на дивані.",
    "vi": "Con chó ngủ trên ghế sofa.",
    "zh": "狗在沙发上睡觉。",
}
FACTS = ["The dog sleeps on the sofa.", "The invoice was paid on Monday.", "The database is backed up every night."]
NOTHING = Embedding(bytes(256), 0.0, b"")


@pytest.mark.parametrize(
    "text",
    [
        "ძაღლი დივანზე სძინავს.",
        "პრინტერი HP დერეფანშია.",
        "Շունը քնում է բազմոցին։",
        "நாய் சோபாவில் தூங்குகிறது.",
        "ውሻው ሶፋ ላይ ይተኛል።",
        "ກຸ່ມ ນີ້",
        "georgian ძაღლი დივანზე სძინავს",
    ],
)
def test_texts_in_letters_have_no_meaning(text: str) -> None:
    assert EMBEDDER.embed([text]) == [NOTHING]


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("We meet in თბილისი on Monday", "We meet in on Monday"),
        ("party🎉 tonight 🚀🚀", "party tonight"),
        ("the ა and the ბ of it", "the and the of it"),
        ("Die Straße ist naß.", "Die Straße ist naß."),
        ("vitamin C and variable x", "vitamin C and variable x"),
    ],
)
def test_words_keep_their_meaning_beside_letters(text: str, same: str) -> None:
    assert EMBEDDER.embed([text]) == [EMBEDDER.embed([same])[0]]
    assert EMBEDDER.embed([text])[0].tokens == TOKENIZER.encode_words(same) != b""


def test_ideographs_count_as_words_for_a_model_that_has_learnt_them(tmp_path: Path) -> None:
    letters = ["[UNK]", *map(chr, range(0x4E00, 0x4E00 + 2000))]
    for name, words in (("chinese", letters), ("english", letters[:500])):
        save(tmp_path / name, bert(words), embeddings=matrix(len(words)))
    learnt, unknown = (Embedder(tmp_path / name).embed(["一丁丂"])[0] for name in ("chinese", "english"))

    assert (len(learnt.tokens), learnt.scale > 0) == (6, True)
    assert (unknown.tokens, unknown.scale) == (b"", 0.0)


def test_a_word_that_the_model_has_as_one_token_is_known() -> None:
    known = json.loads((MODEL / "tokenizer.json").read_bytes())["model"]["vocab"]

    assert [word for word in ("backup", "Database", "kubernets", "рейс", "") if EMBEDDER.knows(word)] == [
        "backup",
        "Database",
    ]
    assert {"backup", "database"} < known.keys()


@given(st.text(max_size=60))
def test_any_text_keeps_some_of_its_tokens_in_order(text: str) -> None:
    kept = iter(TOKENIZER.encode(text))
    words = TOKENIZER.encode_words(text)

    if text.isascii():
        assert words == TOKENIZER.encode(text)
    assert len(words) % 2 == 0
    assert EMBEDDER.embed([text])[0].tokens == words
    if not any(0x2190 <= ord(one) <= 0x2BFF or ord(one) >= 0x1F000 or one == "\ufe0f" for one in text):
        assert all(one in kept for one in words)


@pytest.mark.parametrize("language", SENTENCES)
def test_a_sentence_of_each_language_is_nearest_to_its_translation(language: str) -> None:
    sentence, *facts = EMBEDDER.embed([SENTENCES[language], *FACTS])

    assert max(range(len(facts)), key=lambda at: sentence.cosine(facts[at])) == (language == "it")


@pytest.mark.parametrize(
    "text",
    [
        "Where did Caroline go after the meeting on 7 May 2023?",
        "def parse_http2_frame(self, raw: bytes) -> Frame: return self._frames[raw[0]]",
        "The invoice from the plumber was paid on Monday; the car needs new winter tyres.",
    ],
)
def test_english_texts_keep_their_tokens(text: str) -> None:
    assert TOKENIZER.encode(text) == TOKENIZER.encode_words(text) == ENGLISH.encode(text) != b""


@pytest.mark.parametrize(
    ("joined", "apart"),
    [
        ("我在google工作", "我在 google 工作"),
        ("夕食はラーメンでした", "夕食は ラーメン でした"),
        ("บันทึกในgitทุกวัน", "บันทึกใน git ทุกวัน"),
    ],
)
def test_latin_and_katakana_are_words_inside_a_text_without_spaces(joined: str, apart: str) -> None:
    assert TOKENIZER.encode(joined) == TOKENIZER.encode(apart) != b""
    assert TOKENIZER.encode_words(joined) == TOKENIZER.encode_words(apart) != b""


@given(st.dictionaries(st.text("ab#é狗", min_size=1, max_size=9), st.integers(0, 2**16 - 1), min_size=1))
def test_a_key_is_looked_up_as_in_a_mapping(ids: dict[str, int]) -> None:
    keys = MoreKeys(*(column.data for column in more_keys(ids, np.uint16)))

    assert {key: keys.get(key) for key in ids} == ids
    assert keys.get("a key that no other is") is None
    for key in ids:
        same = {len(other) for other in ids if other[:4] == key[:4] and len(other) >= 4}
        assert keys.sizes(key[:4]) == same


@pytest.mark.slow
@pytest.mark.parametrize("bits", [None, b"", b"12345678", bytes(8 + 1024), bytes(8 + 1000)])
def test_texts_have_the_same_vectors_without_the_bits_of_keys_and_beside_those_of_others(
    bits: bytes | None, tmp_path: Path
) -> None:
    folder = tmp_path / MODEL.name
    folder.mkdir()
    for name in FILES:
        (folder / name).symlink_to(MODEL / name)
    if bits is not None:
        (folder / MORE_BITS).write_bytes(bits)
    texts = [part for name in facts.names() for fact in facts.facts(name) for part in fact]
    texts += [memory(number).text for number in range(200)]

    plain = Embedder(folder)

    assert plain.identity == EMBEDDER.identity
    assert plain.embed(texts) == EMBEDDER.embed(texts)


def test_keys_beside_the_vocabulary_come_first_for_words_that_are_not_ascii(tmp_path: Path) -> None:
    folder = save(tmp_path / "model", bert(["[UNK]", "ab", "狗"]), embeddings=matrix(3))
    more = MoreKeys(*(column.data for column in more_keys({"狗": 3, "ab": 4, "abc": 5}, np.uint16)))
    encoder = load_encoder((folder / "tokenizer.json").read_bytes(), 2, more)

    assert encoder is not None
    assert [encoder.pieces(word) for word in ("ab", "abc", "狗", "é")] == [[1], [5], [3], [0]]


def test_a_whole_word_is_a_token_that_begins_no_other(tmp_path: Path) -> None:
    folder = save(tmp_path / "model", bert(["[UNK]", "hun", "##d", "##e", "die", "с"]), embeddings=matrix(6))
    ids = {f"hund{WHOLE}": 6, f"die{WHOLE}": 7, f"сад{WHOLE}": 8}
    more = MoreKeys(*(column.data for column in more_keys(ids, np.uint16)))
    encoder = load_encoder((folder / "tokenizer.json").read_bytes(), 2, more)

    assert encoder is not None
    assert [encoder.pieces(word) for word in ("hund", "hunde", "die", "сад", "сады")] == [[6], [1, 2, 3], [4], [8], [0]]
    assert encoder.encode("Hund, Сад") == pack([6, 0, 8], 2)


def test_more_rows_must_follow_the_first(tmp_path: Path) -> None:
    folder = save(
        tmp_path / "model", bert(["[UNK]"]), embeddings=matrix(1), middle=matrix(1), more_embeddings=matrix(2)
    )

    with pytest.raises(ValueError, match="'more_embeddings' must follow 'embeddings'"):
        TokenVectors(folder)
