"""The completions that shells run."""

import shutil
import subprocess
from pathlib import Path

import pytest

from kernel.cli.completion import script

needs_bash = pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")


@needs_bash
@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("quipu rec", ["recall"]),
        ("quipu key ", ["--help", "create", "list", "revoke", "delete", "reset"]),
        ("quipu key create --sc", ["--scope"]),
        ("quipu completion ", ["--help", "bash", "zsh", "fish"]),
        ("quipu recall --da", ["--data"]),
        ("quipu setup --client cu", ["cursor"]),
        ("quipu add x --dialect pa", ["paths"]),
        ("quipu key create --scope ad", ["admin"]),
        ("quipu import obs", ["obsidian"]),
        ("quipu export ok", ["okf"]),
    ],
)
def test_bash_completes_commands_and_options(typed: str, words: list[str]) -> None:
    ask = f"""{script("bash")}
COMP_WORDS=({typed}{" ''" if typed.endswith(" ") else ""}); COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 )); _quipu
echo "${{COMPREPLY[@]}}" """
    shown = subprocess.run(["bash", "-c", ask], capture_output=True, text=True, check=True).stdout
    assert shown.split() == words


@needs_bash
def test_bash_completes_ids_from_the_server(tmp_path: Path) -> None:
    listed = "2026-11-26 08:00 CET  paths/car/garage  text\n2026-11-26 08:00 CET  brain:core/mem_1  a  text"
    (tmp_path / "quipu").write_text(f"#!/bin/sh\necho '{listed}'\n")
    (tmp_path / "quipu").chmod(0o755)
    ask = f"""PATH={tmp_path}:$PATH
{script("bash")}
COMP_WORDS=(quipu forget $1); COMP_CWORD=2; _quipu; echo "${{COMPREPLY[@]}}" """
    for typed, words in (("pa", ["paths/car/garage"]), ("mem", ["mem_1"])):
        shown = subprocess.run(["bash", "-c", ask, "-", typed], capture_output=True, text=True, check=True).stdout
        assert shown.split() == words


@needs_bash
def test_bash_runs_nothing_of_an_id_and_completes_to_nothing_that_it_would_run(tmp_path: Path) -> None:
    signs = (
        "$(touch${{IFS}}{0})",
        "`touch${{IFS}}{0}`",
        "x;touch${{IFS}}{0}",
        "\\$(touch\t{0})",
        "'$(touch\t{0})'",
        "*",
        "~",
        "!1",
    )
    names = [sign.format(tmp_path / f"run{number}") for number, sign in enumerate(signs)]
    rows = [
        f"2026-11-26 08:00 CET  {name}  text" for stem in names for name in (f"graph/{stem}", f"notes:default/{stem}")
    ]
    (tmp_path / "rows").write_text(
        "\n".join([*rows, "2026-11-26 08:00 CET  graph/größe=1,+@%  text\n"]), encoding="utf-8"
    )
    (tmp_path / "quipu").write_text(f"#!/bin/sh\ncat {tmp_path}/rows\n")
    (tmp_path / "quipu").chmod(0o755)
    ask = f"""PATH={tmp_path}:$PATH
{script("bash")}
COMP_WORDS=(quipu show ''); COMP_CWORD=2; _quipu; printf '%s\\n' "${{COMPREPLY[@]}}" """
    shown = subprocess.run(["bash", "-c", ask], capture_output=True, check=True, cwd=tmp_path).stdout.decode()
    assert [word for word in shown.split() if not word.startswith("--")] == ["graph/größe=1,+@%"]
    assert {file.name for file in tmp_path.iterdir()} == {"rows", "quipu"}


def test_fish_has_a_line_for_every_command_and_option() -> None:
    lines = script("fish").splitlines()
    assert "complete -c quipu -n __fish_use_subcommand -a recall -d 'find memories of every dialect'" in lines
    assert any(
        line.startswith("complete -c quipu -n '__fish_seen_subcommand_from recall' -l limit -r") for line in lines
    )
    assert all(line.count("'") % 2 == 0 or "\\'" in line for line in lines)


def test_zsh_loads_the_completion_of_bash() -> None:
    assert script("zsh").startswith("#compdef quipu\nautoload -U +X bashcompinit && bashcompinit\n_quipu() {")
