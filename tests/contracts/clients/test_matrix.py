"""The README lists the clients that `make clients` runs."""

from tests.contracts.clients.matrix import HERE, package
from tests.reliability.server_process import ROOT


def test_the_readme_shows_every_client_in_the_version_that_runs() -> None:
    rows = [line.split(" | ")[:2] for line in (ROOT / "docs" / "clients.md").read_text(encoding="utf-8").splitlines()]
    shown = sorted(
        (name[3:-1], version) for name, version in (row for row in rows if len(row) == 2) if name[:3] == "| `"
    )
    clients = sorted(package(tour.parent.name) for tour in HERE.glob("*/tour.*"))
    assert len(clients) == 11
    assert [client for client in clients if client not in shown] == []
