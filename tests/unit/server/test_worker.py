"""The counters that a worker keeps for the worker that takes its place."""

import mmap
import os
import socket
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import IO

import pytest

from kernel.server.worker import Channel, Shared, Worker, shared_bytes

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows serves with one worker")


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[Shared]:
    with ExitStack() as stack:

        def file() -> IO[bytes]:
            return stack.enter_context(tempfile.TemporaryFile(dir=tmp_path))

        channels = [Channel(*map(stack.enter_context, socket.socketpair(type=socket.SOCK_DGRAM))) for _ in range(2)]
        memory = mmap.mmap(-1, shared_bytes(2))
        yield Shared(channels, file(), [(file(), file()) for _ in range(2)], memory, b"key", os.getpid())


def test_counters_outlive_a_worker_that_is_killed_while_it_keeps_newer_ones(shared: Shared) -> None:
    worker = Worker(1, shared)
    for text in (b"one", b"two", b"three"):
        worker.keep(text)
        assert worker.kept() == text
    newest = max(shared.kept[1], key=lambda file: os.pread(file.fileno(), 8, 0)[::-1])  # it begins with its time
    os.ftruncate(newest.fileno(), os.fstat(newest.fileno()).st_size - 1)
    assert Worker(1, shared).kept() == b"two"
    Worker(1, shared).keep(b"four")
    assert Worker(1, shared).kept() == b"four"


@pytest.mark.parametrize("answers", [True, False])
def test_a_worker_that_dies_before_its_answer_counts_with_what_it_kept(shared: Shared, answers: bool) -> None:
    asking, sibling = Worker(0, shared), Worker(1, shared)
    sibling.keep(b"before")
    sibling.text = lambda: b"live"
    with ThreadPoolExecutor() as threads:
        texts = threads.submit(asking.ask_siblings)
        _, descriptors, _, _ = socket.recv_fds(shared.channels[1].received, 1, 1)
        with socket.socket(fileno=descriptors[0]) as sock:
            if answers:
                sibling._answer(sock)
        assert texts.result() == [b"live" if answers else b"before"]
    assert sibling.kept() == texts.result()[0]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a file on a full disk")
def test_a_full_disk_ends_no_worker(shared: Shared) -> None:
    with Path("/dev/full").open("r+b", 0) as full:
        Worker(0, shared._replace(kept=[(full, full)])).keep(b"text")
