"""Old and new among many facts of the same things: `python -m loadtests.quality.many_facts`.

Eight facts of each of twelve services and of twelve people, half of them stated again with another value, are stored
over HTTP. Each is asked for as people ask, also with letters left out, and each thing by its name. Printed are the
shares of the questions with the newer value before the older, with the fact that is asked for first, and with a fact
that is said to be an older version of another one; then those with a strong first hit, if that is the fact asked for,
and if it is not stored. The facts of services were in sight while the rules were chosen, those of people were made
after them.
"""

import random
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from kernel.search.fusion import STRONG
from loadtests.lib.developer_prompts import ATTRIBUTES, SERVICES, Attribute
from loadtests.lib.servers import quipu, table
from loadtests.quality.mcp_client import Caller

_THINGS, _FACTS = 12, 8
_PEOPLE = tuple(
    Attribute(fact, (prompt,), tuple(values.split("/")))
    for fact, prompt, values in (
        line.split(" | ")
        for line in """{service} lives in {value}. | Where does {service} live? | Lyon/Ghent/Porto/Turku
{service} works at {value} as a welder. | Who employs {service}? | Siemens/Damen/Abus
{service} is allergic to {value}. | What is {service} allergic to? | nuts/lupin/celery
{service} drives a {value}. | Which car does {service} drive? | red Fiat/blue Dacia
{service} plays the {value} in the town band. | What does {service} play? | tuba/oboe
The birthday of {service} is on {value}. | When was {service} born? | 4 May/30 October
{service}'s sister is called {value}. | Who is {service}'s sister? | Ines/Maud/Petra
The phone number of {service} ends in {value}. | How does the phone number of {service} end? | 41/88
{service} prefers {value} for breakfast. | What does {service} have for breakfast? | porridge/rye bread
{service} goes to the dentist on {value}. | When does {service} see the dentist? | 12 March/3 April
{service} studies {value} at the evening school. | What does {service} study? | Welsh/pottery
The cat of {service} is called {value}. | Name of {service}'s cat? | Moss/Tinsel/Bo""".splitlines()
    )
)
_NAMES = """Anna Berg|Tom Okafor|Lea Winter|Pavel Novak|Mira Stone|Jan de Vries|Sofia Rossi|Karl Brandt|Noor Haddad|
Ines Costa|Otis Crane|Hana Blum""".replace("\n", "").split("|")
_BARE = ("{}", "tell me about {}", "what do we know of {}?", "problems with {}")


class _Question(NamedTuple):
    text: str
    thing: str
    attribute: int | None


def main() -> None:
    """Store and ask both sets, and one of first names alone; print a row for each."""
    firsts = [name.split()[0] for name in _NAMES]
    sets = {
        "services": (ATTRIBUTES, SERVICES[:_THINGS]),
        "people": (_PEOPLE, _NAMES),
        "first names": (_PEOPLE, firsts),
    }
    rows = [(name, *_judged(*chosen)) for name, chosen in sets.items()]
    shares = ("newer first", "asked first", "wrong version", "strong", "strong, not stored")
    table("many facts of a thing", ("set", "questions", "stated twice", *shares), rows)


def _judged(attributes: Sequence[Attribute], things: Sequence[str]) -> tuple[str, ...]:
    chance = random.Random(7)
    statements = [
        (turn, thing, number, value)
        for thing in things
        for number in chance.sample(range(len(attributes)), _FACTS)
        for turn, value in enumerate(chance.sample(attributes[number].values, chance.choice((1, 2))))
    ]
    statements.sort(key=lambda fact: (fact[0], chance.random()))  # second values come last
    with tempfile.TemporaryDirectory() as data, quipu(Path(data)) as server:
        caller = Caller(server.port)
        kinds: dict[str, tuple[str, int, int]] = {}
        for place, (_, thing, number, value) in enumerate(statements):
            text = attributes[number].fact.format(service=thing, value=value)
            caller.call("add_memory", path=f"facts/{place}", content=text[0].upper() + text[1:])
            kinds[f"paths/facts/{place}"] = (thing, number, place)
        stored = {(thing, number) for _, thing, number, _ in statements}
        questions = _questions(attributes, stored, chance)
        seen = [_seen(caller, kinds, question) for question in questions]
        others = (
            (thing, number) for thing in things for number in range(len(attributes)) if (thing, number) not in stored
        )
        absent = [
            _seen(caller, kinds, _Question(attributes[number].prompts[0].format(service=thing), thing, number))
            for thing, number in others
        ]
        caller.close()
    twice = [answer["newer"] for answer in seen if answer["newer"] is not None]
    firsts = [answer["first"] for answer in seen if answer["first"] is not None]
    strong = [answer["strong"] for answer in seen if answer["first"]]
    wrong = [answer["wrong"] for answer in seen]
    shares = map(_share, (twice, firsts, wrong, strong, [answer["strong"] for answer in absent]))
    return str(len(questions)), str(len(twice)), *shares


def _questions(
    attributes: Sequence[Attribute], asked: set[tuple[str, int]], chance: random.Random
) -> Sequence[_Question]:
    questions: list[_Question] = []
    for thing, number in sorted(asked):
        plain = [prompt.format(service=thing) for prompt in attributes[number].prompts]
        shorter = " ".join(word if word in thing else _misspelt(word, chance) for word in plain[0].split())
        questions += [_Question(text, thing, number) for text in (*plain, shorter)]
    things = sorted({thing for thing, _ in asked})
    return questions + [_Question(form.format(thing), thing, None) for thing in things for form in _BARE]


def _misspelt(word: str, chance: random.Random) -> str:
    """Return a longer word without a letter of its middle."""
    if len(word) < 5:
        return word
    at = chance.randrange(1, len(word) - 2)
    return word[:at] + word[at + 1 :]


def _seen(caller: Caller, kinds: Mapping[str, tuple[str, int, int]], question: _Question) -> dict[str, Any]:
    hits = caller.call("recall", query=question.text, explain=True)["memories"]
    versions = [(kinds[hit["id"]][:2], kinds[hit["older_version_of"]][:2]) for hit in hits if "older_version_of" in hit]
    places = [kinds[hit["id"]][2] for hit in hits if kinds[hit["id"]][:2] == (question.thing, question.attribute)]
    return {
        "strong": bool(hits) and hits[0]["strength"] >= STRONG,
        "wrong": any(older != newer for older, newer in versions),
        "newer": places[0] > places[1] if len(places) > 1 else None,
        "first": bool(places) and kinds[hits[0]["id"]][2] == places[0] if question.attribute is not None else None,
    }


def _share(values: Sequence[bool]) -> str:
    return f"{sum(values) / max(1, len(values)):.2f}"


if __name__ == "__main__":
    main()
