"""A log belongs to the file that it was written for, at every moment of an ordinary life, and to no other."""

import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernel.store.context import StoreContext
from kernel.store.migrations import migrate
from kernel.store.sqlite.connection import Connection
from kernel.store.sqlite.log_stamp import begin_life, log_belongs

INSERT = "INSERT INTO setting (name, value) VALUES (:name, :value)"


class Life:
    """A database under way, of which copies are taken as a kill would leave it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)
        self.file, self.log = folder / "quipu.db", folder / "quipu.db-wal"
        self.db = Connection(self.file, StoreContext({}), readonly=False)
        migrate(self.db)
        self.count = len(self.db.values("SELECT name FROM setting"))

    def write(self, size: int = 10) -> None:
        """One commit."""
        self.count += 1
        with self.db.writing():
            self.db.execute(INSERT, {"name": f"n{self.count}", "value": "v" * size}).fetchall()

    def delete(self) -> None:
        """A commit that leaves free pages."""
        with self.db.writing():
            self.db.script("DELETE FROM setting")

    def killed(self, to: Path) -> "tuple[Path, Path]":
        """The files as they are now."""
        to.mkdir()
        shutil.copyfile(self.file, to / "quipu.db")
        if self.log.exists():
            shutil.copyfile(self.log, to / "quipu.db-wal")
        return to / "quipu.db", to / "quipu.db-wal"


@pytest.fixture
def life(tmp_path: Path) -> Iterator[Life]:
    made = Life(tmp_path / "data")
    yield made
    made.db.close()


def test_a_log_belongs_to_its_file_at_every_moment(tmp_path: Path, life: Life) -> None:
    chance = random.Random(7)
    steps = [
        life.write,
        lambda: life.write(200_000),
        life.delete,
        life.db.checkpoint,
        lambda: life.db.checkpoint(truncate=True),
        lambda: life.db.script("VACUUM"),
        lambda: begin_life(life.db),
    ]
    for number in range(120):
        chance.choice(steps)()
        assert log_belongs(*life.killed(tmp_path / str(number))), number


def test_a_log_belongs_to_a_file_into_which_any_part_of_it_was_copied(tmp_path: Path, life: Life) -> None:
    """A checkpoint copies pages in their order and may end after any of them; VACUUM has moved every one."""
    life.write(500_000)
    life.write(100)
    life.db.checkpoint(truncate=True)
    life.delete()
    life.write(30_000)
    life.db.script("VACUUM")
    before, log = life.killed(tmp_path / "before")
    life.db.checkpoint()
    after, _ = life.killed(tmp_path / "after")
    old, new = before.read_bytes(), after.read_bytes()
    for pages in range(0, len(new) // 4096, 3):
        before.write_bytes(new[: pages * 4096] + old[pages * 4096 :])
        assert log_belongs(before, log), pages


def test_a_log_belongs_to_no_earlier_or_later_state_of_the_file(tmp_path: Path, life: Life) -> None:
    states: list[tuple[Path, Path]] = []
    for number in range(5):
        begin_life(life.db)
        states.append((life.killed(tmp_path / f"start{number}")[0], life.log))
        for _ in range(3):
            life.write(5000)
        states[-1] = (states[-1][0], life.killed(tmp_path / f"end{number}")[1])
    for at, (file, _) in enumerate(states):
        assert [log_belongs(file, log) for _, log in states] == [at == other for other in range(5)]


def test_a_backup_belongs_to_no_log_not_even_one_that_was_begun_before_it(tmp_path: Path, life: Life) -> None:
    life.write()
    life.db.backup(tmp_path / "copy.db")
    life.write()
    file, log = life.killed(tmp_path / "killed")
    assert log_belongs(file, log)
    assert not log_belongs(tmp_path / "copy.db", log)


def test_a_log_of_a_release_without_stamps_belongs(tmp_path: Path, life: Life) -> None:
    life.db.script("DROP TABLE log_stamp")
    life.db.checkpoint(truncate=True)
    life.db.script("INSERT INTO setting (name, value) VALUES ('a', 'b')")
    file, log = life.killed(tmp_path / "killed")
    assert log_belongs(file, log)
    migrate(life.db)
    life.write()
    assert log_belongs(*life.killed(tmp_path / "upgraded"))
    assert log_belongs(file, log)


def test_a_stamp_in_a_text_of_a_user_is_none(tmp_path: Path, life: Life) -> None:
    forged = bytes(life.db.values("SELECT stamp FROM log_stamp")[0][0])
    life.db.checkpoint(truncate=True)
    with life.db.writing():
        life.db.execute(
            "INSERT INTO setting (name, value) VALUES (:name, CAST(:value AS TEXT))",
            {"name": "x", "value": forged[:16] + b"f" * 32},
        ).fetchall()
    assert log_belongs(*life.killed(tmp_path / "killed"))
    life.db.checkpoint(truncate=True)
    life.write()
    assert log_belongs(*life.killed(tmp_path / "later"))


def test_what_sqlite_does_not_replay_is_no_sign(tmp_path: Path, life: Life) -> None:
    """Frames behind one that was not written whole, as a power cut leaves them."""
    begin_life(life.db)
    before, _ = life.killed(tmp_path / "before")
    life.write()
    life.write()
    _, log = life.killed(tmp_path / "after")
    content = bytearray(log.read_bytes())
    content[32 + 24 : 32 + 24 + 4096] = bytes(4096)
    log.write_bytes(content)
    assert log_belongs(before, log)
    begin_life(life.db)
    later, _ = life.killed(tmp_path / "later")
    assert log_belongs(later, log)


def test_missing_and_empty_files_belong(tmp_path: Path) -> None:
    assert log_belongs(tmp_path / "quipu.db", tmp_path / "quipu.db-wal")
    (tmp_path / "quipu.db").touch()
    (tmp_path / "quipu.db-wal").write_bytes(b"short")
    assert log_belongs(tmp_path / "quipu.db", tmp_path / "quipu.db-wal")
