"""Opens a store for a command: the file of SQLite, or the database of the context."""

from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path

from kernel.engines.sqlite import connection as sqlite
from kernel.store.context import StoreContext
from kernel.store.engine import CommandConnection


@contextmanager
def open_writer(file: Path, context: StoreContext) -> Generator[CommandConnection]:
    if context.connect is None:
        with sqlite.open_writer(file, context) as db:
            yield db
    else:
        with closing(context.connect(context)) as database:
            yield database


@contextmanager
def open_reader(file: Path, context: StoreContext) -> Generator[CommandConnection]:
    connect = context.connect
    with closing(connect(context) if connect else sqlite.Connection(file, context, readonly=True)) as db:
        yield db
