"""A store of an earlier release gets the words and vectors of today, while the server runs or by a command."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

from kernel.core.config import MODEL, Config
from kernel.operations import consistency
from kernel.search import index
from kernel.search.query import grams
from kernel.server import app
from kernel.server.app import open_kernel
from kernel.store.transaction import Tx
from tests.support.operations_consistency import WRITER, adding

TEXTS = {
    "name": "Call getUserById, then parse_http2_frame.",
    "emoji": "The launch is on Friday 🚀",
    "thai": "สุนัขนอนบนโซฟา",
    "georgian": "ძაღლი დივანზე სძინავს.",
    "chinese": "狗在沙发上睡觉",
    "plain": "The dog sleeps on the sofa.",
    "instruction": "Always write the date first.",
}
SPELLED = {"georgian"}
OLD = "2020-01-02T03:04:05.678Z"
MIGRATIONS = ("0024_index_texts.sql", "0033_example_words.sql", "0034_label_words.sql", "0035_tag_words.sql")
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
    """The migration of the schema that marks outdated rows, as on a file that lacks it."""
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
    consistency.complete_index(running.store, app.DIALECTS, lambda: False)
    running.store.close()


def by_check(config: Config) -> None:
    assert consistency.check(config.file, app.base_context(MODEL), app.DIALECTS) == []


def by_reindex(config: Config) -> None:
    consistency.reindex(config.file, app.base_context(MODEL), app.DIALECTS)


@pytest.mark.slow
@pytest.mark.parametrize("renewed_by", [by_server, by_check, by_reindex])
@pytest.mark.parametrize("batch", [2, 256])
def test_an_old_store_is_renewed(
    config: Config, renewed_by: Callable[[Config], None], batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consistency, "_BATCH_ROWS", batch)
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
    monkeypatch.setattr(consistency, "_BATCH_ROWS", 2)
    mark_outdated(config)
    answers = iter([False, True])
    running = open_kernel(config)
    consistency.renew_index(running.store, app.DIALECTS, lambda: next(answers))
    running.store.close()

    assert [row[1] == index.indexed_words(TEXTS[row[0]]) for row in rows(config)].count(True) < len(TEXTS)

    by_server(config)

    assert rows(config) == [(key, index.indexed_words(TEXTS[key]), key not in SPELLED) for key in sorted(TEXTS)]


def test_a_new_store_has_nothing_to_renew(migrated: Path, tmp_path: Path) -> None:
    config = Config(data=shutil.copytree(migrated, tmp_path / "data"))
    running = open_kernel(config)

    assert (
        running.store.read_sync(lambda tx: tx.one("kernel.consistency.outdated_to", int, setting="index_outdated_to"))
        is None
    )
    running.store.close()


OF_BRAIN = {"title": "deploy guide", "summary": "How we deploy", "content": "Watch the zebra dashboard."}
GUIDELINE = {"name": "zoo", "content": "Name an animal.", "examples": {"good": ["okapi"]}}
SHORT = "deploy guide. How we deploy"


@pytest.fixture
def before(tmp_path: Path, migrated: Path, caller: Callable[..., Any]) -> Config:
    """A closed file of earlier releases, whose index holds title and summary of a note, no examples of a guideline, and
    no labels and no tags; other memories are as now.
    """
    config = Config(data=shutil.copytree(migrated, tmp_path / "data"), environment={"CODE_MEMORY_ENABLE_GRAPH": "1"})
    running = open_kernel(config)
    call = caller(running.dispatch)
    call("save_note", db="core", **OF_BRAIN)
    call("add_memory", path="car", content="The car is red.")
    observations = json.dumps([f"{'Ada rows. ' * 500}quagga"])
    call("upsert_entity", name="Ada", observations_json=observations)
    guideline = json.loads(call("memory_guideline", action="add", scopeType="global", **GUIDELINE).body)["guideline"]
    tagged = {"entryType": "guideline", "entryId": guideline["id"]}
    call("memory_tag", action="attach", **tagged, tagName="antelope")
    call("save_memory", db="core", content="Ada feeds it.", category="fact", metadata={"animal": "gnu"})
    call("remember", content="It is fed.", session_id="s", kind="chore")
    running.store.write_sync(shorten)
    running.store.close()
    db = apsw.Connection(str(config.file))
    for migration in MIGRATIONS:
        file = Path(app.statements.ROOT) / "schema" / migration
        db.execute(file.read_text(encoding="utf-8").partition("CREATE")[0])
    db.close()
    return config


def shorten(tx: Tx) -> None:
    for number, doc in index.documents(tx, [1, 3, 4, 5, 6]).items():
        origin = index.Origin((doc.dialect, doc.tool, doc.actor), OLD, OLD)
        short = SHORT if number == 1 else doc.text[:4000]
        words = OF_BRAIN["content"] if number == 1 else ""
        index.put(tx, doc.space, doc.key, short, scope=doc.scope, words=words, origin=origin)


@pytest.mark.parametrize("renewed_by", [by_server, by_check, by_reindex])
@pytest.mark.parametrize("batch", [1, 256])
def test_texts_of_which_the_index_held_a_part_are_whole_after_a_start_or_a_command(
    before: Config, renewed_by: Callable[[Config], None], batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consistency, "_BATCH_ROWS", batch)
    renewed_by(before)

    db = apsw.Connection(str(before.file))
    held = db.execute(
        "SELECT id, text, tool, actor, created_at, updated_at FROM doc WHERE id <> 2 ORDER BY id"
    ).fetchall()
    assert [(row[0], *row[2:]) for row in held] == [
        (1, "save_note", "tester", OLD, OLD),
        (3, "upsert_entity", "tester", OLD, OLD),
        (4, "memory_guideline", "tester", OLD, OLD),
        (5, "save_memory", "tester", OLD, OLD),
        (6, "remember", "tester", OLD, OLD),
    ]
    assert held[0][1] == f"{SHORT}\n\n{OF_BRAIN['content']}"
    assert str(held[1][1]).endswith("quagga")
    assert db.execute("SELECT grams FROM doc WHERE id > 3 ORDER BY id").fetchall() == [
        ('{"good":["okapi"]}\nantelope',),
        ('fact {"animal":"gnu"}',),
        ("chore",),
    ]
    assert db.execute("SELECT count(*) FROM setting WHERE name LIKE 'index_%'").fetchall() == [(0,)]
    assert db.execute("SELECT count(*) FROM doc_vector").fetchall() == [(6,)]
    db.close()
    assert consistency.check(before.file, app.base_context(MODEL), app.DIALECTS) == []


def test_a_row_that_contradicts_the_history_is_not_taken_into_the_index(before: Config) -> None:
    db = apsw.Connection(str(before.file))
    db.execute("UPDATE sessions_observation SET content = 'damaged'")
    db.execute("UPDATE history SET after = ? WHERE space = 'sessions:entity'", ("Ada\nentity\nAda rows.",))
    db.close()

    by_server(before)

    db = apsw.Connection(str(before.file))
    ((text,),) = db.execute("SELECT text FROM doc WHERE id = 3")
    assert str(text).startswith("Ada\nentity\nAda rows.")
    db.close()
