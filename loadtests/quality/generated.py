"""Judged collections that are made here: procedures, preferences, chats with an assistant, and several languages.

Invented for this purpose, so that nothing has a licence of its own. Each is the same every time.
"""

import random
from collections.abc import Callable, Mapping, Sequence

from loadtests.quality import generated_texts as texts
from loadtests.quality.dataset import Collection, Doc, Query
from loadtests.quality.paraphrases import FITTED, facts

_CHATS = 6
_SENTENCES = 12


def procedures() -> Collection:
    """Steps for ten tasks on ten services in three places: many are alike, and each question wants all three."""
    docs: list[Doc] = []
    queries: list[Query] = []
    for line in texts.TASKS.strip().splitlines():
        task, asked, steps = line.split("|")
        for service in texts.SERVICES:
            wanted: list[str] = []
            for place in texts.PLACES:
                wanted.append(str(len(docs)))
                numbered = " ".join(f"{at}. {step}" for at, step in enumerate(steps.split(";"), 1))
                docs.append(Doc(wanted[-1], f"How to {task} for {service} {place}: {numbered}", "ops"))
            question = asked if len(queries) % 2 else task
            queries.append(Query(f"p{len(queries)}", f"how do I {question} for {service}", wanted, "ops"))
    return Collection("procedures", _shuffled(docs), queries)


def preferences() -> Collection:
    """What somebody likes, among other facts, asked for by requests that hardly share a word with it."""
    rows = [line.split("|") for line in texts.PREFERENCES.strip().splitlines()]
    docs = [Doc(f"p{at}", said, "user") for at, (said, _) in enumerate(rows)]
    docs += [Doc(f"f{at}", fact.wordings[0], "user") for at, fact in enumerate(facts(FITTED))]
    queries = [Query(f"q{at}", asked, [f"p{at}"], "user") for at, (_, asked) in enumerate(rows)]
    return Collection("preferences", _shuffled(docs), queries)


def assistant_chats() -> Collection:
    """Short remarks of a user between long answers about the same subject; the remarks are asked for."""
    chance = random.Random(11)
    docs: list[Doc] = []
    queries: list[Query] = []
    remarks = [line.split("|") for line in texts.REMARKS.strip().splitlines()]
    for number in range(_CHATS):
        scope = f"chat {number}"
        for line in texts.TOPICS.strip().splitlines():
            _, topic, words = line.split("|")
            for remark, asked in chance.sample(remarks, 2):
                told = {"name": chance.choice(texts.NAMES), "day": chance.choice(texts.DAYS)}
                said = remark.format(topic=topic, number=chance.randrange(11, 99), **told)
                docs.append(Doc(str(len(docs)), f"user: {said}. What should I think of next?", scope))
                queries.append(Query(f"a{len(queries)}", asked.format(topic=topic), [docs[-1].id], scope))
                docs.append(Doc(str(len(docs)), f"assistant: {_advice(chance, topic, words.split(';'))}", scope))
    return Collection("assistant chats", docs, queries)


def languages() -> Collection:
    """Facts in six languages in one place, each asked for in its own."""
    rows = [line.split("|") for line in texts.LANGUAGES.strip().splitlines()]
    docs = [Doc(f"{name}{at}", said, "home") for at, (name, said, _) in enumerate(rows)]
    queries = [Query(f"q{at}", asked, [docs[at].id], "home") for at, (_, _, asked) in enumerate(rows)]
    return Collection("languages", _shuffled(docs), queries)


def _advice(chance: random.Random, topic: str, words: Sequence[str]) -> str:
    pairs = [chance.sample(words, 2) for _ in range(_SENTENCES)]
    return " ".join(chance.choice(texts.TEMPLATES).format(topic=topic, a=one, b=other) for one, other in pairs)


def _shuffled(docs: list[Doc]) -> list[Doc]:
    return random.Random(7).sample(docs, len(docs))


COLLECTIONS: Mapping[str, Callable[[], Collection]] = {
    "procedures": procedures,
    "preferences": preferences,
    "assistant": assistant_chats,
    "languages": languages,
}
