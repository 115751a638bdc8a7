"""A store of an earlier release gets the words and vectors of today, while the server runs or by a command."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

from kernel import app
from kernel.app import open_kernel
from kernel.config import MODEL, Config
from kernel.maintenance import consistency, index_format
from kernel.search import index
from kernel.search.query import grams
from kernel.store.transaction import Tx
from tests.unit.maintenance.test_consistency import WRITER, adding

TEXTS = {
    "name": "Call getUserById, then parse_http2_frame.",
    "emoji": "The launch is on Friday 🚀",
    "thai": "สุนัขนอนบนโซฟา",
    "russian": "Рейс в Токио отменили.",
    "chinese": "狗在沙发上睡觉",
    "plain": "The dog sleeps on the sofa.",
}
SPELLED = {"thai", "russian", "chinese"}
INDEX = "SELECT key, grams, scale > 0 FROM doc JOIN doc_vector AS v ON v.doc = doc.id ORDER BY key"


@pytest.fixture
def config(tmp_path: Path, migrated: Path) -> Config:
    """A closed file as an earlier release left it: words beside Chinese only, and a vector for every text."""
    config = Config(data=shutil.copytree(migrated, tmp_path / "data"))
    running = open_kernel(config)
    for path, content in TEXTS.items():
        running.store.write_sync(adding(path, content), WRITER)
    running.store.write_sync(age)
    running.store.close()
    return config


def age(tx: Tx) -> None:
    tx.flush_deferred()
    ids = [document.doc for document in index.documents(tx, [*range(1, len(TEXTS) + 1)]).values()]
    tx.run("kernel.index.fts_delete", ids=ids)
    tx.run("kernel.index.set_words", rows=[(one, grams(text)) for one, text in zip(ids, TEXTS.values(), strict=True)])
    tx.run("kernel.index.fts_insert", ids=ids)


def rows(config: Config) -> list[tuple[Any, ...]]:
    db = apsw.Connection(str(config.file))
    try:
        return db.execute(INDEX).fetchall()
    finally:
        db.close()


def mark_outdated(config: Config) -> None:
    """The migration of the schema that knows what is outdated, as on a file that lacks it."""
    db = apsw.Connection(str(config.file))
    db.execute((Path(app.statements.ROOT) / "schema" / "0021_index_words.sql").read_text(encoding="utf-8"))
    db.execute("UPDATE doc_vector SET scale = 1.0")
    db.close()


def found(config: Config, query: str) -> list[str]:
    running = open_kernel(config)
    try:
        return running.store.read_sync(lambda tx: [hit.id for hit in index.search(tx, query, semantic=False)])
    finally:
        running.store.close()


def by_server(config: Config) -> None:
    running = open_kernel(config)
    consistency.complete_index(running.store, lambda: False)
    running.store.close()


def by_check(config: Config) -> None:
    assert consistency.check(config.file, app.base_context(MODEL), app.DIALECTS) == []


def by_reindex(config: Config) -> None:
    consistency.reindex(config.file, app.base_context(MODEL))


@pytest.mark.parametrize("renewed_by", [by_server, by_check, by_reindex])
@pytest.mark.parametrize("batch", [2, 256])
def test_an_old_store_is_renewed(
    config: Config, renewed_by: Callable[[Config], None], batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_format, "_BATCH_ROWS", batch)
    mark_outdated(config)
    assert [found(config, query) for query in ("user", "🚀", "นอน")] == [[], [], []]

    renewed_by(config)

    assert rows(config) == [(key, index.indexed_words(TEXTS[key]), key not in SPELLED) for key in sorted(TEXTS)]
    assert [found(config, query) for query in ("user", "🚀", "นอน")] == [["name"], ["emoji"], ["thai"]]
    assert consistency.check(config.file, app.base_context(MODEL), app.DIALECTS) == []
    assert apsw.Connection(str(config.file)).execute(
        "SELECT count(*) FROM setting WHERE name = 'index_outdated_to'"
    ).fetchall() == [(0,)]


def test_a_renewal_that_is_stopped_goes_on_later(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_format, "_BATCH_ROWS", 2)
    mark_outdated(config)
    answers = iter([False, True])
    running = open_kernel(config)
    index_format.renew_index(running.store, lambda: next(answers))
    running.store.close()

    assert [row[1] == index.indexed_words(TEXTS[row[0]]) for row in rows(config)].count(True) < len(TEXTS)

    by_server(config)

    assert rows(config) == [(key, index.indexed_words(TEXTS[key]), key not in SPELLED) for key in sorted(TEXTS)]


def test_a_new_store_has_nothing_to_renew(migrated: Path, tmp_path: Path) -> None:
    config = Config(data=shutil.copytree(migrated, tmp_path / "data"))
    running = open_kernel(config)

    assert running.store.read_sync(lambda tx: tx.one("kernel.index_format.outdated_to", int)) is None
    running.store.close()
