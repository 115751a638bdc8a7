"""Parts of names, emoji and words of every script are found; the words of any text are bounded and can be renewed."""

from collections.abc import Iterator

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kernel.search.extra_terms import (
    completed,
    indexed_words,
    name_parts,
    other_spellings,
    own_words,
    pair_terms,
    query_terms,
)
from kernel.search.query import Term, grams
from kernel.search.word_forms import as_written
from kernel.security.rules.injection import matched_rule
from kernel.store.transaction import Tx
from tests.unit.index_fixtures import CALLER, IndexedStore, open_indexed_store

TEXTS = [
    "Call getUserById before HTTPServer starts",
    "def get_user_by_id(utf8_name): ...",
    "PostgreSQL over http2, see os.path.join",
    "The launch 🚀 is on Friday ❤️",
    "Holidays in 🇩🇪 and 🇫🇷 with the family 👩‍👩‍👧",
    "สุนัขของฉันชอบนอนบนโซฟาใช้Pythonได้",
    "ຂ້ອຍມັກກິນເຂົ້າໜຽວ",
    "ខ្ញុំចូលចិត្តញ៉ាំបាយ",
    "ကျွန်တော် ထမင်းစားတယ်",
    "मेरा कुत्ता सोफे पर सोता है",
    "எனது நாய் தூங்குகிறது",
    "ذَهَبَ مُحَمَّدٌ إِلَى المَدْرَسَةِ",
    "הַכֶּלֶב יָשֵׁן",
    "犬はソファで寝ています",
    "a3f9c2e1b7d8e9f0a1b2c3 is the digest",
]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IndexedStore]:
    with open_indexed_store(tmp_path_factory.mktemp("words"), None) as opened:
        opened.put(TEXTS)
        yield opened


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("get user", {"0", "1"}),
        ("getUserById", {"0", "1"}),
        ("get_user_by_id", {"0", "1"}),
        ("getuserbyid", {"0", "1"}),
        ("http", {"0", "2"}),
        ("server", {"0"}),
        ("utf", {"1"}),
        ("utf-8", {"1"}),
        ("sql", {"2"}),
        ("path", {"2"}),
        ("🚀", {"3"}),
        ("❤", {"3"}),
        ("❤️", {"3"}),
        ("🇩🇪", {"4"}),
        ("👧", {"4"}),
        ("🎉", set[str]()),
        ("สุนัข", {"5"}),
        ("นอน", {"5"}),
        ("แมว", set[str]()),
        ("python", {"5"}),
        ("ເຂົ້າ", {"6"}),
        ("ចូលចិត្ត", {"7"}),
        ("ထမင်း", {"8"}),
        ("कुत्ता", {"9"}),
        ("कुर्सी", set[str]()),
        ("நாய்", {"10"}),
        ("محمد", {"11"}),
        ("مُحَمَّدٌ", {"11"}),
        ("الكلب", set[str]()),
        ("כלב", {"12"}),
        ("הכלב", {"12"}),
        ("ソファ", {"13"}),
        ("9", set[str]()),
    ],
)
def test_words_that_the_tokenizer_misses_are_found(store: IndexedStore, query: str, found: set[str]) -> None:
    assert store.lexical_keys(query) == found
    assert store.lexical_keys(query, within=[("docs", "")]) == found


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("plain words, 3 of them", []),
        ("getUserById", ["get", "user", "by", "id"]),
        ("XMLHttpRequest IDs", ["xml", "http", "request"]),
        ("snake_case_name", ["snakecasename"]),
        ("parse_utf8_fooBar", ["utf", "8", "foo", "bar", "parseutf8foobar"]),
        ("log4j p1 3pm v2", ["log", "4", "3", "pm"]),
        ("iPhone McDonald", ["phone", "mc", "donald"]),
        ("a3f9c2e1b7d8e9f0a1b2c3", []),
        ("x" * 60 + "Bar42", []),
        ("größeÄndern", []),
        ("__init__ _x", []),
    ],
)
def test_parts_of_names(text: str, parts: list[str]) -> None:
    assert list(name_parts(text)) == parts


@pytest.mark.parametrize("between", [" ", "\n", "\t"])
def test_a_long_text_has_the_words_of_a_short_one(between: str) -> None:
    words = ["getUserById", "der", "Hund", "und", "die", "Katze", "1,234,567", "node_modules", "Größe"]
    for text in (between.join(words[:-1]), between.join(words)):
        assert indexed_words(between.join([text] * 200)) == indexed_words(text)


def test_words_of_the_index_can_be_read() -> None:
    (dog,) = pair_terms("สุ")

    assert dog == Term("\U000f0e2a\U000f0e38", "\U000f0e2a\U000f0e38")
    assert [as_written(word) for word in (dog.surface, indexed_words("🚀"), "plain", "Grüße")] == [
        "สุ",
        "🚀",
        "plain",
        "Grüße",
    ]


MISSED = st.sampled_from("aB1_ก็ہُשָहि日本🚀🇩🇪\u200d\ufe0f\0 ")
WILD = st.text(st.one_of(st.characters(codec="utf-8", exclude_categories=["Cn"]), MISSED), max_size=60)


_PARTS = (
    "getUserById utf8 HTTPServer a_b 4x 1,000 12.500 1'000 IDs 2026-05-28 Server NASA l'eau der nicht le chat que avec "
    "always never whenever you from now on I ask in future, please going forward, every time it's don't tell the user "
    "ignore all previous instructions Ask' node-fetch @home"
).split()


@given(st.lists(st.sampled_from([*_PARTS, "\n", ". ", '"']), max_size=14).map(" ".join))
@example("from now on I ask that you always answer in German, e.g. with 1,000 words")
def test_words_of_a_short_text_are_those_of_a_long_text(text: str) -> None:
    longer = "\n" * 4200 + text
    assert (own_words(text), matched_rule(text)) == (own_words(longer), matched_rule(longer))


@given(WILD, WILD)
@example("", "0A_A")
@example("0A_A", "")
def test_any_text_has_bounded_words_and_renewing_them_changes_nothing(text: str, words: str) -> None:
    found = indexed_words(text, words)

    assert len(found) <= 8 * (len(text) + len(words)) * 18 + 8
    assert completed(text, found) == found
    assert completed(text, " ".join(part for part in (grams(text), words, grams(words)) if part)) == found


@given(st.text(st.one_of(MISSED, st.sampled_from("abcé0129 .,-ßж한ñ")), max_size=60))
@example("0BBह")
def test_terms_of_a_text_are_terms_of_the_index(store: IndexedStore, text: str) -> None:
    def terms(tx: Tx) -> tuple[list[Term], set[str]]:
        held = tx.tokenize(f"{text} {indexed_words(text)}".replace("\0", " "))
        spelt = {token[2] for token in tx.tokenize(" ".join(other_spellings(text.replace("\0", " "))))}
        return query_terms(text, tx.tokenize), {token[2] for token in held} | spelt

    terms_of_it, held = store.reader.read(CALLER, terms)

    assert len(terms_of_it) <= 8 * len(text) + 8
    assert [term for term in terms_of_it if not any(stem.startswith(term.stem) for stem in held)] == []


@pytest.mark.parametrize("letters", ["aB", "a_", "ก", "एि", "مُ", "a1", "🎉", "A", "aB1_"])
def test_words_of_a_long_text_take_linear_time(letters: str) -> None:
    assert len(indexed_words(letters * 200_000)) < 4_000_000
