"""Callers take turns in a queue, and none of them fills it or makes the others wait."""

import threading
import time
from collections.abc import Callable

import pytest

from kernel.core.errors import Fault
from kernel.store.context import CallContext
from kernel.store.queue import BoundedQueue, Job


def job(actor: str, answered: list[Job] | None = None) -> Job:
    return Job(lambda _tx: None, CallContext("things", "add", actor), (answered if answered is not None else []).append)


def actors(jobs: list[Job] | None) -> str:
    return "".join(one.context.actor[0] for one in jobs or [])


def test_callers_take_turns_and_each_keeps_its_order() -> None:
    queue = BoundedQueue(20)
    jobs = [job(actor) for actor in "aaaabbc"]
    for one in jobs:
        queue.put(one)
    taken = [queue.take(1) for _ in jobs]
    assert [actors(one) for one in taken] == list("abcabaa")
    of_a = [one[0] for one in taken if one and one[0].context.actor == "a"]
    assert (of_a, queue.waiting) == (jobs[:4], 0)


def test_a_group_has_an_equal_part_of_each_caller_and_keeps_neighbours() -> None:
    queue = BoundedQueue(20)
    for actor in "aaaaaaaabbbc":
        queue.put(job(actor))
    assert [actors(queue.take(6)), actors(queue.take(6))] == ["aabbca", "baaaaa"]


def test_names_that_clients_give_themselves_are_no_callers_of_their_own() -> None:
    queue = BoundedQueue(20)
    for actor in ("a/one", "a/two", "a/three", "b"):
        queue.put(job(actor))
    assert [actors(queue.take(1)) for _ in range(4)] == list("abaa")


def test_full_queue_makes_room_for_a_caller_with_fewer_jobs() -> None:
    queue, answered = BoundedQueue(4), list[Job]()
    jobs = [job("a", answered) for _ in range(4)]
    for one in jobs:
        queue.put(one)
    with pytest.raises(Fault):
        queue.put(job("a"))
    queue.put(job("b"))
    queue.put(job("b"))
    with pytest.raises(Fault):
        queue.put(job("b"))
    assert answered == jobs[:1:-1]
    assert {one.answer.code for one in answered} == {"busy"}
    assert [actors(queue.take(4)), queue.waiting] == ["aabb", 0]


def test_caller_that_has_fallen_behind_is_refused_and_others_are_not() -> None:
    queue = BoundedQueue(20, max_wait=0.0)
    queue.put(job("a"))
    queue.put(job("a"))
    queue.take(1)
    with pytest.raises(Fault):
        queue.put(job("a"))
    queue.put(job("b"))
    assert [actors(queue.take(1)), actors(queue.take(1))] == ["a", "b"]
    queue.put(job("a"))


def test_one_caller_after_another_is_served_by_one_thread_until_two_come_at_once() -> None:
    queue, names = BoundedQueue(20), list[str]()
    both = threading.Barrier(2, timeout=10)

    def drain() -> None:
        while (taken := queue.take(1)) is not None:
            names.append(threading.current_thread().name)
            taken[0].work(None)  # type: ignore[arg-type]
            taken[0].deliver(taken[0])

    for number in range(2):
        queue.start(drain, str(number))
    for _ in range(20):
        done = threading.Event()
        queue.put(Job(lambda _tx: None, CallContext(), lambda _job, done=done: done.set()))
        assert done.wait(10)
        time.sleep(0.01)  # the thread is idle again before the next call
    alone = list(names)
    for _ in range(2):
        queue.put(Job(lambda _tx: both.wait(), CallContext(), lambda _job: None))
    queue.stop()
    assert max(map(alone.count, alone)) >= 15
    assert sorted(names[20:]) == ["0", "1"]


def serve(queue: BoundedQueue, threads: int) -> None:
    """Starts so many threads that do the work of one job after the other."""

    def drain() -> None:
        while (taken := queue.take(1)) is not None:
            taken[0].work(None)  # type: ignore[arg-type]

    for number in range(threads):
        queue.start(drain, str(number))
    time.sleep(0.05)  # all of them are idle


def put(queue: BoundedQueue, work: Callable[[], object]) -> None:
    queue.put(Job(lambda _tx: work(), CallContext(), lambda _job: None))


def test_no_other_job_begins_within_the_head_start_of_one_that_runs() -> None:
    queue, running, most = BoundedQueue(20, head_start=1.0), [0], list[int]()

    def count() -> None:
        running[0] += 1
        most.append(running[0])
        time.sleep(0.01)
        running[0] -= 1

    serve(queue, 3)
    for _ in range(8):
        put(queue, count)
    queue.stop()
    assert most == [1] * 8


def test_thread_that_has_done_its_job_begins_the_next_one_at_once() -> None:
    queue, last = BoundedQueue(20, head_start=20.0), threading.Event()
    serve(queue, 1)
    put(queue, lambda: None)
    put(queue, last.set)
    assert last.wait(10)
    queue.stop()


def test_two_jobs_behind_one_that_runs_for_long_begin_a_head_start_apart() -> None:
    queue, order, last = BoundedQueue(20, head_start=0.5), list[str](), threading.Event()

    def second() -> None:
        time.sleep(0.05)
        order.append("the second one has run for a while")
        last.wait(10)

    def third() -> None:
        order.append("the third one begins")
        last.set()

    serve(queue, 3)
    for work in (lambda: last.wait(10), second, third):
        put(queue, work)
    assert last.wait(10)  # before the queue stops, which wakes every thread
    queue.stop()
    assert order == ["the second one has run for a while", "the third one begins"]


def test_job_that_comes_long_after_another_one_has_begun_starts_beside_it() -> None:
    queue, begun, last = BoundedQueue(20, head_start=0.01), threading.Event(), threading.Event()

    def wait_for_the_last() -> None:
        begun.set()
        last.wait(10)

    serve(queue, 2)
    put(queue, wait_for_the_last)
    assert begun.wait(10)
    time.sleep(0.02)  # its head start is over
    put(queue, last.set)
    assert last.wait(5)
    queue.stop()
