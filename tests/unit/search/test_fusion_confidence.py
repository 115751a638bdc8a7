"""How likely a document answers a query, by the evidence of both."""

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from kernel.core.config import MODEL
from kernel.search import index
from kernel.search.fusion import Candidates, Reading, strengths
from kernel.search.vectors import embed_question
from kernel.store.transaction import Tx
from tests.unit.index_fixtures import CALLER, FACTS, IndexedStore, open_indexed_store

USUAL = index.Weights()
TEXTS = [
    "The car needs new winter tyres before November",
    "Ada prefers green tea in the morning",
    "ხვალ deploy სერვერზე",
    "The API gateway times out after 30 seconds",
]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[IndexedStore]:
    with open_indexed_store(tmp_path, MODEL) as opened:
        opened.put(TEXTS)
        yield opened


def verdicts(store: IndexedStore, query: str) -> dict[str, index.Verdict]:
    """Return the verdict on each text that may answer."""

    def read(tx: Tx) -> dict[str, index.Verdict]:
        fused = index.rerank(tx, query, index.find(tx, query), index.Weights()).fused
        said: list[index.Verdict] = [index.verdict(strength) for strength in fused.strengths.tolist()]
        found = zip(fused.found.docs.tolist(), said, strict=True)
        return {TEXTS[doc - 1]: one for doc, one in found if one != "none"}

    return store.reader.read(CALLER, read)


@pytest.mark.parametrize("query", ["quantum chromodynamics", "xyzzy plugh", "capital of France"])
def test_what_nothing_answers_has_no_hit_of_any_strength(store: IndexedStore, query: str) -> None:
    assert verdicts(store, query) == {}


def test_what_holds_the_words_of_a_query_is_strong_and_a_paraphrase_weak(store: IndexedStore) -> None:
    assert verdicts(store, "what does Ada prefer in the morning") == {TEXTS[1]: "strong"}
    assert verdicts(store, "vehicle maintenance") == {TEXTS[0]: "weak"}


def test_a_text_that_the_model_cannot_read_is_judged_by_its_words(store: IndexedStore) -> None:
    assert verdicts(store, "deploy")[TEXTS[2]] == "strong"
    assert TEXTS[2] not in verdicts(store, "green tea")


def test_a_query_that_the_model_cannot_read_is_judged_by_its_words(store: IndexedStore) -> None:
    assert verdicts(store, "სერვერზე") == {TEXTS[2]: "strong"}


PARTS = [
    "Send the photos by Whats App to Leo.",
    "The car park code is 4412.",
    "My sour dough starter lives in the fridge.",
    "Die Krankenversicherungskarte liegt in der Schublade.",
    "The house costs $1,250,000 without the garden.",
    "Fixed in commit 9f8e7d6c5b4a39281706f5e4d3c2b1a09f8e7d6c.",
    "The regression began with a1b2c3d on the main branch.",
    "The contract was signed on 2024-07-15.",
    "Invoice 4711 is paid.",
    "The Kubernetes upgrade is on Saturday.",
    "Der Hund schläft nachts auf dem Sofa.",
]


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IndexedStore]:
    with open_indexed_store(tmp_path_factory.mktemp("parts"), MODEL) as opened:
        opened.put(PARTS)
        yield opened


def answers(store: IndexedStore, query: str) -> list[int]:
    """The numbers of the texts that may answer, best first."""

    def read(tx: Tx) -> list[int]:
        fused = index.rerank(tx, query, index.find(tx, query), index.Weights()).fused
        return [doc - 1 for doc in fused.at_least(index.least("weak")).found.docs.tolist()]

    return store.reader.read(CALLER, read)


@pytest.mark.parametrize(
    ("query", "number"),
    [
        ("whatsapp", 0),
        ("carpark", 1),
        ("sourdough", 2),
        ("Versicherung", 3),
        ("1250000", 4),
        ("1.250.000", 4),
        ("9f8e7d6", 5),
        ("9f8e7d6c5b4a", 5),
        ("a1b2c3d4e5f60718293a4b5c6d7e8f9012345678", 6),
        ("2024-07-15", 7),
        ("4711", 8),
        ("kube", 9),
        ("Where does the dog sleep?", 10),
        ("Где спит собака?", 10),
    ],
)
def test_a_part_of_a_word_another_spelling_or_language_may_answer(parts: IndexedStore, query: str, number: int) -> None:
    assert answers(parts, query)[:1] == [number]


@pytest.mark.parametrize(
    "query", ["2024-03-03", "4712", "1250001", "0f0e0d0c0b0a", "zzzzz", "What is the boiling point?"]
)
def test_another_number_date_or_digest_is_no_answer(parts: IndexedStore, query: str) -> None:
    assert answers(parts, query) == []


ANSWERED = {
    "When is grandfather's birthday?": 4,
    "Which database holds the orders?": 5,
    "When is the car being repaired?": 6,
    "What instrument does Peter play?": 7,
    "Who has our second key?": 8,
    "How does Anna like her coffee?": 9,
    "Which plants are on the balcony?": 12,
    "How is our code indented?": 14,
    "How much do we pay for the concert?": 15,
    "On which day can we not visit the museum?": 18,
}
UNANSWERED = """
What is the capital of Peru?
How do I bake sourdough bread?
Who was the first emperor of Rome?
Which airline lost our luggage?
How do I reset my VPN token?
What is the retry policy of the payment webhook?
Where did we park the caravan?
When is the piano tuner coming?
How much does the gym membership cost?
What is Elena's phone number?
Why is the sky blue?
Which wine goes with salmon?
Is it safe to eat raw mushrooms?
How tall is the Christmas tree?
Who is on call this weekend?
What was the score of the chess tournament?
""".strip().splitlines()


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IndexedStore]:
    with open_indexed_store(tmp_path_factory.mktemp("facts"), MODEL) as opened:
        opened.put(FACTS)
        yield opened


@pytest.mark.slow
def test_natural_questions_about_other_things_are_met_with_silence(facts: IndexedStore) -> None:
    assert [query for query, number in ANSWERED.items() if answers(facts, query)[:1] != [number]] == []
    assert sum(not answers(facts, query) for query in UNANSWERED) >= 2 / 3 * len(UNANSWERED)


def candidates(meaning: list[float], near: list[float], exact: list[float], documents: int) -> Candidates:
    """Documents found by meaning and by words."""
    size = len(meaning)
    columns = np.ones(size), np.array(meaning), np.zeros(size), np.array(exact), np.array(near), np.full(size, np.nan)
    return Candidates(np.arange(size), *columns, query=Reading("two words", 1.0, 2, documents))


def test_the_same_evidence_says_less_among_more_documents() -> None:
    evidence = [0.45], [0.4], [0.0]
    strong = [float(strengths(candidates(*evidence, documents))[0]) for documents in (5, 500, 50_000)]
    assert strong == sorted(strong, reverse=True)
    assert index.verdict(strong[0]) == "weak"
    assert index.verdict(strong[-1]) == "none"


def test_no_hit_is_stronger_than_its_page_and_a_faint_one_stays_beside_a_clear_one() -> None:
    alone = strengths(candidates([0.38], [0.35], [0.0], 2000))
    beside = strengths(candidates([0.38, 0.7], [0.35, 0.9], [0.0, 0.9], 2000))
    assert [index.verdict(strength) for strength in (*alone, *beside)] == ["none", "weak", "strong"]


def test_what_no_other_document_holds_says_more_than_what_many_hold() -> None:
    evidence = candidates([0.6], [0.5], [0.3], 2000)
    common, rare = (strengths(evidence._replace(words=np.array([words])))[0] for words in (0.5, 9.0))
    assert [index.verdict(float(strength)) for strength in (common, rare)] == ["none", "weak"]


def test_a_question_of_many_words_is_rarely_answered_by_chance_among_many_documents() -> None:
    """Chance matches few of its words, and as many documents say little about it."""
    evidence = candidates([0.6], [0.6], [0.0], 5000)
    short, long = (strengths(evidence._replace(query=evidence.query._replace(words=words)))[0] for words in (8, 20))
    assert [index.verdict(float(strength)) for strength in (short, long)] == ["none", "weak"]


def test_what_all_texts_have_in_common_says_little_and_to_have_less_of_it_makes_no_hit_stronger() -> None:
    """Small talk is like any question about life."""
    evidence = candidates([0.5], [0.45], [0.2], 30)
    less, usual, more = (float(strengths(evidence, common=common)[0]) for common in (0.0, 0.11, 0.35))
    assert less == usual
    assert [index.verdict(strength) for strength in (usual, more)] == ["weak", "none"]


def test_strong_hits_are_told_apart_by_two_digits() -> None:
    found = strengths(candidates([0.55, 0.9], [0.5, 1.0], [0.2, 1.0], 5)).tolist()
    assert [round(strength, 2) for strength in found] == [0.99, 1.0]


def test_what_bears_on_a_request_is_never_strong_by_that_alone() -> None:
    evidence = candidates([0.1, 0.4, 0.6], [0.1, 0.3, 0.5], [0.0, 0.0, 0.0], 5000)
    lifted = strengths(evidence._replace(query=evidence.query._replace(is_request=True)))
    assert [index.verdict(strength) for strength in strengths(evidence)] == ["none", "none", "none"]
    assert [index.verdict(strength) for strength in lifted] == ["none", "weak", "weak"]
    assert max(lifted) == 0.5


def test_a_question_for_a_reason_or_about_others_asks_for_no_advice(facts: IndexedStore) -> None:
    def is_request(question: str) -> bool:
        asked = facts.reader.read(CALLER, lambda tx: embed_question(tx, question))
        return asked is not None and asked.is_request

    advice = "what should I plant", "Which phone do you recommend?", "How do we plan it?", "Is there help?", "Help me."
    others = "Why should we plan ahead?", "what does Ada recommend", "How did it help?", "Do plans help?", "Who sings?"
    assert [is_request(question) for question in (*advice, *others)] == [True] * 5 + [False] * 5


TASTES = [
    "Loud restaurants give me a headache.",
    "I get seasick on small boats.",
    "Horror films keep me awake at night.",
    "Public transport is how I get around, I have no car.",
]


REQUESTS = {
    "suggest something to do at the sea": 1,
    "which restaurant would you recommend": 0,
    "what should we watch tonight": 2,
    "recomienda algo para ver esta noche": 2,
}


def test_a_request_gets_the_taste_that_it_bears_on(tmp_path: Path) -> None:
    with open_indexed_store(tmp_path, MODEL) as opened:
        opened.put([*TASTES, *FACTS])
        assert {request: answers(opened, request)[:1] for request in REQUESTS} == {
            request: [number] for request, number in REQUESTS.items()
        }


def test_copies_are_no_further_documents_that_may_be_like_a_query_by_chance(tmp_path: Path) -> None:
    copies = [f"{text[:-1]}, says note {number}." for number in range(40) for text in FACTS[:3]]
    with open_indexed_store(tmp_path, MODEL) as opened:
        opened.put(copies)
        found = opened.reader.read(CALLER, lambda tx: index.rerank(tx, "shellfish", index.find(tx, "shellfish"), USUAL))
    assert found.fused.found.query.documents < len(copies) / 2


ALONE = """
fastapi|Fast API serves the public routes.
Versicherung|Die Krankenversicherungskarte liegt in der Schublade.
Arzttermin|Der Zahnarzttermin ist am Montag.
sourdough|My sour dough starter lives in the fridge.
postgres|We chose PostgreSQL for the orders.
elastic|Elasticsearch indexes the product catalogue.
datadog|Data Dog alerts go to the on-call phone.
whatsapp|Send the photos by Whats App to Leo.
javascript|The frontend is plain Java Script without a framework.
typescript|All new services use Type Script.
github|Git Hub hosts the mirror of the repository.
onboarding|The on-boarding takes two days.
email|Write an e-mail to the landlord.
website|The web site is down for maintenance.
healthcheck|The health check runs every minute.
loadbalancer|The load balancer drops idle connections.
dishwasher|The dish washer leaks at the door.
Fahrrad|Das Fahrradschloss ist im Keller.
Schlüssel|Der Kellerschlüssel hängt am Haken.
getUser|The function getUserById caches for a minute.
user_id|The column user_id is indexed.
HttpServer|The class HTTPServer listens on port 80.
a1b2c3d|The regression began with a1b2c3d4e5f60718293a4b5c6d7e8f9012345678.
4711|Invoice 4711 is paid.
2024-07-15|The contract was signed on 2024-07-15.
v2.3.1|Release v2.3.1 fixes the login.
10.0.0.12|The printer has the address 10.0.0.12.
Terraform|terraform's state lies in the bucket.
kubectl|Run kubectl get pods before the upgrade.
backups|The backup runs at two.
dentist|The dentists are closed in August.
allergies|Her allergy is to pollen.
snowboarding|He broke his snowboard last winter.
parking|The car park code is 4412.
réunion|La reunion est reportée à jeudi.
собака|Собаку кормят утром и вечером.
Müller|Frau Mueller leitet die Buchhaltung.
naive|The naïve approach takes an hour.
colour|The fence gets a new color in spring.
macbook|Her Mac Book is in repair.
powerpoint|The Power Point slides are due on Friday.
screenshot|Attach a screen shot to the ticket.
""".strip().splitlines()


@pytest.mark.slow
def test_the_memory_that_a_single_word_asks_for_is_first_and_not_silent(tmp_path: Path) -> None:
    asked = [line.split("|") for line in ALONE]
    with open_indexed_store(tmp_path, MODEL) as opened:
        opened.put([text for _, text in asked])
        assert [word for number, (word, _) in enumerate(asked) if answers(opened, word)[:1] != [number]] == []


def test_texts_in_other_languages_than_the_query_are_no_chance_to_be_like_it() -> None:
    count = 40
    texts = Candidates(
        np.arange(1, count + 1),
        words=np.array([7.0, *[np.nan] * (count - 1)]),
        meaning=np.array([0.22, *[0.1] * (count - 1)]),
        late=np.full(count, 0.2),
        exact=np.array([0.15, *[0.0] * (count - 1)]),
        near=np.full(count, 0.3),
        value=np.full(count, np.nan),
        query=Reading("¿Cuándo arreglan mi coche?", words=3, documents=400, by_words=True),
    )
    among_english = strengths(texts, np.array([2, *[1] * (count - 1)]))
    among_their_own = strengths(texts, np.full(count, 2))
    assert index.verdict(among_english[0]) == "weak"
    assert index.verdict(among_their_own[0]) == "none"


def test_likeness_says_more_across_languages_and_shared_words_say_less_in_others() -> None:
    english, other_texts, others, other_question = range(4)

    def odds(languages: int, words: float, exact: float) -> float:
        text = Candidates(
            np.array([1]),
            words=np.array([words]),
            meaning=np.array([0.2]),
            late=np.array([np.nan]),
            exact=np.array([exact]),
            near=np.array([0.3]),
            value=np.array([np.nan]),
            query=Reading("who pays the bill", words=2, documents=2, by_words=True),
        )
        strength = float(strengths(text, np.array([languages]))[0])
        return math.log(strength / (1 - strength))

    alike = [odds(languages, np.nan, 0.0) for languages in range(4)]
    assert alike[english] < alike[other_texts] < alike[other_question]
    gain = [odds(languages, 2.0, 0.5) - alike[languages] for languages in range(4)]
    assert gain[others] < min(gain[english], gain[other_texts])
