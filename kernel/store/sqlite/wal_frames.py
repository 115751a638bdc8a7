"""The frames of a write-ahead log: which of them SQLite replays, and whether answered writes stand behind those.

SQLite replays a log up to the last commit before the first frame whose checksum is wrong, and drops the rest
silently. At the end of a log that is right: the last commit of a power cut may be torn. It is damage where more stands
behind. Two things distinguish them:

- A commit begins when the one before it is on disk. So of two commits behind the wrong frame the first was answered.
- The index of the log (`-shm`), which outlives the process but seldom the power, says how many frames were committed.

Formats: sqlite.org/fileformat2.html#walformat and sqlite.org/walformat.html.
"""

import mmap
import struct
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from kernel.data_dir import fsync_folder
from kernel.store.sqlite.linear_checksum import block_sums
from kernel.store.sqlite.unfinished import fsync_path
from kernel.store.sqlite.wal_header import BIG_ENDIAN, HEADER_BYTES, checksum, index_of, log_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FRAME_HEADER = struct.Struct(">6I")  # page number, pages after the commit or 0, two salts, two checksums
_REST_OF_HEADER = struct.Struct(">6I")  # page size, sequence, two salts, two checksums
_INDEX_HEADER = struct.Struct("=3I2BH6I")  # of the -shm: version to page size, frames, pages, sums of a frame, salts
_INDEX_BYTES = 48  # _INDEX_HEADER and its own two checksums; then a copy of it, then the number of frames copied
_FRAMES_AT_ONCE = 2048  # 8 MB
_COMMITS_BEHIND = 2


class Log(NamedTuple):
    """A mapped log: its frames are those with the salts of its header."""

    content: mmap.mmap
    page_size: int
    salts: bytes
    sums: tuple[int, int]
    order: str

    @property
    def frame_size(self) -> int:
        """Bytes of a frame with its header."""
        return FRAME_HEADER.size + self.page_size

    @property
    def frames(self) -> int:
        """How many whole frames the file holds, of whatever age."""
        return (len(self.content) - HEADER_BYTES) // self.frame_size

    def frame(self, number: int) -> tuple[bytes, bytes]:
        """Header and page of a frame."""
        start = HEADER_BYTES + number * self.frame_size
        middle = start + FRAME_HEADER.size
        return self.content[start:middle], self.content[middle : start + self.frame_size]

    def is_current(self, number: int) -> bool:
        """Whether a frame was written since the log started over."""
        header, page = self.frame(number)
        return header[8:16] == self.salts and len(page) == self.page_size


class Reading(NamedTuple):
    """What SQLite makes of a log: frames it replays, and what stands behind the first wrong one.

    `sound` counts the frames before the first wrong one, `behind` the commits at or after it.
    """

    replayed: int
    sound: int
    behind: int


class Index(NamedTuple):
    """What the index of a log says of it: salts, frames that were committed, frames that were copied into the file."""

    salts: bytes
    committed: int
    copied: int
    of_this_boot: bool


@contextmanager
def mapped(file: Path) -> Generator[mmap.mmap | None]:
    """The content of a file; None where it is empty or not there."""
    try:
        opened = file.open("rb")
    except FileNotFoundError:
        yield None
        return
    with opened:
        try:
            content = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
        except ValueError:  # an empty file cannot be mapped
            yield None
            return
        with content:
            yield content


def open_log(content: mmap.mmap | None) -> Log | None:
    """The log in a mapped file; None where it has no header."""
    if content is None or len(content) < HEADER_BYTES or not any(content[:HEADER_BYTES]):
        return None
    page_size, *_, first, second = _REST_OF_HEADER.unpack_from(content, 8)
    order = ">" if content[:4] == BIG_ENDIAN else "<"
    return Log(content, page_size, content[16:24], (first, second), order)


def loss_of(file: Path, *, durable: bool = True) -> str:
    """What SQLite would drop of answered writes if it opened a database that no process has open; empty for nothing.

    Without `durable` commits reach the disk in any order, so only what was written since the machine started counts.
    """
    index = read_index(file)
    with mapped(log_of(file)) as content:
        log = open_log(content)
        if log is None:
            # After a power cut the index may be older than the log that was emptied.
            lost = index.committed - index.copied if index is not None and index.of_this_boot and file.exists() else 0
            return f"is missing: {lost} pages of answered writes were in it" if lost > 0 else ""
        found = read_log(log)
        if (
            index is not None
            and index.salts == log.salts
            and index.committed > found.replayed
            and (durable or index.of_this_boot)
        ):
            return f"is damaged: {index.committed - found.replayed} pages of answered writes stand behind the damage"
        if durable and found.behind >= _COMMITS_BEHIND:
            return f"is damaged: {found.behind} commits of answered writes stand behind the damage"
        return ""


def pages_in_log(file: Path) -> frozenset[int]:
    """The numbers of the pages that SQLite reads from the log of a database, or copies from there into the file."""
    with mapped(log_of(file)) as content:
        log = open_log(content)
        if log is None:
            return frozenset()
        return frozenset(FRAME_HEADER.unpack(log.frame(number)[0])[0] for number in range(read_log(log).replayed))


def cut_log(file: Path, aside: Path) -> int:
    """Leaves of a damaged log what can be replayed, and keeps the log as it was `aside`; the frames that are left.

    Frames that are in the file already are left out, damaged or not. No other process has the database open.
    """
    log_file, index = log_of(file), read_index(file)
    frames, count = b"", 0
    with mapped(log_file) as content:
        log = open_log(content)
        if log is not None:
            start = min(index.copied, log.frames) if index is not None and index.salts == log.salts else 0
            end = read_log(log, start).replayed
            frames, count = _chained(log, start, end), end - start
    if log_file.exists():
        log_file.rename(aside)
    index_of(file).unlink(missing_ok=True)
    if count:
        log_file.write_bytes(frames)
        log_file.chmod(0o600)
        fsync_path(log_file)
    fsync_folder(file.parent)
    return count


def _chained(log: Log, start: int, end: int) -> bytes:
    """A log of the frames from `start` to `end`."""
    made = bytearray(log.content[:HEADER_BYTES])
    sums = log.sums
    for number in range(start, end):
        header, page = log.frame(number)
        sums = checksum(header[:8] + page, sums, log.order)
        made += header[:16] + struct.pack(">2I", *sums) + page
    return bytes(made)


def read_log(log: Log, start: int = 0) -> Reading:
    """Verifies every frame from `start` on by the checksum of the one before it."""
    import numpy as np

    replayed, sound, behind, broken = start, start, 0, False
    sums = np.array(struct.unpack(">2I", log.frame(start - 1)[0][16:]) if start else log.sums, np.uint32)
    for at in range(start, log.frames, _FRAMES_AT_ONCE):
        count = min(_FRAMES_AT_ONCE, log.frames - at)
        frames = np.frombuffer(log.content, np.uint8, count * log.frame_size, HEADER_BYTES + at * log.frame_size)
        current, right, commits, sums = _verified(frames.reshape(count, log.frame_size), sums, log)
        del frames
        wrong = np.nonzero(~right)[0]
        first = 0 if broken else int(wrong[0]) if len(wrong) else count
        ends = np.nonzero(commits[:first])[0]
        replayed = at + int(ends[-1]) + 1 if len(ends) else replayed
        sound += first
        broken = broken or len(wrong) > 0
        behind += int((commits & current)[first:].sum())
    return Reading(replayed, sound, behind)


def _verified(
    frames: "NDArray[np.uint8]", sums: "NDArray[np.uint32]", log: Log
) -> "tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_], NDArray[np.uint32]]":
    """Of each frame: whether it is current, whether its checksum is right too, whether it commits; and last sums."""
    import numpy as np

    header = frames[:, : FRAME_HEADER.size].copy().view(">u4").astype(np.uint32)
    stored = header[:, 4:]
    before = np.vstack([sums[None, :], stored[:-1]])
    current = (header[:, 2:4] == np.frombuffer(log.salts, ">u4")).all(axis=1)
    summed = np.concatenate([frames[:, :8], frames[:, FRAME_HEADER.size :]], axis=1)
    right = current & (block_sums(summed, before, log.order) == stored).all(axis=1) & (header[:, 0] > 0)
    return current, right, header[:, 1] > 0, stored[-1]


def read_index(file: Path) -> Index | None:
    """What the index of the log of a database says; None where it is not there, or not whole."""
    try:
        with index_of(file).open("rb") as opened:
            content = opened.read(2 * _INDEX_BYTES + 4)
        written = index_of(file).stat().st_mtime
    except OSError:
        return None
    if len(content) < 2 * _INDEX_BYTES + 4:
        return None
    header = content[: _INDEX_HEADER.size]
    _, _, _, started, _, _, committed, *_ = _INDEX_HEADER.unpack(header)
    sums = checksum(header, (0, 0), "=")
    if not started or struct.unpack("=2I", content[_INDEX_HEADER.size : _INDEX_BYTES]) != sums:
        return None
    (copied,) = struct.unpack("=I", content[2 * _INDEX_BYTES :])
    return Index(header[32:40], committed, copied, written > _boot_time())


def _boot_time() -> float:
    """When this machine was started, in seconds since 1970; later than any time where that is unknown."""
    with suppress(OSError):
        for line in Path("/proc/stat").read_text(encoding="ascii").splitlines():
            if line.startswith("btime "):
                return float(line.split()[1])
    return float("inf")
