"""A new migrated database for the tests of statements."""

from collections.abc import Iterator
from typing import cast

import apsw
import pytest

from kernel.engines.migrations import migrate
from kernel.engines.sqlite.connection import Connection, add_text_functions
from kernel.engines.sqlite.vector_functions import add_vector_functions
from kernel.search.bm25 import match_tf
from kernel.store.context import StoreContext


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[apsw.Connection]:
    """A plain connection to the newest schema, with the functions of our own."""
    file = tmp_path_factory.mktemp("sql") / "quipu.db"
    ours = Connection(file, StoreContext({}), readonly=False)
    migrate(ours)
    ours.close()
    db = apsw.Connection(str(file))
    add_text_functions(db)
    add_vector_functions(db)
    db.register_fts5_function("match_tf", cast("apsw.FTS5Function", match_tf))
    db.config(apsw.SQLITE_DBCONFIG_DQS_DML, 0)
    yield db
    db.close()
