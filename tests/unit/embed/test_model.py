"""Embeddings equal model2vec's: the same token ids, the same vectors, from any folder in its format."""

import math
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from model2vec import StaticModel
from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers

from kernel.embed import tokenizer
from kernel.embed.model import Embedder, Embedding, TokenVectors
from kernel.embed.tokenizer import BertRules, CharacterMap, ModelTokenizer
from tests.support.embed_model import bert, english, matrix, save

ROOT = Path(__file__).resolve().parents[3]
SHIPPED = ROOT / "kernel" / "model" / "static-multilingual-256-int8"
ENGLISH = english(SHIPPED, Path(tempfile.mkdtemp()) / "english")
EMBEDDER = Embedder(ENGLISH)
TOKENIZER = ModelTokenizer(ENGLISH, TokenVectors(ENGLISH).vocabulary)
ORACLE = StaticModel.from_pretrained(ENGLISH)

TEXTS = [
    "",
    " \t\r\n ",
    "hello",
    "Where did Caroline go after the meeting on 7 May 2023?",
    "snake_case, kebab-case; CamelCase/path\\to/file.py::test[param] $9.99 <b>~</b>",
    "tab\tnewline\ncarriage\rform\x0cfeed\x0bfile\x1cgroup\x1dunit\x1fnext\x85line",
    "bell\x07 zero\x00 delete\x7f soft\xadhyphen zero\u200bwidth bom\ufeff replaced\ufffd",
    "no-break\xa0space thin\u2009space line\u2028paragraph\u2029ideographic\u3000space",
    "Él comió jamón añejo en el café de Łódź, naïve façade, ǅ İstanbul ẞ ŉ",
    "Cafe\u0301 Z\u0361\u0324o\u0315 combined \u0301alone",
    "“Quoted” — dashes – and… arrows → ≠ ≥ § ¶ € © ™ ½ ² µ",
    "Ελληνικά ΣΊΣΥΦΟΣ Русский Ёлка עִבְרִית العَرَبِيَّة हिन्दी ไทย ქართული",
    "日本語のテキスト 漢字かな 中文没有空格 한국어 텍스트 ﾊﾝｶｸ 𠀀𪜀 豈更",
    "emoji 😀 👩‍👩‍👧 ✅ ❤️ 👍🏽 🇵🇪 mixed日本🎉text",
    "unassigned \u0378 \u2fe0 private \ue000 \U000f0000 tag \U000e0041",
    "music \U0001d15e\U0001d16d\U0001d165 tone \u302e\u302f",
    "[UNK] [PAD] [CLS] x[UNK]y [unk] [P\x00AD] [PAD\u200b]日",
    "[[UNK]] [UNK][PAD][UNK] ##[PAD]s \x00[PAD]\x00 [UN K]",
    "a" * 99 + " " + "b" * 100 + " " + "c" * 101 + " " + "é" * 101,
    "word " * 2000,
    "antidisestablishmentarianism " * 600,
    "漢" * 5000,
    "x" * 10_000,
    "!?" * 3000,
    "日 " * 100 + "[UNK] " * 600 + "end",
    "\U00013000 " * 600 + "never pooled, for unknown ids count when a text is cut",
]
ASSIGNED = [*range(0x40000), *range(0xE0000, 0xE0200)]  # the planes beyond are unassigned or private
CHANGED = "\u166d\u1734\u1885\u1886"  # their kind, after Unicode 3.2


def is_in_the_library(char: str) -> bool:
    """Return whether the library knows a character; it lacks some of the marks and signs added since Unicode 3.2."""
    is_new = unicodedata.ucd_3_2_0.category(char) == "Cn"
    return char not in CHANGED and not (is_new and unicodedata.category(char)[0] in "MPC")


ANY_TEXT = st.text(
    st.one_of(
        st.sampled_from(
            " \t\n\x0b\x1c\x85\xa0\u200b[]UNKPADaeInst.,'-_\u0301\u0323é—日本한😀\U00013000\u302e\U0001d165"
        ),
        st.characters(codec="utf-8").filter(is_in_the_library),
    ),
    max_size=120,
)


def embed_every_word(folder: Path, texts: list[str]) -> list[Embedding]:
    """The embeddings of texts with words that the model spells, as model2vec has them."""
    vectors = TokenVectors(folder)
    tokenizer = ModelTokenizer(folder, vectors.vocabulary)
    return vectors.embed([tokenizer.encode(text) for text in texts])


def ids_of(embedding: Embedding, code: str = "H") -> list[int]:
    size = struct.calcsize(code)
    return list(struct.unpack(f"<{len(embedding.tokens) // size}{code}", embedding.tokens))


def check_ids(folder: Path, texts: list[str], code: str = "H") -> None:
    oracle = StaticModel.from_pretrained(folder)
    for text in texts:
        cut = text if oracle.max_length is None else text[: oracle.max_length * oracle.median_token_length]
        (expected,) = oracle.tokenize([cut])
        (embedding,) = embed_every_word(folder, [text])
        assert (text[:80], ids_of(embedding, code)) == (text[:80], expected)


def oracle_in_float64(folder: Path) -> StaticModel:
    """The oracle in float64: in its own types, sums over hundreds of tokens have larger errors than ours."""
    oracle: Any = StaticModel.from_pretrained(folder)
    oracle.embedding = oracle.embedding.astype(np.float64)
    return oracle


def check_vectors(folder: Path, texts: list[str], oracle: StaticModel | None = None) -> None:
    expected = (oracle or oracle_in_float64(folder)).encode(texts, normalize=True).astype(np.float64)
    vectors = TokenVectors(folder)
    for text, embedding, wanted in zip(texts, embed_every_word(folder, texts), expected, strict=True):
        if not embedding.tokens:
            assert embedding == Embedding(bytes(len(wanted)), 0.0, b"")
            assert not wanted.any()
            continue
        total = vectors.sum(embedding.tokens).astype(np.float64)
        np.testing.assert_allclose(total / np.linalg.norm(total), wanted, atol=1e-6, rtol=0, err_msg=text[:80])
        whole = np.frombuffer(embedding.vector, np.int8).astype(np.float64)
        np.testing.assert_allclose(whole, wanted * (127 / np.abs(wanted).max()), atol=0.501, rtol=0, err_msg=text[:80])
        rounded = whole * embedding.scale
        assert math.isclose(float(np.linalg.norm(rounded)), 1, abs_tol=1e-9)
        # 255 steps for the largest component leave the others this close and no closer.
        assert float(rounded @ wanted) >= 0.9995
        assert np.abs(whole).max() == 127


@pytest.mark.slow
def test_token_ids_equal_model2vec() -> None:
    check_ids(ENGLISH, TEXTS)


@pytest.mark.slow
@settings(deadline=None, max_examples=400)
@given(ANY_TEXT)
def test_token_ids_of_any_text_equal_model2vec(text: str) -> None:
    (expected,) = ORACLE.tokenize([text])
    tokens = TOKENIZER.encode(text)
    assert [*struct.unpack(f"<{len(tokens) // 2}H", tokens)] == expected


@pytest.mark.slow
def test_vectors_equal_model2vec_up_to_rounding() -> None:
    check_vectors(ENGLISH, TEXTS, ORACLE)


def test_vectors_do_not_depend_on_the_batch() -> None:
    assert EMBEDDER.embed(TEXTS) == [one for text in TEXTS for one in EMBEDDER.embed([text])]
    assert EMBEDDER.embed([]) == []


@pytest.mark.parametrize("text", ["", " \n\t ", "\u200b", "[UNK]", "\U00013000"])
def test_text_without_known_tokens_has_a_zero_vector(text: str) -> None:
    assert EMBEDDER.embed([text]) == [Embedding(bytes(256), 0.0, b"")]


def test_lone_surrogates_count_as_replacement_characters() -> None:
    for form in ("a{}b", "é{} word", "日本{}", "[UNK] {} x"):
        assert EMBEDDER.embed([form.format("\ud800")]) == EMBEDDER.embed([form.format("\ufffd")])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("han", "strip", "lower"),
    [(True, None, True), (False, None, False), (True, False, True), (False, True, False)],
)
def test_every_mapped_character_equals_the_tokenizers_library(han: bool, strip: bool | None, lower: bool) -> None:
    character_map = CharacterMap(
        BertRules(clean_text=True, handle_chinese_chars=han, strip_accents=strip, lowercase=lower)
    )
    normal: Any = normalizers.BertNormalizer(
        clean_text=True, handle_chinese_chars=han, strip_accents=strip, lowercase=lower
    )
    splitter: Any = pre_tokenizers.BertPreTokenizer()

    def split(text: str) -> list[str]:
        return [word for word, _ in splitter.pre_tokenize_str(normal.normalize_str(text))]

    verified = [f"a{chr(code)}b" for code in ASSIGNED if not 0xD800 <= code < 0xE000 and is_in_the_library(chr(code))]
    for start in range(0, len(verified), 5000):
        block = verified[start : start + 5000]
        if " ".join(block).translate(character_map).split() != split(" ".join(block)):
            pytest.fail(str([word for word in block if word.translate(character_map).split() != split(word)]))
    assert len(verified) > 130_000


WORDS = ["[UNK]", "[CLS]", "hello", "Hello", "##s", "world", "é", "e", "##é", "##e", ",", "日", "本", "x", "##x", "ma"]
PHRASES = [
    "Hello, worlds hellos 日本",
    "héxxé É xxxx maé",
    "zzz",
    "",
    "hello [UNK] [CLS] [cls]",
    "world " * 700,
    "x" * 99,
]


def wordlevel() -> Any:
    made: Any = Tokenizer(models.WordLevel({word: at for at, word in enumerate(WORDS)}, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    return made


def bytelevel() -> Any:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    made: Any = Tokenizer(models.BPE({char: at for at, char in enumerate([*alphabet, "he"])}, [("h", "e")]))
    made.pre_tokenizer = pre_tokenizers.ByteLevel()
    return made


def unigram() -> Any:
    made: Any = Tokenizer(models.Unigram([("<unk>", 0.0), *((word, -2.0) for word in WORDS[2:])], unk_id=0))
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    return made


def special(content: str, normal: bool) -> Any:
    made = bert(WORDS)
    made.add_special_tokens([AddedToken(content, normalized=normal, special=True)])
    return made


TOKENIZERS: dict[str, Callable[[], Any]] = {
    "bert": lambda: bert(WORDS),
    "bert with case": lambda: bert(WORDS, lower=False),
    "bert with accents": lambda: bert(WORDS, strip=False),
    "bert of short words": lambda: bert(WORDS, most=3),
    "bert with special tokens": lambda: special("[CLS]", normal=False),
    "bert with normalised special tokens": lambda: special("hello", normal=True),
    "words": wordlevel,
    "bytes": bytelevel,
    "unigrams": unigram,
}


@pytest.mark.parametrize("name", TOKENIZERS)
def test_any_tokenizer_gives_the_ids_and_vectors_of_model2vec(name: str, tmp_path: Path) -> None:
    tokenizer = TOKENIZERS[name]()
    folder = save(tmp_path / "model", tokenizer, embeddings=matrix(tokenizer.get_vocab_size()))
    check_ids(folder, [*PHRASES, *TEXTS])
    check_vectors(folder, PHRASES)


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("kind", ["i1", "f2", "f4", "f8"])
def test_every_vector_type_is_read(kind: str, normalize: bool, tmp_path: Path) -> None:
    config = {"normalize": normalize}
    folder = save(tmp_path / "model", bert(WORDS), config, embeddings=matrix(len(WORDS), kind))
    check_vectors(folder, PHRASES)


@pytest.mark.parametrize("kind", ["i1", "f4"])
def test_quantised_vocabulary_uses_mapping_and_weights(kind: str, tmp_path: Path) -> None:
    generator = np.random.default_rng(7)
    mapping = generator.integers(0, 5, len(WORDS))
    weights = generator.random(len(WORDS)).astype("f4")
    folder = save(tmp_path / "model", bert(WORDS), embeddings=matrix(5, kind), mapping=mapping, weights=weights)
    check_ids(folder, PHRASES)
    check_vectors(folder, PHRASES)


@pytest.mark.parametrize("limit", [1, 3, None])
def test_texts_are_cut_at_max_length(limit: int | None, tmp_path: Path) -> None:
    config = {"normalize": True, "max_length": limit}
    folder = save(tmp_path / "model", bert(WORDS), config, embeddings=matrix(len(WORDS)))
    check_ids(folder, [*PHRASES, "zzz hello world, hello world", "hello \u0378 world", "world " * 9000])
    check_vectors(folder, [*PHRASES, "hello " * 5000 + "world " * 4000])


@pytest.mark.slow
def test_ids_of_a_vocabulary_over_65536_take_four_bytes(tmp_path: Path) -> None:
    words = ["[UNK]", *(f"w{number}" for number in range(70_000))]
    folder = save(tmp_path / "model", bert(words), embeddings=np.ones((70_001, 2), np.float32))
    check_ids(folder, ["w0 w69999 nothing w65536", ""], "I")


def test_embedding_is_the_scaled_sum_of_its_tokens(tmp_path: Path) -> None:
    vectors = np.array([[9, 9], [3, 0], [0, -4]], np.int8)
    folder = save(tmp_path / "model", bert(["[UNK]", "north", "east"]), embeddings=vectors)
    assert Embedder(folder).embed(["North east nowhere"]) == [
        Embedding(struct.pack("2b", 95, -127), 1 / math.sqrt(95**2 + 127**2), struct.pack("<2H", 1, 2))
    ]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 3e38, 1e-42, 0.0])
def test_nan_and_overflow_become_zero_vectors(value: float, tmp_path: Path) -> None:
    vectors = np.array([[0, 0], [value, 1e-45], [value, -1e-45]], np.float32)
    folder = save(tmp_path / "model", bert(["[UNK]", "a", "b"]), embeddings=vectors)
    assert Embedder(folder).embed(["a b"]) == [Embedding(bytes(2), 0.0, struct.pack("<2H", 1, 2))]


@pytest.mark.slow
def test_cache_is_bounded_and_eviction_changes_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    fresh = Embedder(ENGLISH)
    monkeypatch.setattr("kernel.embed.tokenizer._CACHED_WORDS", 3)
    assert [fresh.embed([text]) for text in TEXTS * 2] == [EMBEDDER.embed([text]) for text in TEXTS * 2]
    encoder = tokenizer.load_encoder((ENGLISH / "tokenizer.json").read_bytes(), 2)
    assert encoder is not None
    encoder.encode("one two three four five " + "long" * 20)
    assert set(encoder) == {"four", "five"}


@pytest.mark.slow
def test_threads_share_one_embedder_from_first_use() -> None:
    shared, expected = Embedder(ENGLISH), EMBEDDER.embed(TEXTS)
    barrier, results = threading.Barrier(6), list[bool]()

    def work(seed: int) -> None:
        order = random.Random(seed).sample(range(len(TEXTS)), len(TEXTS))
        barrier.wait()
        results.extend(shared.embed([TEXTS[at]]) == [expected[at]] for at in order)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * (6 * len(TEXTS))


def test_identity_does_not_depend_on_the_path(tmp_path: Path) -> None:
    moved = tmp_path / SHIPPED.name
    shutil.copytree(SHIPPED, moved)
    assert (Embedder(moved).identity, Embedder(moved).dimensions) == ("static-multilingual-256-int8@50e33c6eee89", 256)


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "model.safetensors"])
def test_identity_changes_with_any_file(name: str, tmp_path: Path) -> None:
    folder = save(tmp_path / "model", bert(WORDS), embeddings=matrix(len(WORDS)))
    before = Embedder(folder).identity
    with (folder / name).open("ab") as file:
        file.write(b" ")
    assert Embedder(folder).identity != before


def test_embedder_reads_nothing_before_first_use(tmp_path: Path) -> None:
    embedder = Embedder(tmp_path / "nowhere")
    assert not embedder.ready
    with pytest.raises(FileNotFoundError):
        embedder.load()


def test_load_sets_ready_and_is_idempotent() -> None:
    embedder = Embedder(SHIPPED)
    states = [embedder.ready, embedder.load(), embedder.ready, embedder.load(), embedder.ready]
    assert states == [False, None, True, None, True]


def test_inconsistent_model_folder_is_rejected(tmp_path: Path) -> None:
    short = save(tmp_path / "short", bert(WORDS), embeddings=matrix(len(WORDS) - 1))
    other = save(tmp_path / "other", bert(WORDS), tokens=matrix(len(WORDS)))
    typed = save(tmp_path / "typed", bert(WORDS), embeddings=np.zeros((len(WORDS), 2), np.bool_))
    for folder, message in ((short, "16 tokens, but vectors for 15"), (other, "no matrix"), (typed, "of type BOOL")):
        with pytest.raises(ValueError, match=message):
            Embedder(folder).load()
    (typed / "config.json").write_text("{")
    shutil.copy(SHIPPED / "model.safetensors", typed)
    with pytest.raises(ValueError, match="truncated"):
        Embedder(typed).load()


@pytest.mark.slow
def test_numpy_is_imported_lazily_and_tokenizers_never_for_the_shipped_model() -> None:
    program = f"""
import sys
from pathlib import Path
from kernel.embed.model import Embedder
heavy = lambda: [name for name in ("numpy", "tokenizers", "huggingface_hub", "model2vec") if name in sys.modules]
embedder = Embedder(Path({str(SHIPPED)!r}))
print(embedder.dimensions, heavy())
embedder.embed(["Plain text", "“typographic” — café ✅ 日本 😀"])
print(heavy())
embedder.embed(["[UNK] \\ud800 \\u0378 \\U0001d15e"])
print(heavy())
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["256 []", "['numpy']", "['numpy']"]


def test_other_tokenizers_say_which_package_they_need(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = save(tmp_path / "model", wordlevel(), embeddings=matrix(len(WORDS)))
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(ValueError, match=r"model/tokenizer\.json is not WordPiece .*'quipu-memory\[tokenizers\]'"):
        Embedder(folder).load()
