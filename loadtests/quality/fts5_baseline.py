"""The full-text baseline: FTS5 with the Porter stemmer, one index for each scope, content words joined by OR."""

import re
import time
from collections.abc import Sequence
from typing import Any

import apsw

from kernel.search.query import STOP_WORDS, quote
from loadtests.quality.dataset import Collection
from loadtests.quality.engine_adapter import Ranking

CANDIDATES = 100


class Words:
    """The texts of a collection by scope, for BM25 inside the scope."""

    def __init__(self, collection: Collection) -> None:
        self._db = apsw.Connection(":memory:")
        self._scopes = {scope: f"f{number}" for number, scope in enumerate(collection.scopes)}
        for scope, docs in collection.scopes.items():
            name = self._scopes[scope]
            self._db.execute(
                f"CREATE VIRTUAL TABLE {name} USING fts5 (id UNINDEXED, text, tokenize = 'porter unicode61')"
            )
            with self._db:
                self._db.executemany(f"INSERT INTO {name} VALUES (?, ?)", [(doc.id, doc.text) for doc in docs])

    def find(self, text: str, scope: str) -> Ranking:
        """The best matches by BM25, larger is better."""
        name = self._scopes.get(scope)
        words = [*dict.fromkeys(re.findall(r"\w+", text.lower()))]
        useful = [word for word in words if word not in STOP_WORDS] or words
        if not useful or name is None:
            return Ranking({}, 0.0)
        begun = time.perf_counter()
        query = f"SELECT id, -bm25({name}) FROM {name} WHERE {name} MATCH ? ORDER BY 2 DESC LIMIT ?"
        found: Any = self._db.execute(query, (_any(useful), CANDIDATES)).fetchall()
        return Ranking(dict(found), time.perf_counter() - begun)


def _any(words: Sequence[str]) -> str:
    return " OR ".join(map(quote, words))
