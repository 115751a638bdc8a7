"""Fill a store and its naive counterpart with the same memories, in this process and in large transactions.

An interrupted fill is continued, so that a large store can be filled in several runs.
"""

import shutil
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from kernel.calls.dialect import Dialect
from kernel.calls.tools import Tool
from kernel.core.config import Config
from kernel.embed.model import Embedding
from kernel.engines.sqlite.connection import Connection
from kernel.server import app
from kernel.store.context import CallContext, StoreContext
from kernel.store.transaction import Tx
from loadtests.baselines.naive_server import Naive, Note
from loadtests.lib import corpus

_GROUP = 5000
_CALL_CONTEXT = CallContext("paths", "add_memory", "bench")
_DOCS = "SELECT count(*) FROM doc"
_DONE = "complete"

Stop = Callable[[], bool]


def filled(folder: Path, size: int, *, stop: Stop = lambda: False) -> Path:
    """A data directory with `size` memories in both stores; an earlier run's store is reused or continued."""
    data = folder / f"filled-{size}"
    if (data / _DONE).exists():
        app.prepare_data(Config(data), app.base_context(None))
        return data
    context, ours = opened(data)
    assert context.embedder is not None
    naive = Naive(data / "naive.db", context.embedder, durable=False)
    ((held,),) = naive.db.execute("SELECT count(*) FROM note").fetchall()
    done, known = ours.values(_DOCS)[0][0], int(str(held))
    while min(done, known) < size and not stop():
        first = min(done, known)
        group = list(corpus.memories(min(_GROUP, size - first), first))
        texts = [f"{memory.path}\n{memory.text}" for memory in group]
        vectors = dict(zip(texts, context.embedder.embed(texts), strict=True))
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
    """A data directory with `size` memories spread over `scopes` sessions, without a naive store."""

    def add(ours: Connection, context: StoreContext, group: list[corpus.Memory], first: int) -> None:
        remember(
            ours, context, [(f"session {number % scopes}", memory.text) for number, memory in enumerate(group, first)]
        )

    return _filled_alone(folder / f"scoped-{size}-{scopes}", size, add, stop)


def alone(folder: Path, size: int, *, stop: Stop = lambda: False) -> Path:
    """A data directory with `size` memories of `paths`, without a naive store."""

    def add(ours: Connection, context: StoreContext, group: list[corpus.Memory], _first: int) -> None:
        assert context.embedder is not None
        texts = [f"{memory.path}\n{memory.text}" for memory in group]
        _add(ours, group, dict(zip(texts, context.embedder.embed(texts), strict=True)))

    return _filled_alone(folder / f"alone-{size}", size, add, stop)


def _filled_alone(
    data: Path, size: int, add: Callable[[Connection, StoreContext, list[corpus.Memory], int], None], stop: Stop
) -> Path:
    if (data / _DONE).exists():
        app.prepare_data(Config(data), app.base_context(None))
        return data
    context, ours = opened(data)
    done = ours.values(_DOCS)[0][0]
    while done < size and not stop():
        add(ours, context, list(corpus.memories(min(_GROUP, size - done), done)), done)
        ours.checkpoint()
        done = min(size, done + _GROUP)
    _closed(ours, data, complete=done >= size)
    return data


def remember(db: Connection, context: StoreContext, memories: Sequence[tuple[str, str]]) -> None:
    """Add memories of sessions, given as (session, text)."""
    assert context.embedder is not None
    _, tool = named("remember")
    texts = [text for _, text in memories]
    vectors = dict(zip(texts, context.embedder.embed(texts), strict=True))
    _together(db, "remember", vectors, [tool.request(content=text, session_id=session) for session, text in memories])


def dropped(db: Connection, paths: Iterable[str]) -> None:
    """Drop memories by their paths."""
    _, tool = named("drop_memory")
    numbers = iter(paths)
    while group := list(islice(numbers, _GROUP)):
        _together(db, "drop_memory", {}, [tool.request(path=path) for path in group])
        db.checkpoint()


def copied(data: Path, folder: Path) -> Path:
    """A copy of the store in a new data directory, for tests that write."""
    folder.mkdir(parents=True)
    shutil.copy(Config(data).file, Config(folder).file)
    return folder


def opened(data: Path) -> tuple[StoreContext, Connection]:
    """A write connection to the store in a data directory."""
    config = Config(data)
    context = app.context_of(config)
    app.prepare_data(config, context)
    db = Connection(config.file, context, readonly=False, durable=False)
    db.load_vectors()
    return context, db


def named(tool: str) -> tuple[Dialect, Tool]:
    """A tool by name, with its dialect."""
    return next((dialect, known) for dialect in app.DIALECTS for known in dialect.tools if known.name == tool)


def _closed(db: Connection, data: Path, *, complete: bool) -> None:
    db.checkpoint(truncate=True)
    db.close()
    if complete:
        (data / _DONE).touch()


def _add(db: Connection, group: list[corpus.Memory], vectors: dict[str, Embedding]) -> None:
    _, tool = named(_CALL_CONTEXT.tool)
    _together(
        db, _CALL_CONTEXT.tool, vectors, [tool.request(path=memory.path, content=memory.text) for memory in group]
    )


def _together(db: Connection, name: str, vectors: dict[str, Embedding], requests: Sequence[Any]) -> None:
    dialect, tool = named(name)

    def work(tx: Tx) -> None:
        tx.preload(vectors)
        for request in requests:
            tool.handler(tx, request)

    with db.writing(_CALL_CONTEXT._replace(dialect=dialect.name, tool=name)) as tx:
        work(tx)
