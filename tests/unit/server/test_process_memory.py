"""Memory that was freed between blocks in use goes back to the operating system."""

import ctypes
import sys
from pathlib import Path

import pytest

from kernel.server.process import trim_memory

SIZE = 1000  # above the sizes that the interpreter keeps in pools of its own
COUNT = 50_000


@pytest.mark.skipif(
    sys.platform != "linux" or not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="the C library gives nothing back"
)
def test_freed_memory_between_used_blocks_is_returned() -> None:
    blocks = [bytes(SIZE) for _ in range(COUNT)]
    kept = blocks[::100]
    full = _resident()
    del blocks

    assert trim_memory()

    assert full - _resident() > SIZE * COUNT // 2
    assert kept == [bytes(SIZE)] * (COUNT // 100)


def _resident() -> int:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return 1024 * next(int(line.split()[1]) for line in status.splitlines() if line.startswith("RssAnon"))
