"""`quipu forget --about` leaves no byte of a text behind, and its receipt stands in the audit."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.reliability.server_process import ROOT, serving

DIALECTS = ["paths", "brain", "scopes", "notes", "sessions", "graph", "files"]
ABOUT = "juniper lighthouse"
BYSTANDER = "Bread is baked on Tuesday."


def text_of(dialect: str) -> str:
    return f"The secret {dialect} keyword of the juniper lighthouse is heron."


class Terminal:
    """Commands on one data directory."""

    def __init__(self, data: Path) -> None:
        self.data = data

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "kernel", *arguments]
        kept = {name: value for name, value in os.environ.items() if not name.startswith("QUIPU_")}
        made = {**kept, "QUIPU_DATA": str(self.data), "QUIPU_MODEL": "none"}
        return subprocess.run(command, cwd=ROOT, env=made, capture_output=True, text=True, check=False)

    def add(self, text: str, dialect: str, name: str) -> str:
        done = self.run("add", text, "--dialect", dialect, "--name", name, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)["id"]

    def holding(self, text: str) -> list[str]:
        """The files below the data directory that hold a text."""
        return [str(file) for file in self.data.rglob("*") if file.is_file() and text.encode() in file.read_bytes()]


@pytest.mark.parametrize("beside_a_server", [False, True], ids=["alone", "beside a server"])
def test_what_is_erased_leaves_no_byte_and_a_receipt_in_the_audit(tmp_path: Path, beside_a_server: bool) -> None:
    terminal = Terminal(tmp_path / "data")
    ids = {terminal.add(text_of(dialect), dialect, f"item {dialect}"): text_of(dialect) for dialect in DIALECTS}
    edited = terminal.add("An older word about the juniper lighthouse.", "paths", "older")
    assert terminal.run("edit", edited, "--text", text_of("newer")).returncode == 0
    kept = terminal.add(BYSTANDER, "paths", "bread")
    if beside_a_server:
        with serving(tmp_path / "data", QUIPU_MODEL="none"):
            done = terminal.run("forget", "--about", ABOUT, "--yes", "--json")
    else:
        done = terminal.run("forget", "--about", ABOUT, "--yes", "--json")
    assert done.returncode == 0, done.stderr
    receipt = json.loads(done.stdout)
    digests = {entry["id"]: entry["sha256"] for entry in receipt["memories"]}
    assert {*digests} == {*ids, edited}
    assert digests[edited] == hashlib.sha256(text_of("newer").encode()).hexdigest()
    assert (receipt["left"], receipt["copies"]) == ([], [])
    for text in (*ids.values(), text_of("newer"), "An older word about"):
        assert terminal.holding(text) == [], text
    entry = json.loads(terminal.run("audit", "--limit", "1", "--json").stdout)
    assert (entry["id"], entry["at"], entry["hash"]) == (receipt["audit"], receipt["at"], receipt["hash"])
    assert {f"{space}/{key}" for space, key, _ in json.loads(entry["targets"])} == {*digests}
    assert terminal.run("check").returncode == 0
    assert terminal.run("list").stdout.count("UTC  ") == 1
    assert BYSTANDER in terminal.run("show", kept).stdout


def test_a_backup_that_holds_an_erased_text_is_named(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path / "data")
    terminal.add(text_of("paths"), "paths", "item")
    copy = tmp_path / "data" / "quipu-copy.db"
    assert terminal.run("backup", str(copy)).returncode == 0
    receipt = json.loads(terminal.run("forget", "--about", ABOUT, "--yes", "--json").stdout)
    assert receipt["copies"] == [str(copy)]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--about", ABOUT], "--about needs --yes"),
        (["--about", "nothing of that kind", "--yes"], "nothing found"),
        (["--about", " ", "--yes"], "--about: is empty"),
        ([], "the id of a memory, or --about TEXT"),
        (["paths/item", "--about", ABOUT], "and not both"),
        (["--about", ABOUT, "--url", "http://127.0.0.1:1"], "without --url"),
    ],
)
def test_an_erasure_that_is_not_meant_changes_nothing(tmp_path: Path, arguments: list[str], said: str) -> None:
    terminal = Terminal(tmp_path / "data")
    kept = terminal.add(text_of("paths"), "paths", "item")
    refused = terminal.run("forget", *arguments)
    assert (refused.returncode > 0, said in refused.stderr) == (True, True), refused.stderr
    assert text_of("paths") in terminal.run("show", kept).stdout
