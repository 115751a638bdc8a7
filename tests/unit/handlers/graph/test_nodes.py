"""Rows that do not fit into an answer are not read."""

from collections.abc import Callable

import pytest

from handlers.graph import nodes
from handlers.graph.nodes import OpenNodes, ReadGraph, SearchNodes
from kernel.calls.dispatch import catch_faults
from kernel.core.errors import Fault
from kernel.core.limits import CallLimits
from kernel.engines.opening import open_writer
from kernel.server.app import Kernel
from tests.conftest import Call


@pytest.mark.parametrize(
    ("tool", "asked"),
    [(nodes.read_graph, ReadGraph()), (nodes.search_nodes, SearchNodes("A")), (nodes.open_nodes, OpenNodes(["A"]))],
    ids=["read_graph", "search_nodes", "open_nodes"],
)
@pytest.mark.parametrize(("answer", "is_refused"), [(4000, True), (5000, False)])
def test_relations_beyond_an_answer_are_not_read(
    call: Call, kernel: Kernel, tool: Callable[..., object], asked: object, answer: int, is_refused: bool
) -> None:
    call("create_entities", entities=[{"name": "A", "entityType": "t", "observations": []}])
    ends = [{"from": "A", "to": str(number), "relationType": "knows"} for number in range(50)]
    call("create_relations", relations=ends)
    tight = kernel.store.context._replace(call_limits=CallLimits(answer=answer))

    with open_writer(kernel.config.file, tight) as db, db.writing() as tx:
        found = catch_faults(tool, tx, asked)

    assert isinstance(found, Fault) is is_refused
