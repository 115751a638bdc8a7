"""The table of commands: for each the function that runs it, and its options."""

import argparse
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, NamedTuple, NoReturn

from kernel.cli import hook_client
from kernel.cli.help_text import ENVIRONMENT, GROUPS, TEXTS, TOP_EXAMPLES
from kernel.core import config
from kernel.core.config import Config
from kernel.core.data_dir import MAIN
from kernel.core.errors import Fault
from kernel.core.text import did_you_mean, harmless
from kernel.security.permissions import Permission

BACKUP_KEEP = config.Config._field_defaults["backup_keep"]
_ADDRESS = "postgresql://user@host/database"
_INDENT = "  "
_SHOWN_CHARS = 40  # of a word that is refused
_LISTED_CHOICES = 12
_WITHOUT_JSON = {"serve", "service", "stdio", "ui", "completion", "replica"}

Opens = Literal["", "data", "files", "keys", "store", "new store"]
Option = tuple[tuple[str, ...], Mapping[str, Any]]  # the arguments of ArgumentParser.add_argument


class Command(NamedTuple):
    """One command: `run` names a function of this package as `module:function`, which is imported when it runs, since
    `health` runs every few seconds in a container.

    The function gets the arguments and the configuration. `opens` names the data that are opened around it: a `data`
    directory that is no replica, the same without a PostgreSQL database (`files`), the `keys`, or a `store`, of which
    the function gets the context and whether no other process has it open; a `new store` is made if it is absent.
    """

    run: str
    options: Sequence[Option] = ()
    opens: Opens = ""


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, and propose the nearest word for a misspelt one.

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
        as_json = [] if self.prog.removeprefix("quipu ") in _WITHOUT_JSON or not command.run else [_JSON]
        for names, settings in [*(option for option in command.options if option not in _PLACES), *as_json]:
            self.add_argument(*names, **settings)
        places = self.add_argument_group("where the memories are")
        for names, settings in (option for option in command.options if option in _PLACES):
            places.add_argument(*names, **settings)

    def error(self, message: str) -> NoReturn:
        see = " See" if message.endswith("?") else "; see"
        self.exit(2, harmless(f"{self.prog}: {message}{see} `{self.prog} --help`\n"))

    def parse_known_args(  # pyright: ignore[reportIncompatibleMethodOverride]  # typeshed has overloads
        self, args: Any = None, namespace: Any = None
    ) -> Any:
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
    """Prints the formats of an import, and ends."""

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
        return spelled_out([*words[begin:], *words[:begin]]) if begin else words
    if words[:1] == ["help"]:
        return [*spelled_out(words[1:]), "--help"]
    return [ALIASES.get(word, word) for word in words[:1]] + words[1:]


def _option(name: str, about: str, metavar: str | None = None, **settings: Any) -> Option:
    return (name,), {"help": about, "metavar": metavar, **settings}


def _flag(name: str, about: str, **settings: Any) -> Option:
    return (name,), {"action": "store_true", "help": about, **settings}


def _path(name: str, about: str, metavar: str | None = None, **settings: Any) -> Option:
    return _option(name, about, metavar, type=Path, **settings)


def _names(name: str, about: str, metavar: str | None = None) -> Option:
    return _option(name, f"{about}; may be repeated", metavar, action="append", default=[])


def _number(low: int, high: int, kind: str = "a number") -> Callable[[str], int]:
    def parse(text: str) -> int:
        # int() refuses texts of thousands of digits in words of its own.
        number = int(text) if text.isascii() and text.isdigit() and len(text) <= len(str(high)) else low - 1
        if not low <= number <= high:
            raise argparse.ArgumentTypeError(f"{text[:_SHOWN_CHARS]} is not {kind} from {low} to {high}")
        return number

    return parse


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


def _listening(of: str) -> tuple[Option, Option]:
    port = _number(0, 65535, "a port: a number")
    return (
        _option("--host", f"address {of} (HOST, 127.0.0.1)", type=_host),
        _option("--port", f"port {of} (PORT, {config.DEFAULT_PORT})", type=port),
    )


_JSON = _flag("--json", "print JSON, one object a line")
_STORE = (
    _path("--data", "data directory (QUIPU_DATA)"),
    _option("--store", f"{_ADDRESS} in place of a file (QUIPU_STORE)", "ADDRESS", type=_address),
    _option("--read-store", "a replica for reads (QUIPU_READ_STORE)", "ADDRESS", type=_address),
)
_MODEL = (*_STORE, _path("--model", "model2vec folder, or none (QUIPU_MODEL)"))
_TENANT = _option("--tenant", f"tenant ({MAIN})")
_DATA = (*_MODEL, _TENANT)
_DIRECTORY = _option("--store", "the database with the directory (QUIPU_STORE)", "ADDRESS", type=_address)
_SERVER = _option("address", f"{_ADDRESS}, or home")
_KEY_ID = _option("id", "id of the key, from `quipu key list`")
_KEEP = _number(1, 100_000)
_MEMORY = (
    *_DATA,
    _option("--url", "ask this server instead, such as https://memory.example"),
    _option("--key", "API key for --url; - reads it from standard input", default=""),
)
_PLACES = (*_MEMORY, _DIRECTORY)  # the last in the help of a command
_ID = _option("id", "id of the memory, as recall and list show it, or its beginning", "ID")
_FILTERS = (
    _option("--since", "only changes since this time: yesterday, 7d, 2026-01-31", "TIME"),
    _names("--dialect", "only this dialect"),
    _option("--actor", "only memories of this actor"),
)

ALIASES: Mapping[str, str] = {
    "search": "recall",
    "find": "recall",
    "get": "show",
    "delete": "forget",
    "rm": "forget",
    "ls": "list",
    "version": "--version",
}
COMMANDS: Mapping[str, Command] = {
    "recall": Command(
        "memory_commands:run",
        (
            *_MEMORY,
            _option("query", "the question, in plain words", nargs="+"),
            _option("--limit", "most memories to show (10)", type=_number(1, 100), default=10),
            _option("--as-of", "memories as they stood at this time", "TIME"),
            *_FILTERS,
        ),
    ),
    "list": Command(
        "memory_commands:run",
        (*_MEMORY, _option("--limit", "most memories to list (50)", type=_number(1, 10_000), default=50), *_FILTERS),
    ),
    "show": Command("memory_commands:run", (*_MEMORY, _ID)),
    "history": Command("memory_commands:run", (*_MEMORY, _ID)),
    "add": Command(
        "memory_commands:run",
        (
            *_MEMORY,
            _option("text", "its text; - or nothing reads standard input, or opens $EDITOR", nargs="?"),
            _option("--dialect", "dialect that keeps it (paths)", default=""),
            _option("--name", "path or title, if the dialect has one (made from the first line)", default=""),
            _option("--until", "when it stops being true, in brain and scopes: 2026-01-31", "TIME", default=""),
        ),
    ),
    "edit": Command(
        "memory_commands:run",
        (
            *_MEMORY,
            _ID,
            _option("--text", "the new text, instead of $EDITOR; - reads standard input"),
            _option("--until", "when it stops being true, in brain and scopes: 2026-01-31, '' for never", "TIME"),
        ),
    ),
    "forget": Command(
        "memory_commands:run",
        (
            *_MEMORY,
            _option("id", "id of the memory, as recall and list show it, or its beginning", "ID", nargs="?"),
            _option("--about", "erase all memories about this for good, and print a receipt", "TEXT"),
            _flag("--yes", "with --about: do not ask"),
            _option("--observation", "only this observation of an entity", "TEXT", default=""),
            _flag("--immutable", "even if it is immutable, which takes an admin"),
        ),
    ),
    "stats": Command("memory_commands:run", (*_MEMORY,)),
    "setup": Command(
        "setup:run",
        (
            *_DATA,
            _option("--client", "client to configure; without it the supported ones are listed", "NAME"),
            _flag("--all", "configure every supported client of this machine"),
            _flag("--remove", "remove the entry instead of writing it"),
            _flag("--stdio", "let the client start the server"),
            _option("--url", "URL of the server (http://127.0.0.1:PORT/mcp)"),
            _names("--dialect", "dialect to use, or all (paths and common)"),
            _option("--key", "API key; - reads it from standard input", default=""),
            _option("--name", "name of the server entry in the client (quipu)", default="quipu"),
            _option(
                "--replace", "replace the entry that starts this server, under its name", choices=["server-memory"]
            ),
            _option("--hooks", "memories without asking: see `quipu hook status`", choices=("none", "prime", "recall")),
            _flag("--print", "print the entry instead of writing it", dest="shown"),
            _flag("--link", "print a link that installs the entry in the client"),
        ),
    ),
    "hook": Command(
        "agent_commands:hook",
        (
            _option("event", "event of a client, or command", choices=(*hook_client.EVENTS, "status", "remove")),
            _option("--client", "client of the event, or the only one to show or change", "NAME"),
            _option("--url", f"address of the server (QUIPU_URL, {hook_client.DEFAULT_URL})"),
            _path("--data", "data directory of the server (QUIPU_DATA)", "DIR"),
            _path("--key-file", "file with the API key (QUIPU_KEY is the key)", "FILE"),
            _flag("--debug", "print errors of an event on standard error"),
        ),
    ),
    "serve": Command(
        "main:serve",
        (
            *_MODEL,
            _flag("--open", "accept requests without a key (QUIPU_OPEN=1)", default=None),
            _option(
                "--workers",
                "processes that serve the store (QUIPU_WORKERS, 1)",
                "N",
                type=_number(1, config.MOST_WORKERS),
            ),
            _path("--backup-to", "copy everything into dated folders there (QUIPU_BACKUP_TO)", "DIR"),
            _flag("--follow", "serve a copy of `quipu replica`, read-only (QUIPU_FOLLOW=1)", default=None),
            _option("--backup-every", "how often (QUIPU_BACKUP_EVERY, 1h)", "TIME", type=_duration),
            _option("--backup-keep", "newest to keep (QUIPU_BACKUP_KEEP, 24)", "N", type=_KEEP),
            *_listening("to listen on"),
        ),
    ),
    "expose": Command(
        "expose_command:run",
        (
            *_STORE,
            _option(
                "--host",
                "name by which other devices reach the server; without it the state is shown",
                "NAME",
                dest="name",
            ),
            _names("--proxy", "address of a proxy whose X-Forwarded-For counts (127.0.0.1)", "ADDRESS"),
            _flag("--off", "remove the name"),
            _option(
                "--port",
                f"port of the server (PORT, {config.DEFAULT_PORT})",
                type=_number(0, 65535, "a port: a number"),
            ),
        ),
    ),
    "service": Command(
        "service:run",
        (
            *_MODEL,
            _option("action", "the action", choices=("install", "start", "stop", "status", "remove")),
            *_listening("to listen on"),
        ),
    ),
    "stdio": Command("main:stdio", (*_DATA, _names("--dialect", "serve only this dialect"))),
    "key": Command(""),
    "key create": Command(
        "key_commands:create_key",
        (
            *_STORE,
            _option("--tenant", f"tenant of the key ({MAIN})", default=MAIN),
            _option("--tenants", "file with a tenant a line, for a key each; - is standard input", "FILE"),
            _option("--scope", "permission", choices=[scope.name for scope in Permission]),
            _names("--dialect", "allow only this dialect"),
            _names("--read", "let it read this place alone, such as brain:core or paths:work", "PLACE"),
            _names("--write", "let it read and write this place alone", "PLACE"),
            _option("--expires", "90d, 12h, 30m or an ISO 8601 time (never)", "WHEN"),
            _option("--name", "label in `quipu key list`", default=""),
        ),
        "keys",
    ),
    "key list": Command("key_commands:list_keys", (*_STORE,), "keys"),
    "key revoke": Command("key_commands:revoke_key", (*_STORE, _KEY_ID), "keys"),
    "key delete": Command("key_commands:delete_key", (*_STORE, _KEY_ID), "keys"),
    "key reset": Command("key_commands:reset_keys", (*_STORE,), "keys"),
    "completion": Command("completion:run", (_option("shell", "the shell", choices=("bash", "zsh", "fish")),)),
    "prime": Command(
        "agent_commands:prime",
        (
            *_DATA,
            _path("--project", "folder in the project (this one)", "DIR", default=Path()),
            _option("--budget", "most tokens (800)", type=int),
            _option("--query", "a question whose answers are shown too"),
        ),
    ),
    "doctor": Command("doctor:run", (*_DATA, *_listening("of the server"))),
    "health": Command("probe:run", _listening("of the server")),
    "ui": Command(
        "ui_command:run",
        (
            _option("--key", "API key; - reads it from standard input (that of a client's entry)", default=""),
            *_listening("of the server"),
        ),
    ),
    "tools": Command("token_cost:run", (_flag("--tokens", "tokens that each tool list takes in a model's context"),)),
    "audit": Command(
        "store_commands:show_calls",
        (
            *_DATA,
            _option("--limit", "most calls, newest first (50)", type=_number(1, 1_000_000), default=50),
            _option("--session", "the memories that hooks added to this session instead", "ID"),
        ),
        "store",
    ),
    "quarantine": Command(
        "store_commands:show_quarantine",
        (*_DATA, _option("--release", "release this memory until its text changes", "ID")),
        "store",
    ),
    "backup": Command(
        "backup_commands:backup",
        (
            *_DATA,
            _path("target", "file to write (quipu-TIME.db in the data directory)", nargs="?"),
            _path("--all", "copy all tenants, files of notes, keys and settings", "DIR"),
            _path("--to", "the same into a dated folder below this one", "DIR"),
            _option("--keep", f"with --to: newest to keep ({BACKUP_KEEP})", "N", type=_KEEP, default=BACKUP_KEEP),
            _option("--every", "with --to: go on so, such as 1h", "TIME", type=_duration),
        ),
        "files",
    ),
    "restore": Command(
        "backup_commands:restore_backup",
        (*_DATA, _path("source", "file of `backup FILE`, or folder of `backup --all DIR`")),
        "files",
    ),
    "replica": Command(
        "backup_commands:keep_replica", (*_DATA, _path("target", "folder of the copy; an empty one at first"))
    ),
    "check": Command(
        "store_commands:check",
        (
            *_DATA,
            _flag("--repair", "rebuild the indexes that differ from the rows"),
            _path("--project", "instead: memories that name places of this checkout that have changed", "DIR"),
        ),
        "store",
    ),
    "reindex": Command("store_commands:reindex", (*_DATA,), "store"),
    "compact": Command(
        "store_commands:compact_store",
        (
            *_DATA,
            _option("--forget", "also drop the history of rows deleted before this time", "TIME"),
            _flag("--forget-undo", "also delete the data of `quipu undo`; tells the loss, and asks"),
            _flag("--yes", "do not ask"),
            _flag("--full", "rewrite the file beside servers too: their writes wait meanwhile"),
        ),
        "store",
    ),
    "undo": Command(
        "store_commands:undo_call",
        (*_DATA, _option("id", "id of the call, from `quipu audit`", type=_number(1, 2**63 - 1), nargs="?")),
        "store",
    ),
    "import": Command(
        "import_command:import_data",
        (
            *_DATA,
            _option("--list", "list the formats, with their names", action=_Kinds, nargs=0),
            _option("kind", "format of the data, unless it says so", nargs="?"),
            _path("path", "file or folder to read; it is not modified"),
            _option("--into", "database of brain, project of scopes or session for the memories", "NAME", default=""),
            _flag("--dry-run", "count the memories of an import, and write nothing"),
            _flag("--strict", "refuse a source of which a part is damaged; by default it is left out, and named"),
            _option("--password-env", "environment variable with the password of encrypted files", "NAME"),
        ),
        "new store",
    ),
    "export": Command(
        "export_command:export_data",
        (
            *_DATA,
            _option("kind", "format or dialect; an unknown name lists all"),
            _path("path", "file or folder to write, which must not be there"),
        ),
        "store",
    ),
    "store": Command(""),
    "store copy": Command(
        "database_commands:copy_store",
        (
            _option("source", f"data directory, or {_ADDRESS}"),
            _option("target", "the same; it has no memories yet"),
            _TENANT,
        ),
        "data",
    ),
    "store list": Command("database_commands:list_servers", (_DIRECTORY,), "data"),
    "store add": Command("database_commands:add_server", (_DIRECTORY, _SERVER), "data"),
    "store remove": Command("database_commands:remove_server", (_DIRECTORY, _SERVER), "data"),
    "tenant": Command(""),
    "tenant list": Command("tenant_commands:list_tenants", (*_STORE,), "data"),
    "tenant remove": Command(
        "tenant_commands:remove_tenant", (*_STORE, _option("name", "the tenant"), _flag("--yes", "do not ask")), "data"
    ),
    "tenant move": Command(
        "database_commands:move_tenant",
        (_DIRECTORY, _option("name", "the tenant"), _option("--to", f"{_ADDRESS}, or home", "ADDRESS", required=True)),
        "data",
    ),
}


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
        epilog=f"{_examples(TOP_EXAMPLES)}\n\n{ENVIRONMENT}",
        formatter_class=formatter,
    )
    top.add_argument("--version", action="version", version=f"quipu {config.VERSION}")
    parsers = {"": top}
    below = {"": top.add_subparsers(dest="command", metavar="COMMAND", help=argparse.SUPPRESS, prog="quipu")}
    for name, command in COMMANDS.items():
        parent, _, word = name.rpartition(" ")
        brief, sentences, examples = TEXTS[name]
        parsers[name] = parser_below = below[parent].add_parser(
            word,
            help=brief,
            description=sentences,
            epilog=_examples(examples),
            formatter_class=formatter,
            add_help=not command.run,
        )
        if not command.run:
            below[name] = parser_below.add_subparsers(dest="action", metavar="ACTION", required=True)
        parser_below.command = command
    return parsers


def _examples(lines: tuple[str, ...]) -> str:
    return "\n".join(["examples:", *(_INDENT + line for line in lines)])
