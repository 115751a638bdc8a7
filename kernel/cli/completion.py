"""The completion of commands and options in a shell, made from the parser."""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kernel.cli.clients import CLIENTS
from kernel.cli.commands import COMMANDS, parsers
from kernel.cli.export_command import kinds as kinds_of_export
from kernel.cli.import_command import kinds as kinds_of_import
from kernel.cli.output import show
from kernel.core.config import Config
from kernel.server import app

_BASH = """_quipu() {{
    local before=" ${{COMP_WORDS[*]:1:$((COMP_CWORD-1))}} " choices
    case "$before" in
{values}
{cases}
        *) choices="{top}" ;;
    esac
    COMPREPLY=($(compgen -W "$choices" -- "${{COMP_WORDS[COMP_CWORD]}}"))
    [[ ${{#COMPREPLY[@]}} -gt 0 ]] || compopt -o default 2>/dev/null
}}
complete -F _quipu quipu"""
# A colon would split a word of bash: then the key alone names the memory. An id with signs of the shell is left out:
# bash runs $(...) in the words of a completion, and the finished line would too.
_IDS = r"""$(quipu list --limit 200 2>/dev/null | awk -F'  ' '{ id = $2; if (id ~ /:/) sub(/^[^\/]*\//, "", id);\
 if (id !~ /[][ \t!"#$&\047()*;<>?\\^\140{|}~]/) print id }')""".replace("\\\n", "")
_WITH_ID = ("show", "history", "edit", "forget")
_ZSH = """#compdef quipu
autoload -U +X bashcompinit && bashcompinit
{bash}"""


def run(arguments: argparse.Namespace, _config: Config) -> int:
    show(None, script(arguments.shell), as_json=False)
    return 0


def script(shell: str) -> str:
    commands = parsers()
    top = commands.pop("")
    if shell == "fish":
        return "\n".join(_fish(commands))
    by_length = sorted(commands.items(), key=lambda pair: -len(pair[0]))
    cases = [f'        " {name} "*) choices="{_words(name, command)}" ;;' for name, command in by_length]
    values = {
        option: " ".join(words)
        for name, command in commands.items()
        for action in _actions(command)
        for option in action.option_strings[-1:]
        if (words := _values(name, action))
    }
    after = [f'        *" {option} ") choices="{words}" ;;' for option, words in values.items()]
    bash = _BASH.format(values="\n".join(after), cases="\n".join(cases), top=_words("", top))
    return bash if shell == "bash" else _ZSH.format(bash=bash)


def _words(name: str, command: argparse.ArgumentParser) -> str:
    words = list[str]()
    for action in _actions(command):
        words += action.option_strings[-1:] or _values(name, action)
    return " ".join([*words, *([_IDS] if name in _WITH_ID else [])])


def _values(command: str, action: argparse.Action) -> list[str]:
    if action.choices:
        return [*map(str, action.choices)]
    if action.dest == "client":
        return [client.name for client in CLIENTS]
    if action.dest == "dialect":
        return [dialect.name for dialect in app.DIALECTS]
    if action.dest == "kind":
        return kinds_of_import() if command == "import" else kinds_of_export()
    return []


def _actions(command: Any) -> Sequence[argparse.Action]:
    """Return the options and arguments of a parser; argparse has no public way to them."""
    return command._actions


def _fish(commands: Mapping[str, argparse.ArgumentParser]) -> Iterator[str]:
    yield "complete -c quipu -f"
    for name, about in COMMANDS.items():
        if " " not in name:
            yield f"complete -c quipu -n __fish_use_subcommand -a {name} -d {_quoted(about.brief)}"
    for name, command in commands.items():
        words = " ".join(f"; and __fish_seen_subcommand_from {word}" for word in name.split())
        condition = _quoted(words.removeprefix("; and "))
        for action in _actions(command):
            for option in action.option_strings[-1:]:
                takes = "" if action.nargs == 0 else " -r"
                flag = f"-l {option[2:]}" if option.startswith("--") else f"-s {option[1:]}"
                values = " ".join(_values(name, action))
                takes += f" -a {_quoted(values)}" if values else ""
                yield f"complete -c quipu -n {condition} {flag}{takes} -d {_quoted(action.help or '')}"
            if not action.option_strings and (values := " ".join(_values(name, action))):
                yield f"complete -c quipu -n {condition} -a {_quoted(values)}"
        if name in _WITH_ID:
            yield f"complete -c quipu -n {condition} -a {_quoted(_IDS[1:])}"


def _quoted(text: str) -> str:
    inner = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{inner}'"
