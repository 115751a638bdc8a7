"""A text that the vocabulary spells letter by letter has no meaning; one of words keeps that of its words."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel.core.config import MODEL
from kernel.embed.model import Embedder, Embedding, TokenVectors
from kernel.embed.tokenizer import ModelTokenizer
from tests.support.embed_model import bert, matrix, save

EMBEDDER = Embedder(MODEL)
TOKENIZER = ModelTokenizer(MODEL, TokenVectors(MODEL).vocabulary)
NOTHING = Embedding(bytes(256), 0.0, b"")


@pytest.mark.parametrize(
    "text",
    [
        "Рейс в Токио отменили.",
        "Принтер HP стоит в коридоре.",
        "Ο σκύλος κοιμάται.",
        "הכלב ישן על הספה.",
        "الكلب ينام على الأريكة.",
        "कुत्ता सोफे पर सो रहा है।",
        "สุนัขนอนบนโซฟา",
        "개가 소파에서 잔다.",
        "犬はソファで寝ています。",
        "狗在沙发上睡觉。",
        "thai สุนัขนอนบนโซฟา",
        "我在 Google 工作",
    ],
)
def test_texts_in_letters_have_no_meaning(text: str) -> None:
    assert EMBEDDER.embed([text]) == [NOTHING]


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("We meet in Москва on Monday", "We meet in on Monday"),
        ("party🎉 tonight 🚀🚀", "party tonight"),
        ("the α and the 東 of it", "the and the of it"),
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

    assert [word for word in ("backup", "Database", "kubernets", "Рейс", "") if EMBEDDER.knows(word)] == [
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
