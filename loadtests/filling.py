"""Fills a store and its naive counterpart with the same memories, quickly: in this process, in large groups."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from kernel import app
from kernel.config import Config
from kernel.embed import Embedding
from kernel.store import Connection
from kernel.tools import Dialect, Tool
from kernel.world import Origin, World
from loadtests import corpus
from loadtests.naive import Naive, Note

_GROUP = 5000
_WHO = Origin("paths", "add_memory", "bench")


def filled(folder: Path, size: int) -> Path:
    """A data directory with `size` memories in both stores; what a run before left complete is used again."""
    data = folder / f"filled-{size}"
    done = data / "complete"
    if not done.exists():
        config = Config(data)
        world = app.world(config.model)
        app.prepare(config, world)
        _fill(config, world, size)
        done.touch()
    return data


def _fill(config: Config, world: World, size: int) -> None:
    assert world.embedder is not None
    ours = Connection(config.file, world, readonly=False, durable=False)
    ours.load_vectors()
    naive = Naive(config.data / "naive.db", world.embedder, durable=False)
    for group in _groups(size):
        texts = [f"{memory.path}\n{memory.text}" for memory in group]
        vectors = dict(zip(texts, world.embedder.embed(texts), strict=True))
        _add(ours, group, vectors)
        with naive.db:
            for memory, text in zip(group, texts, strict=True):
                naive.insert(Note(memory.path, memory.text), vectors[text])
    ours.checkpoint(truncate=True)
    ours.close()
    naive.db.close()


def _groups(size: int) -> Iterator[list[corpus.Memory]]:
    numbers = corpus.memories(size)
    while group := list(islice(numbers, _GROUP)):
        yield group


def _add(db: Connection, group: list[corpus.Memory], vectors: dict[str, Embedding]) -> None:
    _, tool = named(_WHO.tool)
    with db.writing(_WHO) as tx:
        tx.preload(vectors)
        for memory in group:
            tool.handler(tx, tool.request(path=memory.path, content=memory.text))


def named(tool: str) -> tuple[Dialect, Tool]:
    """A tool by its name, with its dialect."""
    return next((dialect, known) for dialect in app.DIALECTS for known in dialect.tools if known.name == tool)
