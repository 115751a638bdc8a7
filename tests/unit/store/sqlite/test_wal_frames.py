"""A log that lost answered writes is distinguished from one whose end was torn by a power cut."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernel.store.context import StoreContext
from kernel.store.migrations import migrate
from kernel.store.sqlite.connection import Connection
from kernel.store.sqlite.wal_frames import cut_log, loss_of, read_index

FRAME = 4096 + 24
INSERT = "INSERT INTO setting (name, value) VALUES (:name, :value)"
COMMITS = 12


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Connection]:
    """A database with commits in its log, while it is open."""
    file = tmp_path / "running" / "quipu.db"
    file.parent.mkdir()
    db = Connection(file, StoreContext({}), readonly=False)
    migrate(db)
    db.checkpoint(truncate=True)
    for number in range(COMMITS):
        write(db, f"n{number}")
    yield db
    db.close()


def write(db: Connection, name: str) -> None:
    with db.writing():
        db.execute(INSERT, {"name": name, "value": "v" * 3000}).fetchall()


def killed(db: Connection, to: Path, *, index: bool) -> Path:
    """The files as a kill leaves them, or without the `index` as a power cut does."""
    to.mkdir()
    for end in ("", "-wal", *(["-shm"] if index else [])):
        shutil.copyfile(f"{db.filename}{end}", to / f"quipu.db{end}")
    return to / "quipu.db"


def names(file: Path) -> set[str]:
    db = Connection(file, StoreContext({}), readonly=False)
    try:
        assert db.integrity_errors() == []
        return {str(name) for (name,) in db.values("SELECT name FROM setting WHERE name LIKE 'n%'")}
    finally:
        db.close()


def ends(file: Path) -> list[int]:
    """The frames that commit."""
    content = log(file).read_bytes()
    return [at for at in range(len(content) // FRAME) if any(content[32 + at * FRAME + 4 : 32 + at * FRAME + 8])]


def log(file: Path) -> Path:
    return file.with_name("quipu.db-wal")


def flip(file: Path, at: int) -> None:
    content = bytearray(log(file).read_bytes())
    content[at] ^= 0x10
    log(file).write_bytes(content)


@pytest.mark.parametrize("index", [True, False], ids=["killed", "power cut"])
def test_log_as_it_was_left_is_sound_at_any_age(running: Connection, tmp_path: Path, *, index: bool) -> None:
    for number in range(30):
        file = killed(running, tmp_path / str(number), index=index)
        assert loss_of(file) == "", number
        if number % 7 == 3:
            running.checkpoint()
        if number % 11 == 5:
            running.checkpoint(truncate=True)
        write(running, f"n{COMMITS + number}")


@pytest.mark.parametrize("offset", [0, 5, 9, 17, 24, 2000, FRAME - 1])
@pytest.mark.parametrize("index", [True, False], ids=["killed", "power cut"])
def test_any_byte_of_a_frame_before_two_commits_is_missed(
    running: Connection, tmp_path: Path, offset: int, *, index: bool
) -> None:
    file = killed(running, tmp_path / "killed", index=index)
    flip(file, 32 + 3 * FRAME + offset)
    assert loss_of(file).startswith("is damaged: ")


def test_every_frame_is_missed_after_a_kill(running: Connection, tmp_path: Path) -> None:
    file = killed(running, tmp_path / "killed", index=True)
    whole = log(file).read_bytes()
    frames = len(whole) // FRAME
    for number in range(frames):
        flip(file, 32 + number * FRAME + 24 + number)
        replayed = max((end + 1 for end in ends(file) if end < number), default=0)
        assert loss_of(file) == f"is damaged: {frames - replayed} pages of answered writes stand behind the damage"
        log(file).write_bytes(whole)
        log(file).write_bytes(whole[: 32 + number * FRAME])
        assert loss_of(file), number
        log(file).write_bytes(whole)
    assert loss_of(file) == ""


def test_torn_last_commit_of_a_power_cut_is_no_damage(running: Connection, tmp_path: Path) -> None:
    file = killed(running, tmp_path / "cut", index=False)
    before, last = ends(file)[-2:]
    whole = log(file).read_bytes()
    for number in range(before + 1, last + 1):
        at = 32 + number * FRAME
        for torn in (whole[:at], whole[: at + 512], whole[:at] + bytes(FRAME) + whole[at + FRAME :]):
            log(file).write_bytes(torn)
            assert loss_of(file) == "", number


def test_index_of_another_log_says_nothing(running: Connection, tmp_path: Path) -> None:
    old = killed(running, tmp_path / "old", index=True)
    running.checkpoint(truncate=True)
    write(running, "n")
    new = killed(running, tmp_path / "new", index=False)
    shutil.copyfile(old.with_name("quipu.db-shm"), new.with_name("quipu.db-shm"))
    assert loss_of(new) == ""
    new.with_name("quipu.db-shm").write_bytes(b"nothing" * 5000)
    assert (read_index(new), loss_of(new)) == (None, "")


def test_without_durability_only_what_this_start_of_the_machine_wrote_is_missed(
    running: Connection, tmp_path: Path
) -> None:
    for index, missed in ((False, False), (True, True)):
        file = killed(running, tmp_path / str(index), index=index)
        flip(file, 32 + 3 * FRAME + 100)
        assert bool(loss_of(file, durable=False)) == missed


def test_cut_log_keeps_what_was_committed_before_the_damage(running: Connection, tmp_path: Path) -> None:
    file = killed(running, tmp_path / "killed", index=False)
    at = ends(file)[4]
    flip(file, 32 + (at + 1) * FRAME + 100)
    damaged = log(file).read_bytes()
    assert cut_log(file, tmp_path / "aside") == at + 1
    assert (tmp_path / "aside").read_bytes() == damaged
    assert (loss_of(file), names(file)) == ("", {f"n{number}" for number in range(5)})


@pytest.mark.parametrize("more", [0, 3])
def test_frames_that_are_in_the_file_are_not_needed(running: Connection, tmp_path: Path, more: int) -> None:
    reader = Connection(Path(running.filename), StoreContext({}), readonly=True)
    reader.take_snapshot()  # else the next commit starts the log over
    running.checkpoint()
    for number in range(more):
        write(running, f"n{COMMITS + number}")
    file = killed(running, tmp_path / "killed", index=True)
    reader.close()
    index = read_index(file)
    assert index is not None
    assert (index.copied > 1, index.committed > index.copied) == (True, more > 0)
    flip(file, 32 + (index.copied - 2) * FRAME + 100)
    assert loss_of(file)
    assert cut_log(file, tmp_path / "aside") == index.committed - index.copied
    assert (loss_of(file), names(file)) == ("", {f"n{number}" for number in range(COMMITS + more)})
