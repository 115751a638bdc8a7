"""Callers take turns in a queue, queues take turns in a pool, and nothing waits for longer than it may."""

import threading
import time
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

import pytest

from kernel.core.errors import Fault
from kernel.store.context import CallContext
from kernel.store.queue import CallQueue, Job, ThreadPool, discard

TIMEOUT_SECONDS = 20


def job(actor: str, answered: list[Job] | None = None, work: Callable[[], object] = int) -> Job:
    deliver = (answered if answered is not None else []).append
    return Job(lambda _tx: work(), CallContext("things", "add", actor), deliver)


def actors(jobs: list[Job]) -> str:
    return "".join(one.context.actor[0] for one in jobs)


def run(jobs: list[Job]) -> None:
    for one in jobs:
        one.work(None)  # type: ignore[arg-type]


class Held:
    """A queue over a pool whose only thread waits for `release`; then `groups` has the jobs that it took."""

    def __init__(self, **options: Any) -> None:
        self.groups: list[list[Job]] = []
        self.pool = ThreadPool("held", 1)
        self.begun, self.ended = threading.Event(), threading.Event()
        self.queue = CallQueue(self.pool, self.groups.append, **options)
        self._holding = CallQueue(self.pool, run)
        self._holding.put(job("holder", work=self._wait))
        assert self.begun.wait(TIMEOUT_SECONDS)

    def _wait(self) -> None:
        self.begun.set()
        assert self.ended.wait(TIMEOUT_SECONDS)

    def put(self, actors: str) -> list[Job]:
        jobs = [job(actor) for actor in actors]
        for one in jobs:
            self.queue.put(one)
        return jobs

    def release(self) -> list[str]:
        """Lets the thread go on until the queues are empty; the callers of each group."""
        self.ended.set()
        self._holding.stop()
        self.queue.stop()
        return [actors(group) for group in self.groups]


def test_callers_take_turns_and_each_keeps_its_order() -> None:
    held = Held()
    jobs = held.put("aaaabbc")
    assert held.release() == list("abcabaa")
    assert [one for group in held.groups for one in group if one.context.actor == "a"] == jobs[:4]
    assert (held.queue.waiting, held.queue.taken) == (0, 7)


def test_a_group_has_an_equal_part_of_each_caller_and_keeps_neighbours() -> None:
    held = Held(group=6)
    held.put("aaaaaaaabbbc")
    assert held.release() == ["aabbca", "baaaaa"]


def test_callers_that_were_answered_together_are_in_the_next_group_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernel.store.queue._GATHER_SECONDS", 0.5)  # which a busy machine keeps too
    groups, answered = list[int](), SimpleQueue[Job]()

    def answer(jobs: list[Job]) -> None:
        groups.append(len(jobs))
        for job in jobs:
            answered.put(job)
        queue.gather(len(jobs))

    pool = ThreadPool("test", 1)
    queue = CallQueue(pool, answer, group=8)
    with pool.lock:  # the first group has all callers
        for name in "abcdefgh":
            queue._append(job(name))
    for _ in range(20):
        for asking in [answered.get(timeout=TIMEOUT_SECONDS) for _ in range(8)]:
            queue.put(asking)
            time.sleep(0.0001)  # the writer could begin
    queue.stop()
    assert groups == [8] * 21


def test_callers_that_do_not_come_again_keep_no_other_waiting() -> None:
    groups, answered = list[int](), SimpleQueue[Job]()

    def answer(jobs: list[Job]) -> None:
        groups.append(len(jobs))
        for job in jobs:
            answered.put(job)
        queue.gather(1000)

    queue = CallQueue(ThreadPool("test", 1), answer, group=2000)
    for name in "abc":
        queue.put(job(name))
        assert answered.get(timeout=TIMEOUT_SECONDS).context.actor == name
    queue.stop()
    assert groups == [1, 1, 1]


def test_names_that_clients_give_themselves_are_no_callers_of_their_own() -> None:
    held = Held()
    for actor in ("a/one", "a/two", "a/three", "b"):
        held.queue.put(job(actor))
    assert held.release() == list("abaa")


def test_job_that_has_waited_too_long_is_refused_and_later_ones_run() -> None:
    held, answered = Held(max_wait=0.2), list[Job]()
    late = [job("a", answered), job("b", answered)]
    for one in late:
        held.queue.put(one)
    time.sleep(0.3)
    assert held.queue.oldest > 0.2
    held.put("a")
    assert held.release() == ["a"]
    assert answered == late
    assert {(one.answer.code, one.answer.message) for one in late} == {("busy", "The server is busy, try again.")}


def test_jobs_of_callers_that_have_gone_are_dropped() -> None:
    held = Held(group=2)
    for one in held.put("aabb")[::2]:
        one.cancel()
    assert held.release() == ["ab"]


def test_work_that_nobody_waits_for_is_done_late_and_refused_while_jobs_are_late() -> None:
    held = Held(max_wait=0.1)
    first = Job(lambda _tx: None, CallContext(), discard)
    held.queue.put(first)
    time.sleep(0.2)
    with pytest.raises(Fault, match="busy"):
        held.queue.put(Job(lambda _tx: None, CallContext(), discard))
    held.release()
    assert held.groups == [[first]]


def test_behind_a_crowd_of_its_caller_in_the_dearer_queue_a_job_keeps_the_order_of_arrival(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("kernel.store.queue._CROWD", 3)
    monkeypatch.setattr("kernel.store.queue._LEAD_SECONDS", 0.0)
    dear, begun = Held(), SimpleQueue[list[Job]]()
    cheap = CallQueue(ThreadPool("cheap", 1), begun.put, dearer=dear.queue)
    dear.put("aaaabbb")
    for name in "abc":
        cheap.put(job(name))
    assert actors(begun.get(timeout=TIMEOUT_SECONDS)) + actors(begun.get(timeout=TIMEOUT_SECONDS)) == "bc"
    assert cheap.waiting == 1
    dear.release()
    assert actors(begun.get(timeout=TIMEOUT_SECONDS)) == "a"
    cheap.stop()


def test_queues_of_a_pool_take_turns() -> None:
    held = Held()
    other = CallQueue(held.pool, held.groups.append)
    held.put("aaa")
    for _ in range(2):
        other.put(job("b"))
    held.ended.set()
    other.stop()
    assert held.release() == list("ababa")


def test_one_caller_leaves_a_thread_to_the_others() -> None:
    pool, ended = ThreadPool("test", 8), threading.Event()
    queue = CallQueue(pool, run, at_once=3, each=lambda: 2)
    begun, other = threading.Semaphore(0), threading.Event()

    def hold() -> None:
        begun.release()
        assert ended.wait(TIMEOUT_SECONDS)

    for _ in range(4):
        queue.put(job("a", work=hold))
    assert [begun.acquire(timeout=TIMEOUT_SECONDS) for _ in range(2)] == [True, True]
    queue.put(job("b", work=other.set))
    assert other.wait(TIMEOUT_SECONDS)
    assert not begun.acquire(timeout=0.05)
    ended.set()
    queue.stop()


def test_threads_begin_when_they_are_needed_and_end_with_the_last_queue() -> None:
    before = threading.active_count()
    pool = ThreadPool("test", 4)
    queues = [CallQueue(pool, run) for _ in range(50)]
    assert threading.active_count() == before
    for queue in queues:
        queue.put(job("a", work=lambda: time.sleep(0.001)))
    for queue in queues:
        assert threading.active_count() <= before + 4
        queue.stop()
    assert threading.active_count() == before


def test_one_call_after_another_is_served_by_one_thread_until_two_come_at_once() -> None:
    names, both = list[str](), threading.Barrier(2, timeout=TIMEOUT_SECONDS)

    def note(jobs: list[Job]) -> None:
        names.append(threading.current_thread().name)
        run(jobs)
        jobs[0].deliver(jobs[0])

    queue = CallQueue(ThreadPool("test", 2), note, at_once=2)
    for _ in range(20):
        done = threading.Event()
        queue.put(Job(lambda _tx: None, CallContext(), lambda _job, done=done: done.set()))
        assert done.wait(10)
        time.sleep(0.01)  # the thread is idle again before the next call
    alone = list(names)
    for _ in range(2):
        queue.put(Job(lambda _tx: both.wait(), CallContext(), lambda _job: None))
    queue.stop()
    assert set(alone) == {"test-0"}
    assert sorted(names[20:]) == ["test-0", "test-1"]


def waiting_threads(head_start: float, count: int) -> CallQueue:
    """A queue over so many threads, of which none begins within the head start of another."""
    return CallQueue(ThreadPool("test", count, head_start), run, at_once=count)


def put(queue: CallQueue, work: Callable[[], object]) -> None:
    queue.put(Job(lambda _tx: work(), CallContext(), lambda _job: None))


@pytest.mark.slow
def test_no_other_job_begins_within_the_head_start_of_one_that_runs() -> None:
    queue, running, most = waiting_threads(1.0, 3), [0], list[int]()

    def count() -> None:
        running[0] += 1
        most.append(running[0])
        time.sleep(0.01)
        running[0] -= 1

    for _ in range(8):
        put(queue, count)
    queue.stop()
    assert most == [1] * 8


def test_thread_that_has_done_its_job_begins_the_next_one_at_once() -> None:
    queue, last = waiting_threads(20.0, 1), threading.Event()
    put(queue, lambda: None)
    put(queue, last.set)
    assert last.wait(10)
    queue.stop()


@pytest.mark.slow
def test_two_jobs_behind_one_that_runs_for_long_begin_a_head_start_apart() -> None:
    queue, order, last = waiting_threads(0.5, 3), list[str](), threading.Event()

    def second() -> None:
        time.sleep(0.05)
        order.append("the second one has run for a while")
        last.wait(10)

    def third() -> None:
        order.append("the third one begins")
        last.set()

    for work in (lambda: last.wait(10), second, third):
        put(queue, work)
    assert last.wait(10)  # before the queue stops, which wakes every thread
    queue.stop()
    assert order == ["the second one has run for a while", "the third one begins"]


def test_job_that_comes_long_after_another_one_has_begun_starts_beside_it() -> None:
    queue, begun, last = waiting_threads(0.01, 2), threading.Event(), threading.Event()

    def wait_for_the_last() -> None:
        begun.set()
        last.wait(10)

    put(queue, wait_for_the_last)
    assert begun.wait(10)
    time.sleep(0.02)  # its head start is over
    put(queue, last.set)
    assert last.wait(5)
    queue.stop()


def test_bytes_that_wait_are_bounded_but_for_a_caller_without_any() -> None:
    held = Held(group=8)
    held.pool.most_bytes = 10

    def put(actor: str, size: int) -> Job:
        sized = job(actor)
        sized.size = size
        held.queue.put(sized)
        return sized

    first = put("a", 8)
    with pytest.raises(Fault, match="The server is busy") as refused:
        put("a", 3)
    assert refused.value.code == "busy"
    put("a", 2)
    put("b", 8)  # of whom nothing waits
    with pytest.raises(Fault, match="The server is busy"):
        put("b", 1)
    put("b", 0)  # as work of the server
    first.cancel()
    assert held.pool.bytes == 18

    assert sorted(held.release()[0]) == ["a", "b", "b"]
    assert held.pool.bytes == 0


def test_short_jobs_share_no_group_with_a_long_job_of_another_caller() -> None:
    held = Held(group=8)
    for actor, size in (("a", 100_000), ("a", 100_000), ("b", 9), ("a", 9), ("c", 9), ("a", 100_000)):
        sized = job(actor)
        sized.size = size
        held.queue.put(sized)

    assert held.release() == ["a", "bc", "a", "a", "a"]


def burn() -> None:
    """Takes four milliseconds of processor time."""
    until = time.thread_time() + 0.0041
    while time.thread_time() < until:
        pass


def served(first: str, later: str, when: int = 1) -> str:
    """The callers in the order in which they are served; those of `later` come while the job of this number runs.

    A job of an upper-case caller is long, any other short.
    """
    order, pool, begun, go_on = list[str](), ThreadPool("test", 1), threading.Event(), threading.Event()
    queue = CallQueue(pool, run)

    def work(actor: str) -> None:
        order.append(actor)
        if len(order) >= when:
            begun.set()
            assert go_on.wait(TIMEOUT_SECONDS)
        if actor.isupper():
            burn()

    for actor in first:
        queue.put(job(actor, work=lambda actor=actor: work(actor)))
    assert begun.wait(TIMEOUT_SECONDS)
    for actor in later:
        queue.put(job(actor, work=lambda actor=actor: work(actor)))
    go_on.set()
    queue.stop()
    return "".join(order)


def test_a_caller_who_comes_waits_for_no_job_but_the_one_that_runs() -> None:
    assert served("AAA", "bcd") == "AbcdAA"


def test_short_jobs_go_before_long_ones_until_both_callers_have_had_as_much() -> None:
    order = served("AAA", "b" * 12)
    assert order[:4] == "Abbb"
    assert "b" * 7 not in order.rpartition("A")[0]  # nor do the long ones wait for all of them


def test_a_caller_who_was_idle_has_no_time_saved_up() -> None:
    order = served("A" * 6, "b" * 12, when=4)
    assert order[:5] == "AAAAb"
    assert "b" * 7 not in order.rpartition("A")[0]


def test_a_caller_whose_time_is_forgotten_while_it_is_served_ends_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernel.store.queue._MOST_IDLE", -1)
    order, pool, both = list[str](), ThreadPool("test", 2), threading.Barrier(2)
    queue = CallQueue(pool, run, at_once=2)

    def work(actor: str) -> None:
        order.append(actor)
        if actor in "ab":
            both.wait(TIMEOUT_SECONDS)

    for actor in "abc":
        queue.put(job(actor, work=lambda actor=actor: work(actor)))
    queue.stop()
    assert sorted(order) == ["a", "b", "c"]
