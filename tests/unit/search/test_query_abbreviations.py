"""An abbreviation that no memory has finds the words for which it stands, and the words their abbreviation."""

from collections.abc import Iterator

import pytest

from kernel.core.config import MODEL
from kernel.search import index
from kernel.search.lexical import respelled_query
from kernel.store.transaction import Tx
from tests.unit.index_fixtures import CALLER, IndexedStore, open_indexed_store

TEXTS = [
    "Authentication is by Keycloak",
    "Continuous integration runs on Buildkite",
    "The VPN is WireGuard",
    "The maximum upload is 20 MB",
    "Ada joined the United States team",
    "Configuration lives in settings.toml, the cfg in an old repo",
    "Kubernetes is on version 1.29",
]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IndexedStore]:
    with open_indexed_store(tmp_path_factory.mktemp("short"), MODEL) as opened:
        opened.put(TEXTS)
        yield opened


@pytest.mark.parametrize(
    ("query", "keys"),
    [
        ("auth", {"0"}),
        ("auth provider", {"0"}),
        ("CI system", {"1"}),
        ("virtual private network", {"2"}),
        ("virtual cellar", set[str]()),
        ("max upload", {"3"}),
        ("where is Max now", set[str]()),
        ("tell us about dinner", set[str]()),
        ("US colleague", {"4"}),
        ("config", {"5"}),
        ("repository", {"5"}),
        ("k8s", {"6"}),
        ("dept", set[str]()),
    ],
)
def test_an_abbreviation_and_its_words_find_each_other(store: IndexedStore, query: str, keys: set[str]) -> None:
    assert store.lexical_keys(query) == keys
    assert store.lexical_keys(query, all_matches=True) == keys


@pytest.mark.parametrize(
    ("query", "reading"),
    [
        ("which auth provider", "which authentication provider"),
        ("is CI green", "is continuous integration green"),
        ("the Virtual Private Network", "the vpn"),
        ("cfg and repo", "cfg and repo"),
    ],
)
def test_a_question_is_read_with_the_words_of_the_memories(store: IndexedStore, query: str, reading: str) -> None:
    assert store.reader.read(CALLER, lambda tx: respelled_query(tx, query)) == reading


@pytest.mark.parametrize(("query", "key"), [("auth", "0"), ("k8s", "6"), ("config", "5")])
def test_the_words_of_an_abbreviation_are_strong(store: IndexedStore, query: str, key: str) -> None:
    def best(tx: Tx) -> tuple[str, float]:
        ranking = index.rerank(tx, query, index.find(tx, query), index.Weights()).fused
        (first,) = index.documents(tx, ranking.found.docs.tolist()[:1]).values()
        return first.key, float(ranking.strengths[0])

    name, strength = store.reader.read(CALLER, best)
    assert (name, strength > 0.5) == (key, True)
