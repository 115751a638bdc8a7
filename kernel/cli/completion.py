"""The completion of commands and options in a shell, made from the parser."""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kernel.cli.commands import parsers
from kernel.cli.help_text import TEXTS
from kernel.cli.output import show
from kernel.core.config import Config

_BASH = """_quipu() {{
    local given=" ${{COMP_WORDS[*]:1:COMP_CWORD-1}} " words
    case "$given" in
{cases}
        *) words="{top}" ;;
    esac
    COMPREPLY=($(compgen -W "$words" -- "${{COMP_WORDS[COMP_CWORD]}}"))
    [[ ${{#COMPREPLY[@]}} -gt 0 ]] || compopt -o default 2>/dev/null
}}
complete -F _quipu quipu"""
_ZSH = """#compdef quipu
autoload -U +X bashcompinit && bashcompinit
{bash}"""


def run(arguments: argparse.Namespace, _config: Config) -> int:
    """Print the completion of a shell."""
    show(None, script(arguments.shell), as_json=False)
    return 0


def script(shell: str) -> str:
    """Return the script that the shell runs as its completion of `quipu`."""
    commands = parsers()
    top = commands.pop("")
    if shell == "fish":
        return "\n".join(_fish(commands))
    cases = [
        f'        " {name} "*) words="{" ".join(_words(command))}" ;;'
        for name, command in sorted(commands.items(), key=lambda pair: -len(pair[0]))
    ]
    bash = _BASH.format(cases="\n".join(cases), top=" ".join(_words(top)))
    return bash if shell == "bash" else _ZSH.format(bash=bash)


def _words(command: argparse.ArgumentParser) -> list[str]:
    """Return the options of a command, and its arguments with choices, such as the commands below it."""
    words = list[str]()
    for action in _actions(command):
        words += action.option_strings[-1:] or (map(str, action.choices) if action.choices else ())
    return words


def _actions(command: Any) -> Sequence[argparse.Action]:
    """Return the options and arguments of a parser; argparse has no public way to them."""
    return command._actions


def _fish(commands: Mapping[str, argparse.ArgumentParser]) -> Iterator[str]:
    yield "complete -c quipu -f"
    for name, about in TEXTS.items():
        if " " not in name:
            yield f"complete -c quipu -n __fish_use_subcommand -a {name} -d {_quoted(about.brief)}"
    for name, command in commands.items():
        words = " ".join(f"; and __fish_seen_subcommand_from {word}" for word in name.split())
        condition = _quoted(words.removeprefix("; and "))
        for action in _actions(command):
            for option in action.option_strings[-1:]:
                takes = "" if action.nargs == 0 else " -r"
                flag = f"-l {option[2:]}" if option.startswith("--") else f"-s {option[1:]}"
                yield f"complete -c quipu -n {condition} {flag}{takes} -d {_quoted(action.help or '')}"
            if not action.option_strings and action.choices:
                yield f"complete -c quipu -n {condition} -a {_quoted(' '.join(map(str, action.choices)))}"


def _quoted(text: str) -> str:
    inner = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{inner}'"
