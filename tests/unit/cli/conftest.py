"""The argument parser is built once for all tests of the command line: that takes longer than most of them."""

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

from kernel.cli import main

Output = tuple[int, str, str]
Quipu = Callable[..., Output]


@pytest.fixture(scope="session", autouse=True)
def one_parser() -> Iterator[None]:
    """Every command of a run is parsed by the same parser, which keeps nothing between two commands."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(main, "parser", cache(main.parser))
        yield


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home directory, without the settings of this machine."""
    for name in (
        "XDG_CONFIG_HOME",
        "XDG_DATA_HOME",
        "CLAUDE_CONFIG_DIR",
        "CODEX_HOME",
        "COPILOT_HOME",
        "QUIPU_DATA",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PORT", "9")  # nothing listens there, on any machine
    return tmp_path / "home"


@pytest.fixture
def quipu(capsys: pytest.CaptureFixture[str]) -> Quipu:
    """Status, standard output and standard error of a command line."""

    def command(*arguments: str) -> Output:
        status = main.main(list(arguments))
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    return command
