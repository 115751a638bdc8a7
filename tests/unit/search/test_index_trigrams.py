"""Documents that hold texts as substrings."""

import pytest

from kernel.engines.sqlite.connection import Connection
from kernel.search import index
from kernel.server.app import Kernel
from kernel.store.context import CallContext

SPACE = "scopes:tools"


@pytest.mark.parametrize(
    ("parts", "wanted"),
    [
        (["otte"], {"a", "b"}),
        (["OTTE", "or"], {"a"}),
        (["or"], set[str]()),
        ([], set[str]()),
        (['"', "otte"], {"b"}),
        (["otte\0"], set[str]()),
        (["\0\0\0"], set[str]()),
        (["abcdbc"], set[str]()),
        (["straße"], {"c"}),
        (["knotted cords " * 100], set[str]()),
    ],
)
def test_parts_are_found_in_any_case_in_their_partitions(kernel: Kernel, parts: list[str], wanted: set[str]) -> None:
    db = Connection(kernel.config.file, kernel.store.context, readonly=False)
    tx = db.begin(CallContext("scopes", "memory_tool", "tester"))
    for key, text in {"a": "Knotted cords", "b": 'a knotted "rope"', "c": "Straße abc bcd cdb dbc"}.items():
        index.put(tx, SPACE, key, text, scope="global")
    index.put(tx, SPACE, "elsewhere", "Knotted cords", scope="project:p")
    index.put(tx, "scopes:knowledge", "other kind", "Knotted cords", scope="global")
    index.put(tx, "paths:memory", "other dialect", "Knotted cords")

    assert set(index.containing(tx, parts, [(SPACE, "global"), ("paths:memory", None)])) == wanted
    index.drop(tx, SPACE, "a")
    assert set(index.containing(tx, parts, [(SPACE, "global")])) == wanted - {"a"}
    db.rollback()
    db.close()
