"""A real power cut: a file system is shut down under a writing server without a flush, mounted again and read.

POWER_CUTS sets how often (2 by default). It needs root, loop devices and ext4.
"""

import fcntl
import os
import random
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.catalogue import Catalogue
from tests.reliability.server_process import Countdown, Ledger, Writer, disagreements, finish, serving
from tests.support.reliability_power_cut import run

CUTS = int(os.environ.get("POWER_CUTS", "2"))
WRITERS = 8
_SHUT_DOWN = 0x8004587D
_WITHOUT_FLUSH = 2


@contextmanager
def mounted(image: Path, folder: Path) -> Iterator[None]:
    """An image as a file system, until the end of the block."""
    run("mount", "-o", "loop", str(image), str(folder))
    try:
        yield
    finally:
        run("umount", str(folder))


def cut(folder: Path) -> None:
    """Ends all writing to the file system at once, data in memory is gone."""
    number = os.open(folder, os.O_RDONLY)
    try:
        fcntl.ioctl(number, _SHUT_DOWN, struct.pack("I", _WITHOUT_FLUSH))
    finally:
        os.close(number)


@pytest.fixture
def disk(tmp_path: Path) -> tuple[Path, Path]:
    """An image with an ext4 file system, and where to mount it."""
    image, folder = tmp_path / "image", tmp_path / "disk"
    folder.mkdir()
    with image.open("wb") as file:
        file.truncate(256 << 20)
    try:
        run("mkfs.ext4", "-q", str(image))
        with mounted(image, folder):
            pass
    except OSError as error:
        pytest.skip(f"no file system can be mounted here: {error}")
    return image, folder


def test_no_answered_write_is_lost_or_half_there_when_the_power_is_cut(
    disk: tuple[Path, Path], catalogue: Catalogue
) -> None:
    image, folder = disk
    ledger, chance = Ledger(), random.Random()
    for number in range(CUTS):
        with mounted(image, folder), serving(folder / "data") as server:
            countdown = Countdown(chance.randrange(20, 200))
            writers = [
                Writer(server.port, f"{number}-{writer}", chance.randrange(1 << 30), countdown)
                for writer in range(WRITERS)
            ]
            for writer in writers:
                writer.fragile = True
                writer.start()
            assert countdown.done.wait(120)
            for writer in writers:
                writer.dark.set()  # a file system that is shut down may still say that it has synced
            cut(folder)
            finish(writers)
            server.kill()
        with mounted(image, folder):
            assert ledger.take(writers, folder / "data") == []
            assert disagreements(folder / "data") == []
    outcome = f"{len(ledger.known):,} paths, 0 lost, 0 half written"
    catalogue("R02", injected="power cut, nothing flushed", times=CUTS, outcome=outcome)
