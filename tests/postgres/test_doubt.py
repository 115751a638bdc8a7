"""A commit that was not answered is in doubt: the answer states its outcome, or that nobody knows."""

import asyncio
import threading
from collections.abc import Callable, Iterator

import pytest

from kernel.calls.tools import Reply
from kernel.engines.postgres import connection
from kernel.server.app import Kernel
from tests.postgres import stores
from tests.postgres.calls import add, ask, chain_is_whole, paths
from tests.postgres.cluster import Cluster, running
from tests.postgres.proxy import Cut, Proxy
from tests.reliability.server_process import until

pytestmark = pytest.mark.postgres
_WAITS_FOR_STANDBY = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'"


@pytest.fixture
def proxy(address: str) -> Iterator[Proxy]:
    """The network in front of the database."""
    made = Proxy(int(address.rpartition(":")[2].partition("/")[0]))
    yield made
    made.away = False
    made.close()


def behind(proxy: Proxy, address: str) -> str:
    return address.replace(f":{proxy.target}/", f":{proxy.port}/")


class Calling:
    """A write in a thread of its own."""

    def __init__(self, kernel: Kernel, path: str) -> None:
        self.reply: Reply | None = None
        self._thread = threading.Thread(target=self._run, args=(kernel, path))
        self._thread.start()

    def _run(self, kernel: Kernel, path: str) -> None:
        self.reply = add(kernel, path)

    def answer(self) -> Reply:
        self._thread.join()
        assert self.reply is not None
        return self.reply


@pytest.mark.parametrize(("how", "kept"), [(Cut.BEFORE, []), (Cut.AFTER, ["doubted"])])
def test_an_answer_says_that_nobody_knows_where_the_database_stays_away(
    how: Cut,
    kept: list[str],
    address: str,
    proxy: Proxy,
    opened: Callable[[str], Kernel],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connection, "OUTCOME_SECONDS", 0.5)
    kernel = opened(behind(proxy, address))
    proxy.cut(how, away=True)

    doubted = add(kernel, "doubted")
    refused = add(kernel, "refused")

    assert (doubted.fault, connection.UNKNOWN in doubted.body.decode()) == ("storage", True)
    assert (refused.fault, "Cannot reach the database" in refused.body.decode()) == ("busy", True)
    proxy.away = False
    until(lambda: add(kernel, "later").fault is None, "an answer")  # the pool rests after its attempts
    assert paths(address) == [*kept, "later"]
    assert chain_is_whole(kernel)


@pytest.mark.parametrize(("how", "fault"), [(Cut.BEFORE, "busy"), (Cut.DURING, None), (Cut.AFTER, None)])
def test_a_doubt_is_settled_though_the_connection_is_cut_again(
    how: Cut, fault: str | None, address: str, proxy: Proxy, opened: Callable[[str], Kernel]
) -> None:
    kernel = opened(behind(proxy, address))
    for cut in (Cut.BEFORE, Cut.AFTER, how):  # the last one first
        proxy.cut(cut)

    assert add(kernel, "doubted").fault == fault
    assert paths(address) == ([] if fault else ["doubted"])


def test_no_doubt_is_settled_before_a_synchronous_standby_has_the_commit(
    cluster: Cluster, opened: Callable[[str], Kernel]
) -> None:
    address = stores.new_database("synchronous", cluster.address)
    kernel = opened(address)
    with running(cluster.address) as standby, stores.connect(address) as admin:

        def waiting() -> set[int]:
            return {pid for (pid,) in admin.execute(_WAITS_FOR_STANDBY).fetchall()}

        admin.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
        admin.execute("SELECT pg_reload_conf()")
        until(lambda: admin.execute("SELECT count(*) FROM pg_stat_replication").fetchone() == (1,), "the standby")
        standby.stop()
        call = Calling(kernel, "doubted")
        until(lambda: waiting() != set(), "a commit that waits for the standby")
        (first,) = waiting()
        admin.execute("SELECT pg_terminate_backend(%s)", (first,))

        until(lambda: waiting() - {first} != set(), "the one who asks, which waits too")
        assert call.reply is None
        standby.start()
        assert call.answer().fault is None
        assert paths(standby.address + "/synchronous") == ["doubted"]


def test_a_writer_that_stands_still_gives_its_lock_to_others(
    address: str, proxy: Proxy, opened: Callable[[str], Kernel], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "IDLE_MILLISECONDS", 500)
    other, still = opened(address), opened(behind(proxy, address))
    proxy.cut(Cut.HELD)
    call = Calling(still, "still")
    assert proxy.was_cut()

    assert add(other, "other").fault is None

    proxy.go_on.set()
    assert call.answer().fault == "busy"
    assert paths(address) == ["other"]
    assert chain_is_whole(other)


def test_who_waits_too_long_for_the_lock_is_told_to_try_again(
    address: str, proxy: Proxy, opened: Callable[[str], Kernel], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "BUSY_MILLISECONDS", 1500)  # more than a statement may take
    other, still = opened(address), opened(behind(proxy, address))
    proxy.cut(Cut.HELD)
    call = Calling(still, "still")
    assert proxy.was_cut()

    reply = add(other, "other")
    assert (reply.fault, "The store is busy" in reply.body.decode()) == ("busy", True)
    assert asyncio.run(ask(other, "recall", query="text")).fault is None

    proxy.go_on.set()
    assert call.answer().fault is None
    assert paths(address) == ["still"]
