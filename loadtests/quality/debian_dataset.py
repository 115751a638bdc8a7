"""A judged collection of passages: descriptions of Debian packages, queried by their synopses.

Takes a file of descriptions (`*Translation-en`) and writes `docs.jsonl` and `queries.jsonl` into a folder. It contains
only packages that `training_texts.py` holds out, so that a fitted model can be judged by it.
"""

import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec

from loadtests.lib.servers import options
from loadtests.quality.training_texts import Package, packages, read

_MIN_WORDS, _MAX_WORDS = 40, 350
_MIN_QUERY_WORDS = 5
_QUESTIONS = 1000


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the collection."""
    path = {"type": Path, "required": True}
    chosen = options(__doc__, arguments, listing=path, into=path)
    kept = distinct([package for package in packages(read(chosen.listing)) if package.held_out])
    chance = random.Random(5)
    chance.shuffle(kept)  # in the order of the list those beside each other are about the same
    docs = [{"id": one.name, "scope": "debian", "text": " ".join(one.paragraphs)} for one in kept]
    asked = [one for one in kept if len(one.line.split()) >= _MIN_QUERY_WORDS]
    chance.shuffle(asked)
    queries = [{"id": f"q-{one.name}", "scope": "debian", "text": one.line, "relevant": [one.name]} for one in asked]
    chosen.into.mkdir(parents=True, exist_ok=True)
    for name, rows in (("docs", docs), ("queries", queries[:_QUESTIONS])):
        (chosen.into / f"{name}.jsonl").write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
    print(f"{len(docs):,} descriptions, {len(queries[:_QUESTIONS]):,} questions")
    return 0


def distinct(found: Sequence[Package]) -> list[Package]:
    """Packages with passages of suitable length and with unique synopsis and first paragraph."""
    lines = Counter(one.line for one in found)
    firsts = Counter(one.paragraphs[0] for one in found if one.paragraphs)
    return [
        one
        for one in found
        if one.paragraphs
        and lines[one.line] == firsts[one.paragraphs[0]] == 1
        and _MIN_WORDS <= sum(len(part.split()) for part in one.paragraphs) <= _MAX_WORDS
    ]


if __name__ == "__main__":
    raise SystemExit(main())
