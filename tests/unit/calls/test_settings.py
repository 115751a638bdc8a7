"""A setting is read once, by its own rule, and a wrong one is named."""

from pathlib import Path

import pytest

from kernel.calls.dispatch import Dispatch
from kernel.calls.settings import (
    Parse,
    Setting,
    choice,
    data_folder,
    flag,
    fraction,
    names,
    number,
    read_settings,
    setting,
    text,
)
from kernel.core.config import Config
from kernel.core.errors import Fault
from kernel.engines.sqlite.connection import Connection
from kernel.server import app
from kernel.store.context import CallContext, StoreContext
from kernel.store.transaction import Tx

PLACES = Setting("SHELF_PLACES", ("here",), names, "where things lie")
DEPTH = Setting("SHELF_DEPTH", 3, number(-1, 9), "how deep")


@pytest.mark.parametrize(
    ("parse", "given", "value"),
    [
        (flag, "1", True),
        (flag, "Yes", True),
        (flag, "off", False),
        (number(-5, 5), "-5", -5),
        (number(0, 9), "9", 9),
        (fraction(0, 1), "0.25", 0.25),
        (fraction(0, 1), "1", 1.0),
        (names, " a, b ,", ("a", "b")),
        (choice("full", "normal"), "FULL", "full"),
        (text, "any thing", "any thing"),
    ],
)
def test_setting_is_parsed(parse: Parse, given: str, value: object) -> None:
    assert read_settings([Setting("SHELF", None, parse, "")], {"SHELF": f" {given} "}) == {"SHELF": value}


def test_unset_setting_has_its_default() -> None:
    assert read_settings([PLACES, DEPTH], {"SHELF_PLACES": " ", "OTHER": "x"}) == {
        "SHELF_PLACES": ("here",),
        "SHELF_DEPTH": 3,
    }


@pytest.mark.parametrize(
    ("parse", "given", "rule"),
    [
        (flag, "2", "1 or 0, true or false, yes or no, on or off"),
        (number(0, 9), "10", "a whole number from 0 to 9"),
        (number(0, 9), "1.5", "a whole number from 0 to 9"),
        (number(0, 9), "--1", "a whole number from 0 to 9"),
        (fraction(0, 1), "nan", "a number from 0 to 1"),
        (fraction(0, 1), "much", "a number from 0 to 1"),
        (fraction(0, 1), "1.01", "a number from 0 to 1"),
        (names, ",", "one or more names, separated by commas"),
        (choice("full", "normal"), "half", "one of full, normal"),
    ],
)
def test_invalid_value_is_refused_with_name_and_rule(parse: Parse, given: str, rule: str) -> None:
    with pytest.raises(Fault) as refused:
        read_settings([Setting("SHELF", None, parse, "")], {"SHELF": given})
    assert (refused.value.code, refused.value.message) == ("invalid", f"SHELF is {rule}")


def test_handler_reads_a_setting_by_name(tmp_path: Path) -> None:
    dialect = app.DIALECTS[0]._replace(settings=(PLACES, DEPTH))
    config = Config(data=tmp_path / "data", environment={"SHELF_PLACES": "attic, cellar"})
    running = app.open_kernel(config, (dialect,))
    assert isinstance(running.dispatch, Dispatch)

    def ask(tx: Tx) -> list[object]:
        return [setting(tx, "SHELF_PLACES"), setting(tx, "SHELF_DEPTH")]

    answers = (running.store.read_sync(ask), running.store.write_sync(ask))
    running.store.close()
    assert answers == ([("attic", "cellar"), 3], [("attic", "cellar"), 3])


def test_invalid_setting_stops_startup(tmp_path: Path) -> None:
    dialect = app.DIALECTS[0]._replace(settings=(DEPTH,))
    with pytest.raises(Fault, match=r"^SHELF_DEPTH is a whole number from -1 to 9$"):
        app.open_kernel(Config(data=tmp_path / "data", environment={"SHELF_DEPTH": "deep"}), (dialect,))
    assert not (tmp_path / "data").exists()


def test_handler_can_read_the_data_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    kernel = app.open_kernel(Config(data=Path("data")))
    try:
        assert kernel.store.read_sync(data_folder) == tmp_path / "data"
    finally:
        kernel.store.close()


def test_store_without_a_data_directory_is_a_fault(tmp_path: Path) -> None:
    db = Connection(tmp_path / "quipu.db", StoreContext({}), readonly=False)
    with pytest.raises(Fault, match="no data directory"):
        db.read(CallContext(), data_folder)
    db.close()
