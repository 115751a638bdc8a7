"""Every difference from an original stands on a row of the deviations table, and every row named here still differs."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.originals import brain, graph, notes, paths, scopes, sessions
from tests.originals.originals import Compared, Original, Rule, compare

pytestmark = [pytest.mark.originals, pytest.mark.xdist_group("originals")]
ORIGINALS = (brain.ORIGINAL, graph.ORIGINAL, notes.ORIGINAL, paths.ORIGINAL, scopes.ORIGINAL, sessions.ORIGINAL)


@pytest.fixture(scope="module", params=ORIGINALS, ids=lambda one: one.dialect.name)
def original(request: pytest.FixtureRequest) -> Original:
    return request.param


@pytest.fixture(scope="module")
def compared(original: Original, tmp_path_factory: pytest.TempPathFactory) -> Sequence[Compared]:
    scratch: Path = tmp_path_factory.mktemp(original.dialect.name)
    return compare(original, scratch)


def test_every_tool_of_the_contract_is_called(original: Original) -> None:
    ours = {name for row in original.deviations if row.what == "tool" for name in row.tools.split(", ")}
    tools = {tool.name for tool in original.dialect.tools} - ours
    assert tools - {call.tool for call in original.calls} == set()


def test_every_difference_stands_on_a_row(compared: Sequence[Compared]) -> None:
    assert [(call.name, *difference) for call in compared for difference, rules in call.found if not rules] == []


def test_every_rule_still_covers_a_difference(original: Original, compared: Sequence[Compared]) -> None:
    used = {rule for call in compared for _, rules in call.found for rule in rules}
    assert [rule for rule in original.rules if rule not in used and not rule.sometimes] == []


def test_every_rule_names_one_row(original: Original) -> None:
    def rows(rule: Rule) -> bool:
        return bool(original.row(rule))

    assert all(map(rows, original.rules))
