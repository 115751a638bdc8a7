"""A name, number, date, digest or part of a word is found however it is written, and another one does not answer."""

from collections.abc import Iterator

import pytest

from kernel.core.config import MODEL
from kernel.search import index
from kernel.search.named_values import value_of
from kernel.store.transaction import Tx
from tests.unit.index_fixtures import CALLER, FACTS, IndexedStore, open_indexed_store

OTHERS = """
Die Katze schläft auf dem Sofa.
Wir fahren im August nach Kroatien.
De trein naar Utrecht vertrekt om acht uur.
Lampan i köket är trasig.
Cyklen skal repareres inden lørdag.
Kissa nukkuu ikkunalla.
A macska az ablakban alszik.
Le chat dort sur le canapé.
The build of release 1.9.4 takes ten minutes.
The flight to Rome leaves on 2025-01-20 at seven.
The budget for the kitchen is $18,400.
The cache was introduced in commit 0a1b2c3d4e.
""".strip().splitlines()
# A query, the memory that it asks for, and memories that are near.
CASES = """
Erklärung|Die Steuererklärung muss bis Ende Juli fertig sein.|Die Erkältung der Kinder ist vorbei.
Schule|Die Musikschule beginnt wieder im September.|Die linke Schulter tut beim Heben weh.
Versicherung|Die Haftpflichtversicherung kostet achtzig Euro.|Die Sicherung im Keller ist durchgebrannt.
Steuererklärungen|Die Steuererklärung muss bis Ende Juli fertig sein.|\
Die Unabhängigkeitserklärung hing im Museum.
Haftpflicht|Die Haftpflichtversicherung kostet achtzig Euro.|Die Haft des Klebers lässt nach einem Jahr nach.
Häuser|Das Gartenhaus braucht ein neues Dach.|Die Mäuse im Keller sind zurück.
Wohnung|Die Ferienwohnung an der Ostsee ist gebucht.|Die Gewohnheit, früh aufzustehen, bleibt.
Zahnarzttermine|Der Zahnarzttermin ist am Montag.|Der Abgabetermin wurde verschoben.
Gartenzaun|Die Farbe für den Gartenzaun steht im Schuppen.|Der Garten braucht Wasser.
Rechnungen|Die Stromrechnung liegt auf dem Küchentisch.|Die Zeichnung hängt am Kühlschrank.
verzekering|De zorgverzekering wordt in januari duurder.|De verzameling postzegels ligt op zolder.
school|De muziekschool is op woensdag open.|De schotel staat op het dak.
fietsen|De bakfiets staat in de schuur.|De kat slaapt op de stoel.
verjaardagen|Het verjaardagsfeest van Lotte is in mei.|Het vergaderen duurt elke week langer.
boodschappenlijst|De boodschappenlijstjes hangen op de koelkast.|De wachtlijst voor de woning is lang.
försäkring|Hemförsäkringen gäller till mars.|Försäljningen ökade under våren.
skolan|Musikskolan ligger vid torget.|Skorna står i hallen.
nyckel|Bilnyckeln ligger i hallen.|Mycket snö föll i helgen.
forsikring|Ulykkesforsikringen skal fornyes i maj.|Forsinkelsen varede hele dagen.
nøgle|Cykelnøglen hænger ved døren.|Nogle gæster kommer først fredag.
skole|Musikskolen holder lukket i uge syv.|Skoene står ude i gangen.
vakuutus|Kotivakuutus maksetaan tammikuussa.|Vaikutus näkyy vasta keväällä.
koulu|Musiikkikoulu alkaa elokuussa.|Koukku on eteisen seinällä.
avain|Autonavain on eteisen pöydällä.|Aivan uusi sohva tulee perjantaina.
biztosítás|A lakásbiztosítást januárban kell fizetni.|A biztosíték a pincében kiégett.
iskola|A zeneiskola szeptemberben nyit.|Az iskelő tanfolyam drága lett.
kulcs|Az autókulcs a konyhában van.|A kukac megette a salátát.
v2.3.2|We shipped v2.3.2 to all customers.|\
The fix for logins is in 2.3.1.;;The candidate v2.3.2-rc1 was withdrawn.;;Support for 2.3 ends in May.
2.3.2|We shipped v2.3.2 to all customers.|\
The fix for logins is in 2.3.1.;;The candidate v2.3.2-rc1 was withdrawn.;;Support for 2.3 ends in May.
v2.3.2-rc1|The candidate v2.3.2-rc1 was withdrawn.|\
We shipped v2.3.2 to all customers.;;The candidate v2.3.2-rc2 passed.
2.3|Support for 2.3 ends in May.|We shipped v2.3.2 to all customers.;;The room is 3.2 metres high.
nodefetch|The proxy uses node-fetch for its requests.|The node was drained before the upgrade.
node-fetch|The proxy uses nodefetch for its requests.|The node was drained before the upgrade.
PostgreSQL 16.2|The orders run on PostgreSQL 16.2.|The reports run on PostgreSQL 15.6.
postgres16|The orders run on PostgreSQL 16.|The reports run on PostgreSQL 15.
Python3.12|The workers need Python 3.12 at least.|The old image had Python 3.11 inside.
scikitlearn|The classifier is from scikit-learn.|We learn Italian on Tuesdays.
vuejs|The dashboard is written in Vue.js.|The view from the roof is wide.
open-telemetry|Traces are sent by OpenTelemetry.|The shop is open on Sundays.
auth-service|The AuthService refuses expired tokens.|The room service closes at ten.
4f5e6d7|The leak was fixed in commit 4f5e6d7c8b9a0f1e2d3c4b5a69788796a5b4c3d2.|\
The leak came in with 3f5e6d7c8b9a0f1e2d3c4b5a69788796a5b4c3d2.
4F5E6D7C|The leak was fixed in commit 4f5e6d7c8b9a0f1e2d3c4b5a69788796a5b4c3d2.|\
The leak came in with 4f5e6d7d8b9a0f1e2d3c4b5a69788796a5b4c3d2.
4f5e6d7c8b9a0f1e2d3c4b5a69788796a5b4c3d2|The leak was fixed in 4f5e6d7.|The leak came in with 4f5e6d8.
sha256:77c3a1b2d4e5|The image has the digest sha256:77c3a1b2d4e5f60718293a4b5c6d7e8f90123456789abcdef.|\
The image before had sha256:88c3a1b2d4e5f60718293a4b5c6d7e8f90123456789abcdef.
550e8400|The tenant is 550e8400-e29b-41d4-a716-446655440000.|\
The tenant before was 660e8400-e29b-41d4-a716-446655440000.
1250000|The house costs $1,250,000 without the garden.|The flat costs $1,205,000 with the garden.
1 250 000|The house costs 1250000 without the garden.|The flat costs 1205000 with the garden.
1_250_000|The house costs 1,250,000 without the garden.|The flat costs 1,205,000 with the garden.
49,90|The monthly fee is 49.90 for the family.|The monthly fee was 49.50 last year.
5550142|The plumber has the number 555-0142.|The baker has the number 555-0124.
+491701234567|Lena's phone is +49 170 1234567.|Tom's phone is +49 170 1234576.
DE89370400440532013000|Rent goes to DE89 3704 0044 0532 0130 00.|The club has DE12 5001 0517 0648 4898 90.
INV-2024-0042|Invoice INV-2024-0042 was paid late.|Invoice INV-2024-0024 is open.
2024-07-15|The contract was signed on July 15, 2024.|\
The lease was signed on 2024-03-03.;;The other contract was signed on July 5, 2024.
15.07.2024|The contract was signed on 2024-07-15.|The lease was signed on 2024-07-05.
7/15/2024|The contract was signed on 15 July 2024.|The lease was signed on 15 June 2024.
July 15, 2024|The contract was signed on 2024-07-15.|\
The lease was signed on 2024-07-05.;;The visit was on 2023-07-15.
15. Juli 2024|Der Vertrag wurde am 15.07.2024 unterschrieben.|\
Der Mietvertrag wurde am 05.07.2024 unterschrieben.
2024/07/15|Le contrat a été signé le 15 juillet 2024.|Le bail a été signé le 3 mars 2024.
20240715|The contract was signed on 2024-07-15.|The lease was signed on 2024-07-05.
Invoice 4712|Invoice 4712 was sent on Monday.|Invoice 4711 is paid.
commit 4f5e6d7|The leak was fixed in 4f5e6d7c8b9a0f1e2d3c4b5a69788796a5b4c3d2.|\
The leak came in with commit 3f5e6d7c8b9a0f1e2d3c4b5a69788796a5b4c3d2.
utf8|All files are in UTF-8.|The old files were in UTF-16.
release 2.3.2|We shipped v2.3.2 to all customers.|\
The release 2.3.1 fixes logins.;;Release v2.3.2-rc1 was withdrawn.
12.500,00|The roof costs 12,500.00 euros.|The roof costs 12,050.00 euros.
0170 1234567|Lena's phone is +49 170 1234567.|Tom's phone is +49 170 1234576.
01701234567|Lena's phone is +49170 1234567.|Tom's phone is +49170 1234576.
+49 170 1234567|Lena's phone is 0170 1234567.|Tom's phone is 0170 1234576.
+351 912345678|The ferry office has 0912 345678.|The museum has 0912 345687.
August 5th|The regatta is on 5 August.|The picnic is on 6 August.
August 5|The regatta is on August 5th.|The picnic is on August 6th.
sun flower|The sunflower is taller than the fence.|The flower shop is closed in the sun.
ware house|The warehouse door jams.|The house has a cellar.
160cm|The desk is 160 cm wide.|The shelf is 116 cm wide.
5GB|Uploads may have up to 5 GB.|Backups may have up to 15 GB.
10.0.0.12|The printer has the address 10.0.0.12.|The scanner has the address 10.0.0.112.
""".strip().splitlines()
FIRST = 1000


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IndexedStore]:
    with open_indexed_store(tmp_path_factory.mktemp("spellings"), MODEL) as opened:
        opened.put([*FACTS, *OTHERS])
        yield opened


def answers(store: IndexedStore, query: str, texts: list[str]) -> list[str]:
    """The texts that may answer beside the others, best first."""

    def read(tx: Tx) -> list[str]:
        fused = index.rerank(tx, query, index.find(tx, query), index.Weights()).fused.at_least(index.least("weak"))
        docs = fused.found.docs.tolist()
        documents = index.documents(tx, docs)
        return [documents[doc].text for doc in docs]

    store.put(texts, first=FIRST)
    found = store.reader.read(CALLER, read)
    store.drop([str(FIRST + at) for at in range(len(texts))])
    return found


@pytest.mark.parametrize("case", CASES)
def test_a_value_finds_the_memory_that_holds_it_however_it_is_written(store: IndexedStore, case: str) -> None:
    query, right, wrong = case.split("|")
    assert answers(store, query, [*wrong.split(";;"), right])[:1] == [right]


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("2024-07-15", "The lease was signed on 2024-03-03."),
        ("July 15, 2024", "The lease was signed on July 5, 2024."),
        ("2024-12-05", "The lease ended on 25.12.2024, and for the house by 2024."),
        ("2024-07-01", "Of 2024 the books are closed: 2024-07-15."),
        ("2.3.2", "The candidate v2.3.2-rc1 was withdrawn."),
        ("2.3", "We shipped v2.3.2 to all customers."),
        ("PostgreSQL 16.2", "The reports run on PostgreSQL 15.6."),
        ("postgres16", "The reports run on PostgreSQL 15."),
        ("Invoice 4712", "Invoice 4711 is paid."),
        ("5550142", "The baker has the number 555-0124."),
        ("4f5e6d7", "The leak came in with 3f5e6d7c8b9a0f1e2d3c4b5a69788796a5b4c3d2."),
        ("1250", "The house costs $1,250,000 without the garden."),
        ("23", "Support for 2.3 ends in May."),
        ("0170 1234567", "Tom's phone is +49 171 1234567."),
        ("+49 170 1234567", "Tom's phone is 0171 1234567."),
        ("0170 1234567", "Tom's phone is 4170 1234567."),
        ("August 5th", "The picnic is on August 6th."),
        ("12a", "Tickets are 12 a day."),
        ("5GB", "Backups may have up to 2.5 GB."),
    ],
)
def test_another_value_is_no_answer(store: IndexedStore, query: str, text: str) -> None:
    assert text not in answers(store, query, [text])


@pytest.mark.parametrize("query", ["report", "plan", "port"])
def test_an_english_word_is_no_compound(store: IndexedStore, query: str) -> None:
    texts = ["Support answers within a day.", "The explanation was long.", "The airport is closed."]
    assert [text for text in answers(store, query, texts) if text in texts] == []


@pytest.mark.parametrize("query", ["", "?", "Where does the dog sleep?", "the dog", "x" * 100, "\0", "कुर्सी", "--"])
def test_a_question_is_no_value(query: str) -> None:
    assert value_of(query) is None


def test_among_equals_the_language_of_the_question_is_first(store: IndexedStore) -> None:
    twins = ["Der Hund schläft nachts auf dem Sofa.", "The dog sleeps on the sofa at night."]
    for texts in (twins, twins[::-1]):
        assert answers(store, "Wo schläft der Hund?", texts)[:1] == twins[:1]
        assert answers(store, "Where does the dog sleep?", texts)[:1] == twins[1:]
