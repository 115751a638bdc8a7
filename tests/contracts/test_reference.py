"""The reference pages are made from the program: RECORD=1 writes those that differ."""

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kernel.calls.dispatch import ToolEntry
from kernel.cli.commands import ALIASES, COMMANDS, GROUPS, parsers
from kernel.core.errors import HTTP_STATUS
from kernel.server import app
from tests.unit.sql.code import ROOT

FOLDER = ROOT / "docs" / "reference"
_MADE = "<!-- Made by RECORD=1 .venv/bin/python -m pytest tests/contracts/test_reference.py -->"
_TOOLS = f"""# Tools

{_MADE}

Each dialect has an address of its own, `/mcp/DIALECT`; the schemas are what `tools/list` answers. The permission is
that of a [key](../security.md#permissions); some actions of a tool take more.
"""
_COMMANDS = f"""# Commands

{_MADE}

Beside those below, `--data`, `--store`, `--read-store`, `--model` and `--tenant` say whose memories a command is for,
`--url` and `--key` which server it asks, and `--json` prints JSON; `quipu COMMAND --help` lists those that it takes.
How the commands work together: [command line](../command-line.md).
"""
_COMMON = {"--data", "--store", "--read-store", "--model", "--tenant", "--url", "--key", "--json"}


def cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def tools() -> Iterator[str]:
    yield _TOOLS
    for dialect in app.DIALECTS:
        yield f"## {dialect.name}\n"
        yield "| tool | permission | purpose |\n|---|---|---|"
        for tool in dialect.tools:
            purpose = re.split(r"(?<=[.!])\s", " ".join(tool.description.split()), maxsplit=1)[0]
            yield f"| `{tool.name}` | {ToolEntry(dialect, tool).required.most.name} | {cell(purpose)} |"
        yield ""


def commands() -> Iterator[str]:
    yield _COMMANDS
    for group, names in GROUPS.items():
        yield f"## {group}\n"
        for name in names:
            yield from command(name)


def command(name: str) -> Iterator[str]:
    about = COMMANDS[name]
    yield f"### quipu {name}\n\n{about.sentences or about.brief}\n"
    rows = [
        ("".join(action.option_strings[-1:]), str(action.metavar or ""), action.dest, action.help)
        for action in parsers()[name]._actions
        if action.help and action.dest != "help" and not _COMMON.intersection(action.option_strings)
    ]
    if rows:
        yield "| argument | meaning |\n|---|---|"
        for option, value, own_name, text in rows:
            yield f"| `{' '.join(filter(None, (option, value))) or own_name}` | {cell(str(text))} |"
        yield ""
    if about.examples:
        yield "```text\n" + "\n".join(about.examples) + "\n```\n"
    others = sorted(alias for alias, meant in ALIASES.items() if meant == name)
    if others:
        yield f"Other names: {', '.join(f'`{alias}`' for alias in others)}.\n"


@pytest.mark.slow
@pytest.mark.parametrize(("file", "lines"), [("tools.md", tools), ("commands.md", commands)], ids=["tools", "commands"])
def test_the_page_is_as_the_program_says(file: str, lines: Callable[[], Iterator[str]]) -> None:
    path, text = FOLDER / file, "\n".join(lines()).rstrip() + "\n"
    if os.environ.get("RECORD"):
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text, f"RECORD=1 writes {path.relative_to(Path.cwd())} anew"


def test_the_page_of_errors_has_every_code_with_its_status() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (\d+) \|", (FOLDER / "errors.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert {code: int(status) for code, status in rows} == {
        **HTTP_STATUS,
        "unauthorized": 401,
        "insufficient_scope": 403,
        "method_not_allowed": 405,
        "misdirected_request": 421,
        "rate_limited": 429,
    }
