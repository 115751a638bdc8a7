"""Probes of words that a full-text index misses, through recall of a server: names, emoji, Thai, typos, languages.

A probe has questions and a store of texts, and is judged by the share of the questions whose text is among the first
three. The texts of all languages are in one store.
"""

import random
import tempfile
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from loadtests.lib.servers import machine, options, served, table
from loadtests.quality.languages import languages
from loadtests.quality.mcp_client import Caller

_SHOWN = 3
_VERBS = "get set load save parse render delete update build check".split()
_NOUNS = "user account invoice session token image report order cache route".split()
_DETAILS = "name date index state path".split()
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_EMOJI = {
    "🚀": "The launch of the new site went well",
    "🎂": "Grandmother turns ninety this week",
    "🐛": "The parser drops the last line of a file",
    "🌧️": "The picnic was moved indoors",
    "🔥": "The oven of the bakery is repaired",
    "☕": "The machine on the third floor is descaled",
    "🎸": "Rehearsals are in the cellar on Wednesdays",
    "🇯🇵": "The travel insurance covers the autumn trip",
    "👍🏽": "The landlord agreed to the new lease",
    "❤️": "The surprise for the anniversary is a boat trip",
    "🧪": "The second trial begins next quarter",
    "🦷": "The appointment was put off by a week",
}
_THAI = {
    "แมวของฉันชอบกินปลาทูน่า": "แมวกินอะไร",
    "ประชุมทีมเลื่อนไปวันพุธ": "ประชุมวันไหน",
    "รหัสประตูหน้าบ้านเปลี่ยนแล้ว": "รหัสประตู",
    "คุณหมอแนะนำให้ดื่มน้ำมากขึ้น": "หมอแนะนำอะไร",
    "โครงการใหม่ใช้ภาษาไพทอน": "โครงการใช้ภาษาอะไร",
    "ตลาดนัดเปิดทุกเช้าวันเสาร์": "ตลาดเปิดเมื่อไร",
    "ต้นไม้หน้าบ้านต้องรดน้ำทุกวัน": "รดน้ำต้นไม้",
    "น้องชายเรียนอยู่ที่เชียงใหม่": "น้องชายเรียนที่ไหน",
    "ร้านอาหารนี้ไม่มีที่จอดรถ": "ที่จอดรถของร้าน",
    "เครื่องซักผ้าเสียตั้งแต่เมื่อวาน": "เครื่องซักผ้าเป็นอะไร",
}
_SENTENCES = (
    "Kubernetes restarts the billing service after each deployment",
    "The subscription to the newspaper ends in September",
    "Rosemary and thyme grow beside the greenhouse",
    "The orchestra rehearses the symphony on Thursday",
    "Chlorine in the swimming pool is measured twice a day",
    "The accountant wants the receipts of the conference",
    "Archaeologists found pottery below the cathedral",
    "The elevator of the library is inspected in October",
    "Penguins at the aquarium are fed with herring",
    "The translation of the contract needs a signature",
    "Volcanic ash delayed the connecting flight",
    "The thermostat in the nursery shows the wrong temperature",
    "Encryption of the laptops is mandatory since spring",
    "The carpenter repairs the staircase next week",
    "Her dissertation is about migrating butterflies",
)


class Probe(NamedTuple):
    """A store of texts, and questions with the position of the text that answers each."""

    name: str
    texts: list[str]
    questions: list[tuple[str, int]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the share of the questions of each probe whose text is among the first three."""
    options(__doc__, arguments)
    machine()
    rows = [(name, str(count), f"{share:.2f}") for name, count, share in results()]
    table("recall, words that an index may miss", ("probe", "questions", f"hit@{_SHOWN}"), rows)
    return 0


def probes() -> list[Probe]:
    """The probes, the same in each run."""
    every = [(fact, question) for pairs in languages().values() for fact, question in pairs]
    texts = [fact for fact, _ in every]
    position = {fact: at for at, fact in enumerate(texts)}
    spoken = [
        Probe(name, texts, [(question, position[fact]) for fact, question in pairs])
        for name, pairs in languages().items()
    ]
    return [_names(), _emoji(), _thai(), _typos(random.Random(7)), *spoken]


def results() -> Iterator[tuple[str, int, float]]:
    """The name of each probe, the number of its questions, and the share that is answered."""
    for texts, same in groupby(probes(), key=lambda probe: probe.texts):
        with tempfile.TemporaryDirectory() as data, served("kernel", "serve", "--data", data) as server:
            server.wait("/readyz", b'"model":"ready"')
            caller = Caller(server.port)
            for at, text in enumerate(texts):
                caller.call("add_memory", path=f"p{at}", content=text)
            for probe in same:
                found = sum(f"p{at}" in _first(caller, question) for question, at in probe.questions)
                yield probe.name, len(probe.questions), found / len(probe.questions)
            caller.close()


def _first(caller: Caller, question: str) -> list[str]:
    found = caller.call("recall", query=question, limit=_SHOWN)
    return [memory["id"].rpartition("/")[2] for memory in found["memories"]]


def _names() -> Probe:
    """Half of the names are in camelCase, half in snake_case; questions have them in words, or in the other form."""
    texts: list[str] = []
    questions: list[tuple[str, int]] = []
    for at, verb in enumerate(_VERBS):
        for number, noun in enumerate(_NOUNS):
            words = [verb, noun, "by", _DETAILS[(at + number) % len(_DETAILS)]]
            camel = words[0] + "".join(word.title() for word in words[1:])
            snake = "_".join(words)
            kept, other = (camel, snake) if (at + number) % 2 else (snake, camel)
            if (at + number) % 3 == 0:
                questions.append((" ".join(words), len(texts)))
            elif (at + number) % 3 == 1:
                questions.append((other, len(texts)))
            texts.append(f"def {kept}(value): return None")
    return Probe("camelCase and snake_case", texts, questions)


def _emoji() -> Probe:
    texts = [f"{text} {emoji}" for emoji, text in _EMOJI.items()]
    return Probe("emoji", texts, [(emoji, at) for at, emoji in enumerate(_EMOJI)])


def _thai() -> Probe:
    return Probe("Thai", [*_THAI], [(question, at) for at, question in enumerate(_THAI.values())])


def _typos(chance: random.Random) -> Probe:
    """The two longest words of each sentence, each with one wrong edit, asked for alone."""
    questions = [
        (misspelt(word, chance), at)
        for at, text in enumerate(_SENTENCES)
        for word in sorted(text.lower().split(), key=len)[-2:]
    ]
    return Probe("typos", [*_SENTENCES], questions)


def misspelt(word: str, chance: random.Random) -> str:
    """A word with one letter too few, too many or wrong, or two swapped, but not its first."""
    at = chance.randrange(1, len(word) - 1)
    letter = chance.choice(_LETTERS)
    return chance.choice(
        (
            word[:at] + word[at + 1 :],
            word[:at] + letter + word[at:],
            word[:at] + letter + word[at + 1 :],
            word[:at] + word[at + 1] + word[at] + word[at + 2 :],
        )
    )


if __name__ == "__main__":
    raise SystemExit(main())
