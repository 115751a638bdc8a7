"""Runs the commands of a store, as a person does."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kernel.cli import commands
from kernel.cli.main import parser
from kernel.core.config import Config
from kernel.core.errors import Fault
from kernel.server import app


@contextmanager
def perhaps_refused() -> Iterator[None]:
    """Whatever is refused is refused for a reason, and is no bug."""
    refusal: list[Fault] = []
    try:
        yield
    except Fault as fault:
        refusal.append(fault)
    assert [fault for fault in refusal if fault.code == "internal"] == []


class Shell:
    """Runs command lines on one data directory."""

    def __init__(self, config: Config, capture: pytest.CaptureFixture[str], folder: Path) -> None:
        self.config = config
        app.open_kernel(config).store.close()
        self._capture = capture
        self._folder = folder
        self._exports = 0

    def run(self, *line: str) -> str:
        """The standard output of a command that succeeds."""
        self._capture.readouterr()
        assert commands.run(parser().parse_args(line), self.config) == 0
        return self._capture.readouterr().out

    def bring(self, source: Path, *options: str) -> dict[str, Any]:
        """The result of an import of a source whose kind is detected."""
        return self._done("import", str(source), *options, "--json")

    def bring_kind(self, kind: str, source: Path) -> dict[str, Any]:
        """The result of an import of a source as this kind."""
        return self._done("import", kind, str(source), "--json")

    def _done(self, *line: str) -> dict[str, Any]:
        """The JSON of an import, without the number of its call."""
        done = json.loads(self.run(*line))
        done.pop("undo", None)
        return done

    def export(self, kind: str = "jsonl") -> Path:
        """A new export."""
        self._exports += 1
        target = self._folder / f"export-{self.config.data.name}-{self._exports}"
        self.run("export", kind, str(target))
        return target

    def audit(self) -> list[dict[str, Any]]:
        """The rows of the audit, newest first."""
        return [json.loads(line) for line in self.run("audit", "--json").splitlines()]


def rows(shell: Shell, table: str) -> list[dict[str, Any]]:
    lines = (json.loads(line) for line in shell.export().read_bytes().splitlines())
    return [line["row"] for line in lines if line.get("table") == table]


def contents(shell: Shell, table: str = "sessions_memory") -> list[str]:
    return [row["content"] for row in rows(shell, table)]
