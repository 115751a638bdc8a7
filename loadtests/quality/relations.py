"""Relations of a thing that are stored, and others: `python -m loadtests.quality.relations [FOLDER ...]`.

`relations.txt` has blocks of facts about one thing, `fact | question`, and of questions that no fact of it answers,
`- | question`. All of a language are in one store; each question is asked, those of facts also with the fact taken out.
Odd blocks may choose constants, even ones judge. In a folder with a judged collection every right text is taken out.
Printed are the shares of strong, weak and no strength: of right texts, of first hits if the right text is not stored,
and the share of these with any strong hit on the page.
"""

import argparse
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from kernel.search import index
from kernel.store.transaction import Tx
from loadtests.lib.servers import table
from loadtests.quality import in_process
from loadtests.quality.dataset import Collection, Doc, Query, read
from loadtests.quality.metrics import CUT

_FILE = Path(__file__).with_suffix(".txt")
_SCOPE = "home"
_ABSENT = "-"
_HALVES = (", odd", ", even")
_FOLDER_QUERIES = 160


class Strengths(NamedTuple):
    """Of right texts, and of the hits of each question without one."""

    right: list[float]
    absent: list[list[float]]


def collections() -> Iterator[Collection]:
    """Each language as a collection; the category of a query is its half, and a query without an answer has none."""
    for part in _FILE.read_text(encoding="utf-8").split("= ")[1:]:
        language, *lines = part.splitlines()
        docs, queries, block = list[Doc](), list[Query](), 0
        for line in lines:
            block += not line
            if not line:
                continue
            fact, question = line.split(" | ")
            answers = [] if fact == _ABSENT else [str(len(docs))]
            docs += [Doc(answer, fact, _SCOPE) for answer in answers]
            queries.append(Query(str(len(queries)), question, answers, _SCOPE, _HALVES[block % 2]))
        yield Collection(language, docs, queries)


def main() -> None:
    """Ask, and print a row for each half of each language and for each folder."""
    parser = argparse.ArgumentParser(description="Stored and other relations of a thing")
    parser.add_argument("folders", nargs="*", type=Path)
    rows: list[tuple[str, ...]] = []
    for collection in (*collections(), *(read(folder, _FOLDER_QUERIES) for folder in parser.parse_args().folders)):
        rows += [_row(f"{collection.name}{half}", strengths) for half, strengths in ask(collection).items()]
    header = (
        "",
        "questions",
        "right: strong",
        "weak",
        "none",
        "not stored",
        "first: strong",
        "weak",
        "none",
        "any strong",
    )
    table("relations of a thing", header, rows)


def ask(collection: Collection) -> dict[str, Strengths]:
    """Return the strengths by half; those of a folder have none."""
    found = defaultdict[str, Strengths](lambda: Strengths([], []))
    with in_process.filled(collection) as (kernel, ids):
        docs = {key: doc for doc, key in ids.items()}
        for query in collection.queries:
            right = frozenset(docs[key] for key in query.relevant)
            every = kernel.store.read_sync(partial(_hits, query=query, without=frozenset()))
            without = kernel.store.read_sync(partial(_hits, query=query, without=right)) if right else every
            half = found[query.category if query.category in _HALVES else ""]
            half.absent.append([strength for _, strength in without])
            if right:
                half.right.append(max((strength for doc, strength in every if doc in right), default=0.0))
    return found


def _hits(tx: Tx, query: Query, without: frozenset[int]) -> list[tuple[int, float]]:
    candidates = in_process.candidates(tx, query.text, query.scope)
    stored = candidates.take([at for at, doc in enumerate(candidates.docs.tolist()) if doc not in without])
    fused = index.rerank(tx, query.text, stored, index.Weights(), lambda docs: {*docs} - without).fused
    return [*zip(fused.found.docs.tolist(), fused.strengths.tolist(), strict=True)][:CUT]


def _row(name: str, strengths: Strengths) -> tuple[str, ...]:
    right, absent = strengths
    firsts = [hits[0] if hits else 0.0 for hits in absent]
    any_strong = sum(max(hits, default=0.0) >= index.least("strong") for hits in absent) / max(1, len(absent))
    return name, str(len(right)), *_shares(right), str(len(absent)), *_shares(firsts), f"{any_strong:.2f}"


def _shares(values: Sequence[float]) -> Iterator[str]:
    for level in ("strong", "weak", "none"):
        yield f"{sum(index.verdict(value) == level for value in values) / max(1, len(values)):.2f}"


if __name__ == "__main__":
    main()
