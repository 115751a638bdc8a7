"""Forms of words in languages with endings: stems beside the text, by which a question in another form finds it."""

import re
from collections.abc import Iterator

import pytest

from kernel.search import word_forms
from kernel.search.query import query_words
from tests.unit.index_fixtures import IndexedStore, open_indexed_store

FACTS = [
    "Тимур переехал в Казань и снимает квартиру.",
    "Die Häuser am Hafen werden im Herbst verkauft.",
    "Les enfants ont réservé deux chambres à Lyon.",
    "Los perros duermen en la cocina.",
    "Samochody stoją przed domem.",
    "Arabaların lastikleri değişti ve yeni.",
    "السيارة في الورشة يوم الخميس.",
    "हमने लड़के को किताब दी।",
    "הכלבים ישנים על הספה.",
    "Τα σκυλιά είναι στον κήπο.",
    "The invoices were paid in May.",
    "小明买了一辆汽车。",
]


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IndexedStore]:
    with open_indexed_store(tmp_path_factory.mktemp("forms"), None) as store:
        store.put(FACTS)
        yield store


@pytest.mark.parametrize(
    ("query", "keys"),
    [
        ("Где квартира у Тимура?", {"0"}),
        ("Wann wird das Haus verkauft?", {"1"}),
        ("Où est la chambre de l'enfant ?", {"2"}),
        ("¿Dónde duerme el perro?", {"3"}),
        ("Gdzie jest samochód?", {"4"}),
        ("Araba nerede ve lastik yeni mi?", {"5"}),
        ("متى للسيارة؟", {"6"}),
        ("किस लड़का को", {"7"}),
        ("איפה הכלב", {"8"}),
        ("Πού είναι το σκυλί;", {"9"}),
        ("车什么时候", {"11"}),
    ],
)
def test_a_question_finds_another_form_of_its_word(facts: IndexedStore, query: str, keys: set[str]) -> None:
    assert facts.lexical_keys(query) == keys


@pytest.mark.parametrize("text", ["The dog slept in the garden, and we paid him.", "def main(argv): return 0", "", "a"])
def test_english_and_code_have_no_further_stems(text: str) -> None:
    assert word_forms.stems(text) == []
    assert word_forms.query_forms(text).stop_words == set()


def test_the_language_of_latin_letters_is_that_of_most_function_words() -> None:
    german = word_forms.query_forms("Die Rechnung ist bezahlt.").stop_words
    assert german == word_forms.query_forms("Der Hund schläft nicht.").stop_words
    assert {"die", "nicht"} <= german
    assert "cuándo" in word_forms.query_forms("¿Cuándo pagamos la factura?").stop_words
    assert "کجا" in word_forms.query_forms("کتابخانه کجاست").stop_words
    assert word_forms.query_forms("What is the die for?").stop_words == set()


@pytest.mark.parametrize(
    ("query", "is_searched"),
    [
        ("CI cache", "ci"),
        ("CI uses hosted runners", "ci"),
        ("AI roadmap", "ai"),
        ("Is the MIT license ok?", "mit"),
        ("who signed the IT budget", "it"),
        ("What does the WHO say?", "who"),
    ],
)
def test_an_acronym_is_no_function_word(query: str, is_searched: str) -> None:
    assert word_forms.stems(query) == []
    assert is_searched in word_forms.subject_of(query).lower().split()
    words = query_words(query, tokens(query), word_forms.query_forms(query).stop_words)
    assert is_searched in {term.stem for term in words}


@pytest.mark.parametrize("query", ["DO NOT drop tables", "redis OR postgres AND mysql", "WHO ATE THE CAKE", "is it ok"])
def test_emphasis_and_operators_are_function_words_as_in_small_letters(query: str) -> None:
    words = {term.stem for term in query_words(query, tokens(query))}
    assert words.isdisjoint({"do", "not", "or", "and", "who", "the", "is", "it"})


def tokens(text: str) -> list[tuple[int, int, str]]:
    return [(match.start(), match.end(), match.group().lower()) for match in re.finditer(r"\w+", text)]


def test_a_stem_is_shown_as_a_word() -> None:
    (stem,) = word_forms.stems("собаки")
    assert word_forms.as_written(stem) == "собак"


@pytest.mark.parametrize(
    ("query", "stop_words"),
    [
        ("Bọn trẻ của chúng ta được nghỉ khi nào?", ["của", "chúng", "được", "nào"]),
        ("আমাদের মেয়ে কবে থেকে স্কুলে যায়?", [word_forms.private(word) for word in ("আমাদের", "কবে", "থেকে")]),
    ],
)
def test_languages_without_a_stemmer_have_function_words_and_no_stems(query: str, stop_words: list[str]) -> None:
    forms = word_forms.query_forms(query)
    assert forms.stems == []
    assert {*stop_words} <= forms.stop_words


@pytest.mark.parametrize(
    ("query", "subject"),
    [
        ("Qu'est-ce qui effraie l'animal ?", "effraie animal ?"),
        ("Qu\u2019a-t-il dans l\u2019eau ?", "eau ?"),
        ("don't use state-of-the-art", "don't use state-of-the-art"),
        ("우리 사이트는 언제 공격받았나요?", "사이트는 공격받았나요?"),
        ("谁承担玻璃的损失？", "承担玻璃的损失？"),
    ],
)
def test_function_words_are_no_part_of_the_subject(query: str, subject: str) -> None:
    assert word_forms.subject_of(query) == subject
