"""First prompts of developers: made from tables, with a seed, so that each run has the same thousand.

200 ask for a fact that the store holds; 50 ask the same way for one that it does not hold, about the same services;
750 give work, ask for general knowledge, or go on with something. Facts and prompts share names of services, and the
words of an attribute only where a person would hardly choose others.
"""

import random
from typing import NamedTuple

SEED = 20261123
SERVICES = """billing API|invoice worker|login page|search index|image resizer|mail gateway|report builder|chat bot|
price feed|audit log|user directory|payment bridge|stock sync|video encoder|feature store|notification hub|map tiles|
survey form|coupon engine|parcel tracker""".replace("\n", "").split("|")
_PEOPLE = "Mia Jonas Aylin Tom Chidi Lena Pavel Noor Sven Ines".split()


class Attribute(NamedTuple):
    """What can be known of a service: a fact, prompts that ask for it, and values."""

    fact: str
    prompts: tuple[str, ...]
    values: tuple[str, ...]


ATTRIBUTES = (
    Attribute(
        "The {service} listens on port {value}.",
        ("On which port does the {service} run?", "I can't reach the {service} locally, what port is it on?"),
        tuple(str(8100 + 7 * number) for number in range(10)),
    ),
    Attribute(
        "{value} owns the {service} and reviews every change to it.",
        (
            "Who should review my change to the {service}?",
            "Find out who is responsible for the {service} and add them.",
        ),
        tuple(_PEOPLE),
    ),
    Attribute(
        "The {service} is deployed on {value}, never before a weekend.",
        (
            "When can I ship the new version of the {service}?",
            "Plan the rollout of the {service}: which day do we deploy?",
        ),
        ("Mondays", "Tuesdays", "Wednesdays", "Thursdays"),
    ),
    Attribute(
        "The {service} keeps its data in {value}; we decided against a second database.",
        (
            "Which database does the {service} use?",
            "Write a migration for the {service}. What does it store its data in?",
        ),
        ("PostgreSQL 17", "SQLite", "MariaDB", "DuckDB", "Redis with append-only files"),
    ),
    Attribute(
        "Calls of the {service} time out after {value} seconds, because its clients wait no longer.",
        ("What timeout did we agree on for the {service}?", "How long may a request to the {service} take?"),
        ("3", "5", "8", "12", "20", "45"),
    ),
    Attribute(
        "The tests of the {service} are run with `{value}`.",
        ("How do I run the tests of the {service}?", "Run the test suite for the {service} and fix what fails."),
        ("make check", "tox -e unit", "npm run verify", "just test", "cargo nextest run", "go test ./..."),
    ),
    Attribute(
        "The {service} runs in the region {value} for legal reasons.",
        ("In which region is the {service} hosted?", "Where does the {service} run? I need the region for Terraform."),
        ("eu-central-1", "eu-north-1", "us-east-2", "ap-southeast-1", "ca-central-1"),
    ),
    Attribute(
        "The {service} retries a failed call {value} times and then gives up.",
        ("How often does the {service} retry?", "What is the retry limit of the {service}?"),
        ("2", "3", "4", "6", "9"),
    ),
    Attribute(
        "Logs of the {service} are written to {value}.",
        ("Where do I find the logs of the {service}?", "Look at the log file of the {service} and tell me what broke."),
        ("/var/log/quay.log", "/srv/logs/app.jsonl", "the bucket ops-logs", "journald", "/data/trace.log"),
    ),
    Attribute(
        "Secrets of the {service} come from {value}; nothing is in the environment.",
        (
            "How does the {service} get its secrets?",
            "Add a new secret to the {service}. Where do its secrets come from?",
        ),
        ("Vault", "SOPS files", "the parameter store", "sealed secrets", "1Password Connect"),
    ),
    Attribute(
        "The cache of the {service} lives for {value}.",
        ("What is the cache lifetime of the {service}?", "How long does the {service} cache its answers?"),
        ("30 seconds", "5 minutes", "an hour", "a day", "10 minutes"),
    ),
    Attribute(
        "Feature flags of the {service} begin with {value}.",
        (
            "How do we name feature flags in the {service}?",
            "Add a feature flag to the {service} with our usual prefix.",
        ),
        ("ff_", "exp-", "toggle.", "lab_", "beta/"),
    ),
    Attribute(
        "The {service} authenticates its callers with {value}.",
        ("How does the {service} authenticate callers?", "What kind of authentication does the {service} expect?"),
        ("mutual TLS", "signed JWTs", "API keys in a header", "OAuth client credentials", "HMAC signatures"),
    ),
    Attribute(
        "Backups of the {service} are made at {value} and kept for 30 days.",
        ("When is the {service} backed up?", "At what time does the backup of the {service} run?"),
        ("02:15", "03:40", "04:05", "23:30", "01:10"),
    ),
    Attribute(
        "The {service} allows {value} requests a minute for each customer.",
        (
            "What is the rate limit of the {service}?",
            "How many requests per minute may a customer send to the {service}?",
        ),
        ("60", "120", "300", "900", "1500"),
    ),
    Attribute(
        "The {service} is written in {value}.",
        (
            "Which language is the {service} written in?",
            "In what language do I have to write a patch for the {service}?",
        ),
        ("Rust", "Go", "Python 3.13", "Kotlin", "TypeScript", "Elixir"),
    ),
    Attribute(
        "Dates in the {service} are stored as {value}.",
        ("In what format does the {service} store dates?", "How are timestamps saved in the {service}?"),
        ("epoch milliseconds", "ISO 8601 in UTC", "RFC 2822 text", "Julian days"),
    ),
    Attribute(
        "Branches of the {service} are called {value}.",
        ("How should I name my branch for the {service}?", "Create a branch in the {service} by our naming rules."),
        ("fix/TICKET", "NAME/topic", "TICKET-topic", "wip/DATE"),
    ),
    Attribute(
        "The {service} publishes its events to {value}.",
        ("Which queue does the {service} publish to?", "Where do the events of the {service} go?"),
        ("NATS", "Kafka topic core", "RabbitMQ", "an SNS topic", "Redis streams"),
    ),
    Attribute(
        "Errors of the {service} are reported to {value}.",
        ("Where are errors of the {service} reported?", "Which error tracker do we use for the {service}?"),
        ("Sentry", "GlitchTip", "Rollbar", "the ops channel", "Honeybadger"),
    ),
)
_VERBS = """Refactor|Rename|Document|Simplify|Speed up|Add types to|Write unit tests for|Split|Port|
Remove dead code from""".replace("\n", "").split("|")
_THINGS = """the CSV parser|the settings dialog|the date picker|the retry decorator|the graph layout|the JSON encoder|
the command line parser|the colour picker|the thread pool|the markdown renderer|the undo stack|the diff view|
the tokenizer|the file watcher|the matrix class""".replace("\n", "").split("|")
_OTHER_THINGS = """the installer|the release notes|the tooltip|the currency table|the import wizard|the health check|
the address form|the PDF export|the shortcut keys|the sign-up mail""".replace("\n", "").split("|")
_NOTES = (
    "{{person}} rewrote {thing} in March; the old one is in the branch legacy.",
    "{thing} shows amounts in the wrong locale for Swiss customers; open since May.",
    "We tried a library for {thing} and dropped it, since it pulled in forty packages.",
    "{{person}} wants {thing} behind a flag until the audit is over.",
    "Customers asked twice for {thing} on small screens; the answer was no for this year.",
    "{thing} has no owner since {{person}} left the team.",
    "The nightly run fails when {thing} and the clock of the host disagree.",
    "Keep {thing} out of the mobile build: it doubles its size.",
    "Legal signed off {thing}; the letter is with {{person}}.",
    "The demo in June uses {thing} with made-up data.",
)
_ENDS = """so that it has no global state|without changing its interface|and keep the public names|
into smaller functions|and explain what you did|with as few changes as possible""".replace("\n", "").split("|")
_KNOWLEDGE = """explain how {} works in simple words|what is the difference between {} and a plain list|
show me an example of {} in Python|why would anybody use {}|what are common mistakes with {}|
give me a short history of {}""".replace("\n", "").split("|")
_TOPICS = """a B-tree|a bloom filter|two-phase commit|raft consensus|a monad|garbage collection|tail recursion|
a trie|memoization|vector clocks|copy on write|a skip list|dependency injection|event sourcing|a coroutine|
dynamic programming|a mutex|quick sort|the visitor pattern|unicode normalization""".replace("\n", "").split("|")
_ONGOING = """please go on with the next step of the plan|looks good so far, continue with the rest|
fix the failing assertion in the last test|revert the last change and try again|commit this with a good message|
make the error message above clearer|run it again and show me the output|that is not what I meant, try another way|
add a comment that says why|clean up the imports in this file""".replace("\n", "").split("|")
_PLACES = "in utils.py|in the second file|in main.rs|in this module|in the header|in the helper|below|above".split("|")


class Prompt(NamedTuple):
    """A first prompt, and the path of the memory that answers it; empty where none does."""

    text: str
    answer: str
    kind: str


class Replay(NamedTuple):
    """What is stored, by path, and the prompts."""

    memories: dict[str, str]
    prompts: list[Prompt]


def make(seed: int = SEED) -> Replay:
    """The thousand prompts, in random order, and 200 facts beside 100 notes on what no prompt asks for."""
    chance = random.Random(seed)
    pairs = [(service, attribute) for service in SERVICES for attribute in ATTRIBUTES]
    chance.shuffle(pairs)
    memories: dict[str, str] = {}
    prompts: list[Prompt] = []
    for number, (service, attribute) in enumerate(pairs[:250]):
        text = chance.choice(attribute.prompts).format(service=service)
        path = ""
        if number < 200:
            path = f"shop/fact-{number}"
            memories[path] = attribute.fact.format(service=service, value=chance.choice(attribute.values))
        prompts.append(Prompt(text, path, "stored" if path else "not stored"))
    work = [f"{verb} {thing} {end}" for verb in _VERBS for thing in _THINGS for end in _ENDS]
    knowledge = [ask.format(topic).capitalize() for ask in _KNOWLEDGE for topic in _TOPICS]
    ongoing = [f"{text} {place}" for text in _ONGOING for place in _PLACES]
    prompts += [Prompt(text, "", "work") for text in chance.sample(work, 550)]
    prompts += [Prompt(text, "", "knowledge") for text in knowledge]
    prompts += [Prompt(text, "", "going on") for text in ongoing]
    notes = [text.format(thing=thing) for text in _NOTES for thing in _OTHER_THINGS]
    for number, text in enumerate(notes):
        memories[f"shop/note-{number}"] = text.format(person=chance.choice(_PEOPLE))
    chance.shuffle(prompts)
    return Replay(memories, prompts)
