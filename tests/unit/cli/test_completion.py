"""The completions that shells run."""

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from kernel.cli.completion import script

needs_bash, needs_zsh, needs_fish = (
    pytest.mark.skipif(shutil.which(shell) is None, reason=f"there is no {shell} here")
    for shell in ("bash", "zsh", "fish")
)


TYPED = pytest.mark.parametrize(
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


@needs_bash
@TYPED
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


@needs_zsh
@TYPED
def test_zsh_completes_commands_and_options(typed: str, words: list[str]) -> None:
    # As its bashcompinit calls a function of bash.
    ask = f"""autoload -U compinit && compinit -u -D
{script("zsh")}
ask() {{
emulate -L sh; setopt kshglob noshglob braceexpand
COMP_WORDS=({typed}{" ''" if typed.endswith(" ") else ""}); COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 )); _quipu
echo "${{COMPREPLY[@]}}"
}}
ask"""
    shown = subprocess.run(["zsh", "-f", "-c", ask], capture_output=True, text=True, check=True)
    fitting = [word for word in shown.stdout.split() if word.startswith(typed.rpartition(" ")[2])]  # as zsh itself asks
    assert (fitting, shown.stderr) == (words, "")


@needs_fish
@TYPED
def test_fish_completes_commands_and_options(typed: str, words: list[str]) -> None:
    ask = f"{script('fish')}\ncomplete -C {shlex.quote(typed)}"
    shown = subprocess.run(["fish", "--no-config", "-c", ask], capture_output=True, text=True, check=True).stdout
    assert {line.split("\t")[0] for line in shown.splitlines()} == {word for word in words if word != "--help"}


def test_zsh_loads_the_completion_of_bash() -> None:
    assert script("zsh").startswith("#compdef quipu\nautoload -U +X bashcompinit && bashcompinit\n_quipu() {")
