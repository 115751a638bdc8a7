"""The completion of commands and options in a shell, made from the parser."""

import argparse
from collections.abc import Iterator, Mapping

from kernel.cli import help_text

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


def script(shell: str, top: argparse.ArgumentParser) -> str:
    """Return the script that the shell runs as its completion of `quipu`."""
    known = dict(help_text.subcommands(top))
    if shell == "fish":
        return "\n".join(_fish(known, top))
    cases = [
        f'        " {name} "*) words="{" ".join(_words(command))}" ;;'
        for name, command in sorted(known.items(), key=lambda pair: -len(pair[0]))
    ]
    bash = _BASH.format(cases="\n".join(cases), top=" ".join(_words(top)))
    return bash if shell == "bash" else _ZSH.format(bash=bash)


def _words(command: argparse.ArgumentParser) -> list[str]:
    """Return the options of a command, and the words that may stand there: commands below it, or choices."""
    found = list[str]()
    for action in help_text.actions_of(command):
        found += action.option_strings[-1:] or (map(str, action.choices) if action.choices else ())
    return found


def _fish(known: Mapping[str, argparse.ArgumentParser], top: argparse.ArgumentParser) -> Iterator[str]:
    yield "complete -c quipu -f"
    for name, about in help_text.briefs(top).items():
        yield f"complete -c quipu -n __fish_use_subcommand -a {name} -d {_quoted(about)}"
    for name, command in known.items():
        seen = " ".join(f"; and __fish_seen_subcommand_from {word}" for word in name.split())
        condition = _quoted(seen.removeprefix("; and "))
        for action in help_text.actions_of(command):
            for option in action.option_strings[-1:]:
                takes = "" if action.nargs == 0 else " -r"
                flag = f"-l {option[2:]}" if option.startswith("--") else f"-s {option[1:]}"
                yield f"complete -c quipu -n {condition} {flag}{takes} -d {_quoted(action.help or '')}"
            if not action.option_strings and action.choices:
                yield f"complete -c quipu -n {condition} -a {_quoted(' '.join(map(str, action.choices)))}"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
