"""The dashboard and the alert rules that ship name metrics that there are."""

import re
from pathlib import Path

from kernel.calls.dispatch import Call, ToolEntry
from kernel.observe.metrics import Backups, MetricsRegistry, Snapshot, render
from kernel.security.permissions import ANONYMOUS_CALLER
from kernel.store.engine import DatabaseUse
from kernel.store.store import Load
from tests.http.mcp_fixture import FIRST

FOLDER = Path(__file__).parents[3] / "docs/monitoring"
IDLE = Load(0, 0, (0,) * 15, 0, 0, 0)
USE = DatabaseUse(1, 16, 0, 5, 0.5, "behind", 2, 100)


def exposed() -> set[str]:
    """The names of all samples of a server that has everything."""
    registry = MetricsRegistry()
    registry.observe(Call(ToolEntry(FIRST, FIRST.tools[0]), b"{}", ANONYMOUS_CALLER))("ok", 0.1, None)
    snapshot = Snapshot.take(registry, {"main": IDLE}, 1, Backups(1.0, 0), USE)._replace(statuses={200: 1})
    text = render(snapshot, {}, {"main": 3}).decode()
    return set(re.findall(r"^([a-z_]+)(?:\{.*\})? \S+$", text, re.MULTILINE))


def test_dashboard_and_alerts_name_metrics_that_there_are() -> None:
    named = {
        name
        for file in FOLDER.iterdir()
        for name in re.findall(r"\b(?:quipu|process)_[a-z_]+\b", file.read_text(encoding="utf-8"))
    }
    assert len(named) > 20
    assert named - exposed() == set()


def test_every_metric_of_a_server_is_on_the_dashboard() -> None:
    text = (FOLDER / "dashboard.json").read_text(encoding="utf-8")
    off_it = {"quipu_info", "process_start_time_seconds"}
    families = {re.sub("_(bucket|sum|count)$", "", name) for name in exposed() if "backup" not in name} - off_it
    assert {family for family in families if family not in text} == set()
