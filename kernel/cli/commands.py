"""The command line: `commands.txt` has a section for each command, with its texts, its options and what runs it."""

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from kernel.cli import hook_client
from kernel.core import config
from kernel.core.config import Config
from kernel.core.data_dir import MAIN
from kernel.core.errors import Fault
from kernel.core.text import did_you_mean, harmless
from kernel.security.permissions import Permission

BACKUP_KEEP: int = config.Config._field_defaults["backup_keep"]
ALIASES: Mapping[str, str] = {
    "search": "recall",
    "find": "recall",
    "get": "show",
    "delete": "forget",
    "rm": "forget",
    "ls": "list",
    "version": "--version",
}
_TOP_EXAMPLES = (
    "quipu setup --client cursor",
    "quipu serve",
    'quipu add "The garage opens at eight."',
    'quipu recall "when does the garage open"',
    "quipu doctor",
    "quipu COMMAND --help",
)
_ENVIRONMENT = """environment:
  QUIPU_DATA, QUIPU_MODEL, HOST and PORT stand for --data, --model, --host and --port; every other setting is a
  variable too, in docs/settings.md. NO_COLOR turns colours off."""
# The names in braces in commands.txt.
_FACTS = {
    "ADDRESS": "postgresql://user@host/database",
    "EVENTS": "|".join(hook_client.EVENTS),
    "KEEP": BACKUP_KEEP,
    "MAIN": MAIN,
    "PORT": config.DEFAULT_PORT,
    "SCOPES": "|".join(scope.name for scope in Permission),
    "WORKERS": config.MOST_WORKERS,
}
_INDENT = "  "
_SHOWN_CHARS = 40  # of a word that is refused
_LISTED_CHOICES = 12
_WITHOUT_JSON = {"serve", "service", "stdio", "ui", "completion", "replica"}
_PLACES = {"@store", "@model", "@tenant", "@data", "@memory", "@directory"}  # the last in the help of a command


class Command(NamedTuple):
    """One command: `run` names a function of this package as `module:function`, which is imported when it runs, since
    `health` runs every few seconds in a container.

    The function gets the arguments and the configuration. `opens` names the data that are opened around it: a `data`
    directory that is no replica, the same without a PostgreSQL database (`files`), the `keys`, or a `store`, of which
    the function gets the context and whether no other process has it open; a `new store` is made if it is absent.
    `brief` is for the list of commands, `options` are the lines of the options, or @NAME for those that several share.
    """

    brief: str
    sentences: str
    examples: Sequence[str]
    run: str
    opens: str
    options: Sequence[str]


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, and propose the nearest word for a misspelling.

    The options of a command are added when they are needed: those of all commands take 10 ms, half a start.
    """

    command: Command | None = None

    def complete(self) -> None:
        command, self.command = self.command, None
        if command is None:
            return
        self.set_defaults(chosen=command)
        if not self.add_help:
            self.add_argument("-h", "--help", action="help", help="show this help message and exit")
        options = [*_expanded(command.options)]
        for line in (line for line, is_place in options if not is_place):
            _add(self, line)
        if self.prog.removeprefix("quipu ") not in _WITHOUT_JSON and command.run:
            _add(self, "--json flag: print JSON, one object a line")
        places = self.add_argument_group("where the memories are")
        for line in (line for line, is_place in options if is_place):
            _add(places, line)

    def error(self, message: str) -> NoReturn:
        see = " See" if message.endswith("?") else "; see"
        self.exit(2, harmless(f"{self.prog}: {message}{see} `{self.prog} --help`\n"))

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Refuse the rest here, where the options of the command are known."""
        self.complete()
        parsed, rest = super().parse_known_args(args, namespace)
        for word in (word.partition("=")[0][:_SHOWN_CHARS] for word in rest):
            if not word.startswith("-"):
                self.error(f"unexpected argument {word}")
            options = [name.lstrip("-") for name in self._option_string_actions]
            self.error(f"unknown option {word}{did_you_mean(word.lstrip('-'), options, '--')}")
        return parsed, rest

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        names = [*map(str, action.choices)]
        hint = did_you_mean(str(value), [*names, *ALIASES] if action.dest == "command" else names)
        choices = f", choose from {', '.join(names)}" if len(names) <= _LISTED_CHOICES else ""
        label = (*action.option_strings, str(action.metavar or action.dest).lower())[0]
        raise argparse.ArgumentError(None, f"unknown {label} {str(value)[:_SHOWN_CHARS]}{hint or choices}")


class _Kinds(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from kernel.cli.import_command import print_kinds

        print_kinds()
        parser.exit()


def spelled_out(words: list[str]) -> list[str]:
    """Return the words of a command line with the name of a command for its alias, --help for `help`, and options that
    stand before the command after it.
    """
    if words and words[0].startswith("--"):
        begin = next((at for at, word in enumerate(words) if word in COMMANDS or word in ALIASES), 0)
        is_for_help = not begin and not {"-h", "--help"}.isdisjoint(words)
        return spelled_out([*words[begin:], *words[:begin]]) if begin else ["--help"] if is_for_help else words
    if words[:1] == ["help"]:
        return [*spelled_out(words[1:]), "--help"]
    return [ALIASES.get(word, word) for word in words[:1]] + words[1:]


def _number(low: int, high: int, kind: str = "a number") -> Callable[[str], int]:
    def parse(text: str) -> int:
        # int() refuses texts of thousands of digits in words of its own.
        number = int(text) if text.isascii() and text.isdigit() and len(text) <= len(str(high)) else low - 1
        if not low <= number <= high:
            raise argparse.ArgumentTypeError(f"{text[:_SHOWN_CHARS]} is not {kind} from {low} to {high}")
        return number

    return parse


def _path(text: str) -> Path:
    if not text:  # an unset variable of a shell; Path("") is the folder that the command runs in
        raise argparse.ArgumentTypeError("the path is empty")
    return Path(text)


def _host(text: str) -> str:
    try:
        return config.host_name(text)
    except Fault:
        raise argparse.ArgumentTypeError(f"{text} is no name and no address of a host") from None


def _duration(text: str) -> int:
    try:
        return config.duration(text, text)
    except Fault as fault:
        raise argparse.ArgumentTypeError(fault.message.replace("is a", "is no")) from None


def _address(text: str) -> str:
    try:
        return config.from_mapping({"QUIPU_STORE": text}).store
    except Fault as fault:
        raise argparse.ArgumentTypeError(fault.message) from None


# The words of an option that stand for arguments of `add_argument`.
_WORDS: Mapping[str, Mapping[str, Any]] = {
    "flag": {"action": "store_true"},
    "list": {"action": "append", "default": []},
    "kinds": {"action": _Kinds, "nargs": 0},
    "path": {"type": _path},
    "int": {"type": int},
    "host": {"type": _host},
    "port": {"type": _number(0, 65535, "a port: a number")},
    "address": {"type": _address},
    "duration": {"type": _duration},
    "?": {"nargs": "?"},
    "...": {"nargs": "+"},
    "*": {"nargs": "*"},
    "unset": {"default": None},
    "required": {"required": True},
}


def _add(group: Any, line: str) -> None:
    """Add the option of a line: its name, words about its value, and after a colon its help.

    Beside `_WORDS`, `1..9` bounds a number, `=x` is the default, `as:x` the name of the argument, a word in capitals
    that of the value, and `a|b` are the choices.
    """
    words, _, about = line.partition(": ")
    name, *others = words.split()
    settings: dict[str, Any] = {"help": f"{about}; may be repeated" if "list" in others else about}
    for word in others:
        low, dots, high = word.partition("..")
        if word in _WORDS:
            settings |= _WORDS[word]
        elif dots:
            settings["type"] = _number(int(low), int(high))
        elif word.startswith(("=", "as:")):
            settings["default" if word[0] == "=" else "dest"] = word.removeprefix("=").removeprefix("as:")
        elif word.isupper():
            settings["metavar"] = word
        else:
            settings["choices"] = word.split("|")
    group.add_argument(name, **settings)


def _expanded(options: Sequence[str], *, is_place: bool = False) -> Iterator[tuple[str, bool]]:
    """Yield the lines of options, and whether each says where the memories are."""
    for line in options:
        if line.startswith("@"):
            yield from _expanded(_SHARED[line], is_place=is_place or line in _PLACES)
        else:
            yield line, is_place


def _parsed(text: str) -> tuple[dict[str, dict[str, Command]], dict[str, Sequence[str]]]:
    groups: dict[str, dict[str, Command]] = {}
    shared: dict[str, Sequence[str]] = {}
    commands: dict[str, Command] = {}
    for section in text.strip().split("\n\n"):
        head, *lines = section.splitlines()
        below = [line.strip() for line in lines if line.startswith(" ")]
        options = [line for line in below if not line.startswith("$ ")]
        if head.startswith("= "):
            commands = groups[head.removeprefix("= ")] = {}
        elif head.startswith("@"):
            shared[head] = options
        else:
            name, _, brief = head.partition(": ")
            run, _, opens = next((line[2:] for line in lines if line.startswith("> ")), "").partition(", ")
            sentences = " ".join(line for line in lines if not line.startswith((" ", "> ")))
            examples = [line[2:] for line in below if line.startswith("$ ")]
            commands[name] = Command(brief, sentences, examples, run, opens, options)
    return groups, shared


_TEXT = Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").format_map(_FACTS)
GROUPS, _SHARED = _parsed(_TEXT)
COMMANDS: Mapping[str, Command] = {name: command for commands in GROUPS.values() for name, command in commands.items()}


def run(arguments: argparse.Namespace, config: Config) -> int:
    command: Command = arguments.chosen
    module, _, function = command.run.partition(":")
    work = getattr(import_module(f"kernel.cli.{module}"), function)
    if not command.opens:
        return work(arguments, config)
    from kernel.cli.store_commands import run_on_data

    return run_on_data(work, command.opens, arguments, config)


def parser() -> argparse.ArgumentParser:
    """Return the parser of every command; options that are absent default to environment variables."""
    return _parsers()[""]


def parsers() -> dict[str, argparse.ArgumentParser]:
    """Return the parser of each command by its words, with all options; "" is the whole command line."""
    every = _parsers()
    for parser in every.values():
        parser.complete()
    return dict[str, argparse.ArgumentParser](every)


def _parsers() -> dict[str, _Parser]:
    lists = (
        "\n".join(
            [f"{title}:", *(f"{_INDENT}{name:12}{summary.brief}" for name, summary in texts.items() if " " not in name)]
        )
        for title, texts in GROUPS.items()
    )
    formatter = argparse.RawDescriptionHelpFormatter
    top = _Parser(
        prog="quipu",
        usage="quipu COMMAND [OPTION ...]",
        description="\n\n".join(["A memory server for AI agents.", *lists]),
        epilog=f"{_examples(_TOP_EXAMPLES)}\n\n{_ENVIRONMENT}",
        formatter_class=formatter,
    )
    top.add_argument("--version", action="version", version=f"quipu {config.VERSION}")
    parsers = {"": top}
    below = {"": top.add_subparsers(dest="command", metavar="COMMAND", help=argparse.SUPPRESS, prog="quipu")}
    for name, command in COMMANDS.items():
        parent, _, word = name.rpartition(" ")
        parsers[name] = parser_below = below[parent].add_parser(
            word,
            help=command.brief,
            description=command.sentences,
            epilog=_examples(command.examples),
            formatter_class=formatter,
            add_help=not command.run,
        )
        if not command.run:
            below[name] = parser_below.add_subparsers(dest="action", metavar="ACTION", required=True)
        parser_below.command = command
    return parsers


def _examples(lines: Sequence[str]) -> str:
    return "\n".join(["examples:", *(_INDENT + line for line in lines)])
