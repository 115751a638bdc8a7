"""Counters and histograms in the text format of Prometheus."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from kernel.calls.dispatch import Call, ToolEntry
from kernel.observe.metrics import Histogram, MetricsRegistry, Snapshot, render
from kernel.security.permissions import ANONYMOUS_CALLER
from kernel.server import logs
from kernel.store.store import Load
from tests.http.mcp_fixture import FIRST, SECOND

IDLE = Load(0, 0, (0,) * 15, 0, 0, 0)
GROUPS = (1, 2, 0, 4, *(0,) * 10, 3)


def entry(number: int) -> ToolEntry:
    return ToolEntry(FIRST, FIRST.tools[number])


def samples(text: bytes, name: str) -> dict[tuple[tuple[str, str], ...], float]:
    return {
        tuple(sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
        if sample.name == name
    }


def test_call_is_counted_in_the_bucket_of_its_duration() -> None:
    histogram = Histogram("")
    for seconds in (0.0001, 0.00011, 3.0, 11.0):
        histogram.observe("ok", seconds)
    assert histogram.buckets == [1, 1, *[0] * 12, 1, 0, 1]
    assert histogram.seconds == 14.00021
    assert histogram.outcomes == {"ok": 4}


def test_uncalled_tools_have_no_samples() -> None:
    registry = MetricsRegistry()
    registry.observe(Call(entry(0), b"{}", ANONYMOUS_CALLER))("ok", 0.1, None)
    registry.observe(Call(entry(1), b"{}", ANONYMOUS_CALLER))("busy", 0.1, None)
    found = samples(render(Snapshot.take(registry, {"main": IDLE}, 0), {}), "quipu_calls_total")
    assert found == {
        (("dialect", "first"), ("outcome", "ok"), ("tool", "echo")): 1,
        (("dialect", "first"), ("outcome", "busy"), ("tool", "keep")): 1,
    }


def test_commits_are_counted_by_group_size() -> None:
    load = IDLE._replace(groups=GROUPS, calls=12345678)
    text = render(Snapshot.take(MetricsRegistry(), {"main": load, "other": IDLE}, 2), {})
    main = ("tenant", "main")
    buckets = samples(text, "quipu_commit_calls_bucket")
    upto = [buckets[(("le", size), main)] for size in ("1", "2", "4", "8", "8192", "+Inf")]
    assert upto == [1, 3, 3, 7, 7, 10]
    assert samples(text, "quipu_commit_calls_sum")[(main,)] == 12345678
    assert samples(text, "quipu_commit_calls_count") == {(main,): 10, (("tenant", "other"),): 0}


@pytest.mark.slow
@given(st.dictionaries(st.from_regex(r"[a-z]{1,5}", fullmatch=True), st.text(st.characters(codec="utf-8"))))
def test_any_label_value_parses_back(info: dict[str, Any]) -> None:
    found = samples(render(Snapshot.take(MetricsRegistry(), {"main": IDLE}, 0), info), "quipu_info")
    assert found == {tuple(sorted(info.items())): 1}


def test_samples_name_the_dialect() -> None:
    registry = MetricsRegistry()
    registry.observe(Call(ToolEntry(SECOND, SECOND.tools[0]), b"{}", ANONYMOUS_CALLER))("ok", 0.1, None)
    found = samples(render(Snapshot.take(registry, {"main": IDLE}, 0), {}), "quipu_calls_total")
    assert found == {(("dialect", "second"), ("outcome", "ok"), ("tool", "whisper")): 1}


def test_snapshots_of_two_processes_add_up() -> None:
    one, other = MetricsRegistry(), MetricsRegistry()
    one.observe(Call(entry(0), b"{}", ANONYMOUS_CALLER))("ok", 0.1, None)
    other.observe(Call(entry(0), b"{}", ANONYMOUS_CALLER))("ok", 0.2, None)
    other.observe(Call(entry(0), b"{}", ANONYMOUS_CALLER))("busy", 0.4, None)
    other.observe(Call(entry(1), b"{}", ANONYMOUS_CALLER))("ok", 0.1, None)
    load = IDLE._replace(writes=1, groups=GROUPS, calls=7, file_bytes=4096, wal_bytes=10)
    left = Snapshot.take(one, {"main": load}, 2)
    right = Snapshot.take(other, {"main": load._replace(wal_bytes=20), "acme": IDLE}, 3)

    whole = left.plus(right)

    assert whole.calls["echo"].outcomes == {"ok": 2, "busy": 1}
    assert whole.calls["echo"].seconds == pytest.approx(0.7)
    assert sum(whole.calls["echo"].buckets) == 3
    assert whole.calls["keep"] == right.calls["keep"]
    doubled = tuple(2 * count for count in GROUPS)
    assert whole.loads == {"main": Load(2, 0, doubled, 14, 4096, 20), "acme": IDLE}
    assert whole[2:6] == (
        5,
        left.processor + right.processor,
        left.resident + right.resident,
        left.files + right.files,
    )


def test_what_a_process_leaves_behind_is_added_to_the_next_one() -> None:
    registry = MetricsRegistry()
    registry.observe(Call(entry(0), b"{}", ANONYMOUS_CALLER))("ok", 0.1, None)
    registry.opened, registry.closed = 3, 1
    load = IDLE._replace(writes=2, taken=(7, 9), waited=(0.5, 1.5))
    before = Snapshot.take(registry, {"main": load}, 5)._replace(statuses={200: 4, 401: 1})
    left = msgspec.json.decode(msgspec.json.encode(before), type=Snapshot).counters()
    text = render(Snapshot.take(MetricsRegistry(), {"main": IDLE}, 1)._replace(statuses={200: 2}).plus(left), {})

    calls = (("dialect", "first"), ("outcome", "ok"), ("tool", "echo"))
    assert samples(text, "quipu_calls_total") == {calls: 1}
    assert samples(text, "quipu_http_responses_total") == {(("status", "200"),): 6, (("status", "401"),): 1}
    queues = {"read": (("queue", "read"), ("tenant", "main")), "write": (("queue", "write"), ("tenant", "main"))}
    assert samples(text, "quipu_queue_wait_seconds_sum") == {queues["write"]: 0.5, queues["read"]: 1.5}
    assert samples(text, "quipu_queue_wait_seconds_count") == {queues["write"]: 7, queues["read"]: 9}
    assert samples(text, "quipu_queue_calls") == {queues["write"]: 0, queues["read"]: 0}
    singles = ("quipu_connections", "quipu_open_tenants", "quipu_tenants_opened_total", "quipu_tenants_closed_total")
    assert [samples(text, name)[()] for name in singles] == [1, 1, 3, 1]


def test_of_calls_only_slow_calls_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", "quipu.calls"):
        for seconds in (0.1, 0.5, 0.9):
            logs.observe(Call(entry(0), b"{}", ANONYMOUS_CALLER), slow_seconds=0.5)("ok", seconds, None)

    assert [record.__dict__["fields"]["milliseconds"] for record in caplog.records] == [500.0, 900.0]
