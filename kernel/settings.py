"""The settings a dialect has of its own: declared once, read from the environment at start, asked for by name."""

import math
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from kernel.data_dir import MAIN
from kernel.errors import Fault
from kernel.store.transaction import Tx

Parse = Callable[[str], Any]


class Setting(NamedTuple):
    """One setting: `parse(text)` gives its value or raises ValueError saying what the value may be.

    What is `personal` tells of files and places of the main tenant; every other has the default.
    """

    name: str
    default: Any
    parse: Parse
    about: str
    personal: bool = False


def read_settings(settings: Iterable[Setting], environment: Mapping[str, str], tenant: str = MAIN) -> dict[str, Any]:
    """The value of each setting; an empty variable is one that is not set. Raises Fault naming the variable."""
    found: dict[str, Any] = {}
    for setting in settings:
        mine = tenant == MAIN or not setting.personal
        given = environment.get(setting.name, "").strip() if mine else ""
        try:
            found[setting.name] = setting.parse(given) if given else setting.default
        except ValueError as error:
            raise Fault("invalid", f"{setting.name} is {error}") from None
    return found


def setting(tx: Tx, name: str) -> Any:
    """The value of one setting of the dialect that runs."""
    return tx.context.settings[name]


def data_folder(tx: Tx) -> Path:
    """The data directory, absolute; raises Fault("storage") where the store was opened without one."""
    folder = tx.context.data
    if folder is None:
        raise Fault("storage", "There is no data directory.")
    return folder


def flag(given: str) -> bool:
    """1, true, yes and on; 0, false, no and off."""
    known = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}
    if given.lower() not in known:
        raise ValueError("1 or 0, true or false, yes or no, on or off")
    return known[given.lower()]


def number(low: int, high: int) -> Parse:
    """A whole number from `low` to `high`."""

    def parse(given: str) -> int:
        if not given.isascii() or not given.removeprefix("-").isdigit() or not low <= int(given) <= high:
            raise ValueError(f"a whole number from {low} to {high}")
        return int(given)

    return parse


def fraction(low: float, high: float) -> Parse:
    """A number from `low` to `high`."""

    def parse(given: str) -> float:
        try:
            value = float(given)
        except ValueError:
            value = math.nan
        if not low <= value <= high:
            raise ValueError(f"a number from {low} to {high}")
        return value

    return parse


def names(given: str) -> tuple[str, ...]:
    """Names separated by commas, at least one."""
    found = tuple(part.strip() for part in given.split(",") if part.strip())
    if not found:
        raise ValueError("one or more names, separated by commas")
    return found


def choice(*choices: str) -> Parse:
    """One of a few words, in any case."""

    def parse(given: str) -> str:
        if given.lower() not in choices:
            raise ValueError(f"one of {', '.join(choices)}")
        return given.lower()

    return parse


def text(given: str) -> str:
    """Anything."""
    return given
