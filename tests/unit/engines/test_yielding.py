"""A long command writes in transactions of its own, with pauses while other processes write."""

import time
from contextlib import closing
from pathlib import Path

from kernel.engines.yielding import Politeness, Turns
from kernel.store.long_work import Steps
from tests.unit.store_fixtures import add, names, things


def test_a_write_is_committed_before_the_next(tmp_path: Path) -> None:
    with closing(things(tmp_path / "a.db")) as db, closing(things(tmp_path / "a.db")) as other:
        turns = Turns(db, alone=True)
        assert turns.write(add("mill")) == "mill"
        assert other.values("SELECT name FROM thing") == [("mill",)]
        assert turns.write(names) == ["mill"]


def test_steps_are_cut_into_slices_while_others_write(tmp_path: Path) -> None:
    def steps() -> Steps[str]:
        for number in range(4):
            tx = yield
            add(str(number))(tx)
            time.sleep(0.002)
        return "done"

    with closing(things(tmp_path / "a.db")) as db, closing(things(tmp_path / "a.db")) as other:
        seen: list[int] = []

        def ahead() -> dict[str, object]:
            seen.append(len(other.values("SELECT name FROM thing")))
            return {}

        assert Turns(db, alone=False).run(steps(), ahead) == "done"  # type: ignore[arg-type]
        assert seen == sorted(seen)
        assert len(seen) > 1
        assert len(other.values("SELECT name FROM thing")) == 4


def test_only_a_command_that_is_not_alone_limits_its_slices(tmp_path: Path) -> None:
    with closing(things(tmp_path / "a.db")) as db:
        assert Politeness(db, alone=True).seconds is None
        assert Politeness(db, alone=False).seconds is not None
