"""Fills a store and its naive counterpart with the same memories, quickly: in this process, in large groups.

What was begun is gone on with, so that a large store can be filled in several runs.
"""

import shutil
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from kernel import app
from kernel.config import Config
from kernel.embed.model import Embedding
from kernel.store.context import CallContext, StoreContext
from kernel.store.sqlite.connection import Connection
from kernel.store.transaction import Tx
from kernel.tools import Dialect, Tool
from loadtests.baselines.naive_server import Naive, Note
from loadtests.lib import corpus

_GROUP = 5000
_WHO = CallContext("paths", "add_memory", "bench")
_DOCS = "SELECT count(*) FROM doc"
_DONE = "complete"

Stop = Callable[[], bool]


def filled(folder: Path, size: int, *, stop: Stop = lambda: False) -> Path:
    """A data directory with `size` memories in both stores; what a run before left is used, or gone on with."""
    data = folder / f"filled-{size}"
    if (data / _DONE).exists():
        app.prepare_data(Config(data), app.base_context(None))
        return data
    world, ours = opened(data)
    assert world.embedder is not None
    naive = Naive(data / "naive.db", world.embedder, durable=False)
    ((held,),) = naive.db.execute("SELECT count(*) FROM note").fetchall()
    done, known = ours.values(_DOCS)[0][0], int(str(held))
    while min(done, known) < size and not stop():
        first = min(done, known)
        group = list(corpus.memories(min(_GROUP, size - first), first))
        texts = [f"{memory.path}\n{memory.text}" for memory in group]
        vectors = dict(zip(texts, world.embedder.embed(texts), strict=True))
        if done == first:
            _add(ours, group, vectors)
            done += len(group)
        ours.checkpoint()
        if known == first:
            with naive.db:
                for memory, text in zip(group, texts, strict=True):
                    naive.insert(Note(memory.path, memory.text), vectors[text])
            known += len(group)
    naive.db.close()
    _closed(ours, data, complete=min(done, known) >= size)
    return data


def scoped(folder: Path, size: int, scopes: int, *, stop: Stop = lambda: False) -> Path:
    """A data directory with `size` memories of sessions, in turn in each of so many; without a naive one."""
    data = folder / f"scoped-{size}-{scopes}"
    if (data / _DONE).exists():
        app.prepare_data(Config(data), app.base_context(None))
        return data
    world, ours = opened(data)
    done = ours.values(_DOCS)[0][0]
    while done < size and not stop():
        some = corpus.memories(min(_GROUP, size - done), done)
        remember(ours, world, [(f"session {number % scopes}", memory.text) for number, memory in enumerate(some, done)])
        ours.checkpoint()
        done = min(size, done + _GROUP)
    _closed(ours, data, complete=done >= size)
    return data


def remember(db: Connection, world: StoreContext, memories: Sequence[tuple[str, str]]) -> None:
    """Adds memories of sessions, given as (session, text)."""
    assert world.embedder is not None
    _, tool = named("remember")
    texts = [text for _, text in memories]
    vectors = dict(zip(texts, world.embedder.embed(texts), strict=True))
    _together(db, "remember", vectors, [tool.request(content=text, session_id=session) for session, text in memories])


def dropped(db: Connection, paths: Iterable[str]) -> None:
    """Drops memories by their paths."""
    _, tool = named("drop_memory")
    numbers = iter(paths)
    while group := list(islice(numbers, _GROUP)):
        _together(db, "drop_memory", {}, [tool.request(path=path) for path in group])
        db.checkpoint()


def copied(data: Path, folder: Path) -> Path:
    """A copy of our store in a new data directory, for what writes."""
    folder.mkdir(parents=True)
    shutil.copy(Config(data).file, Config(folder).file)
    return folder


def opened(data: Path) -> tuple[StoreContext, Connection]:
    """A writer of the store in a data directory."""
    config = Config(data)
    world = app.context_of(config)
    app.prepare_data(config, world)
    db = Connection(config.file, world, readonly=False, durable=False)
    db.load_vectors()
    return world, db


def named(tool: str) -> tuple[Dialect, Tool]:
    """A tool by its name, with its dialect."""
    return next((dialect, known) for dialect in app.DIALECTS for known in dialect.tools if known.name == tool)


def _closed(db: Connection, data: Path, *, complete: bool) -> None:
    db.checkpoint(truncate=True)
    db.close()
    if complete:
        (data / _DONE).touch()


def _add(db: Connection, group: list[corpus.Memory], vectors: dict[str, Embedding]) -> None:
    _, tool = named(_WHO.tool)
    _together(db, _WHO.tool, vectors, [tool.request(path=memory.path, content=memory.text) for memory in group])


def _together(db: Connection, name: str, vectors: dict[str, Embedding], requests: Sequence[Any]) -> None:
    dialect, tool = named(name)

    def work(tx: Tx) -> None:
        tx.preload(vectors)
        for request in requests:
            tool.handler(tx, request)

    with db.writing(_WHO._replace(dialect=dialect.name, tool=name)) as tx:
        work(tx)
