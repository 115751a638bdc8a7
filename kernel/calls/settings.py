"""The settings of dialects: declared by the dialect, read from the environment at startup, looked up by name."""

import math
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from kernel.core.data_dir import MAIN
from kernel.core.errors import Fault
from kernel.store.transaction import Tx

Parse = Callable[[str], Any]


class Setting(NamedTuple):
    """One setting: `parse(text)` returns its value, or raises ValueError with a description of valid values.

    A `personal` setting, such as a path, applies to the main tenant only; other tenants have the default. The schemas
    of tools list its values for the parameters `lists`, and do not require the parameters that it `supplies`.
    """

    name: str
    default: Any
    parse: Parse
    about: str
    personal: bool = False
    lists: tuple[str, ...] = ()
    supplies: tuple[str, ...] = ()


def setting_prefixes(settings: Iterable[Setting]) -> tuple[str, ...]:
    """Return the beginnings of the names of all settings: of Quipu itself, and of those that an original has."""
    words = (setting.name.split("_") for setting in settings)
    return ("QUIPU_", *sorted({f"{first}_{second}_" for first, second, *_ in words if first != "QUIPU"}))


def read_settings(settings: Iterable[Setting], environment: Mapping[str, str], tenant: str = MAIN) -> dict[str, Any]:
    """Return the value of each setting; an empty variable counts as unset. Raises Fault("invalid") naming the
    variable.
    """
    values: dict[str, Any] = {}
    for setting in settings:
        applies = tenant == MAIN or not setting.personal
        text = environment.get(setting.name, "").strip() if applies else ""
        try:
            values[setting.name] = setting.parse(text) if text else setting.default
        except ValueError as error:
            raise Fault("invalid", f"{setting.name} is {error}") from None
    return values


def setting(tx: Tx, name: str) -> Any:
    return tx.context.settings[name]


def data_folder(tx: Tx) -> Path:
    """Return the absolute path of the data directory; raises Fault("storage") if the store has none."""
    folder = tx.context.data
    if folder is None:
        raise Fault("storage", "There is no data directory.")
    return folder


def flag(value: str) -> bool:
    """1, true, yes and on; 0, false, no and off."""
    flags = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}
    if value.lower() not in flags:
        raise ValueError("1 or 0, true or false, yes or no, on or off")
    return flags[value.lower()]


def number(low: int, high: int) -> Parse:
    def parse(value: str) -> int:
        if not value.isascii() or not value.removeprefix("-").isdigit() or not low <= int(value) <= high:
            raise ValueError(f"a whole number from {low} to {high}")
        return int(value)

    return parse


def fraction(low: float, high: float) -> Parse:
    def parse(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not low <= value <= high:
            raise ValueError(f"a number from {low} to {high}")
        return value

    return parse


def names(value: str) -> tuple[str, ...]:
    """Names separated by commas, at least one."""
    parts = tuple(part.strip() for part in value.split(",") if part.strip())
    if not parts:
        raise ValueError("one or more names, separated by commas")
    return parts


def choice(*choices: str) -> Parse:
    """Return one of these words; case is ignored."""

    def parse(value: str) -> str:
        if value.lower() not in choices:
            raise ValueError(f"one of {', '.join(choices)}")
        return value.lower()

    return parse


def text(value: str) -> str:
    return value
