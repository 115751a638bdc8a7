"""The options of every command."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from kernel.cli import agent_commands, help_text
from kernel.core import config
from kernel.core.data_dir import MAIN
from kernel.core.errors import Fault
from kernel.core.text import harmless
from kernel.security.permissions import Permission

MEMORY_COMMANDS = ("recall", "list", "show", "history", "add", "edit", "forget", "stats")
KEPT = config.Config._field_defaults["backup_keep"]
_SHELLS = ("bash", "zsh", "fish")
_PLACE = "postgresql://user@host/database"
_MAX_PORT = 65535


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        """End with status 2."""
        self.exit(2, harmless(f"{self.prog}: {message}; see `{self.prog} --help`\n"))


def parser() -> argparse.ArgumentParser:
    """Return the argument parser; options that are not given default to environment variables."""
    top = _Parser(prog="quipu", description="A memory server for AI agents.")
    top.add_argument("--version", action="version", version=f"quipu {config.VERSION}")
    commands = top.add_subparsers(dest="command", metavar="COMMAND")
    data = _Parser(add_help=False)
    data.add_argument("--data", type=Path, help="data directory (QUIPU_DATA)")
    _add_store_options(data)
    data.add_argument("--model", type=Path, help="model2vec folder, or none (QUIPU_MODEL)")
    _add_server_parsers(commands, data)
    data = _Parser(add_help=False, parents=[data])
    data.add_argument("--tenant", help=f"tenant ({MAIN})")
    stdio = commands.add_parser("stdio", parents=[data], help="serve MCP over standard input and output")
    stdio.add_argument("--dialect", action="append", default=[], help="serve only this dialect; may be repeated")
    check = commands.add_parser("check", parents=[data], help="verify the file, rows, full-text index and vectors")
    check.add_argument("--repair", action="store_true", help="rebuild the indexes that differ from the rows")
    _add_backup_parsers(commands, data)
    _add_exchange_parsers(commands, data)
    audit = commands.add_parser("audit", parents=[data], help="show the audit log and verify its hash chain")
    audit.add_argument("--limit", type=_number(1, 1_000_000), default=50, help="most calls to show, newest first (50)")
    undo = commands.add_parser("undo", parents=[data], help="undo the changes of one call")
    undo.add_argument("id", type=_number(1, 2**63 - 1), help="id of the call, from `quipu audit`")
    _add_store_parser(commands.add_parser("store", help="copy a store, or name databases for tenants"))
    _add_tenant_parser(commands.add_parser("tenant", help="list tenants, or move one to another database"))
    _add_memory_parsers(commands, data)
    _add_key_parsers(commands.add_parser("key", help="create, list, revoke and delete API keys"))
    _add_maintenance_parsers(commands, data)
    for name, command in help_text.subcommands(top):
        if name not in {"serve", "service", "stdio", "key", "ui", "completion", "replica"}:
            command.add_argument("--json", action="store_true", help="print JSON, one object a line")
    help_text.add_texts(top)
    return top


def _add_server_parsers(commands: Any, data: argparse.ArgumentParser) -> None:
    serve = commands.add_parser("serve", parents=[data], help="serve MCP and JSON over HTTP")
    serve.add_argument("--open", action="store_true", default=None, help="accept requests without a key (QUIPU_OPEN=1)")
    serve.add_argument(
        "--workers", type=_workers, metavar="N", help="processes that serve the store (QUIPU_WORKERS, 1)"
    )
    _add_backup_options(serve)
    service = commands.add_parser("service", parents=[data], help="run the server in the background")
    service.add_argument("action", choices=("install", "start", "stop", "status", "remove"), help="what to do")
    for command in (serve, service):
        command.add_argument("--host", type=_host, help="address to listen on (HOST, 127.0.0.1)")
        command.add_argument("--port", type=_port, help=f"port to listen on (PORT, {config.DEFAULT_PORT})")


def _number(low: int, high: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        # int() refuses texts of thousands of digits in words of its own.
        number = int(text) if text.isascii() and text.isdigit() and len(text) <= len(str(high)) else low - 1
        if not low <= number <= high:
            raise argparse.ArgumentTypeError(f"{text[:40]} is not a number from {low} to {high}")
        return number

    return parse


def _port(given: str) -> int:
    if not given.isascii() or not given.isdigit() or int(given) > _MAX_PORT:
        raise argparse.ArgumentTypeError(f"{given} is not a port: a number from 0 to {_MAX_PORT}")
    return int(given)


def _host(given: str) -> str:
    try:
        return config.host_name(given)
    except Fault:
        raise argparse.ArgumentTypeError(f"{given} is no name and no address of a host") from None


def _workers(given: str) -> int:
    try:
        return config.from_mapping({"QUIPU_WORKERS": given}).workers
    except Fault:
        raise argparse.ArgumentTypeError(f"{given} is not a number from 1 to {config.MOST_WORKERS}") from None


def _add_maintenance_parsers(commands: Any, data: argparse.ArgumentParser) -> None:
    commands.add_parser("reindex", parents=[data], help="rebuild the full-text index and the vectors from the rows")
    compact = commands.add_parser("compact", parents=[data], help="shrink the database file after deletions")
    compact.add_argument(
        "--forget", metavar="TIME", help="also drop the history of rows deleted before this time (ISO 8601)"
    )
    compact.add_argument(
        "--forget-undo",
        action="store_true",
        help="also delete what is kept for `quipu undo`; tells what is lost, and asks",
    )
    compact.add_argument("--yes", action="store_true", help="do not ask")
    compact.add_argument(
        "--full", action="store_true", help="rewrite the file beside servers too: their writes wait meanwhile"
    )
    tools = commands.add_parser("tools", help="list the tools of every dialect")
    tools.add_argument("--tokens", action="store_true", help="tokens that each tool list takes in a model's context")
    quarantine = commands.add_parser(
        "quarantine", parents=[data], help="list memories quarantined as suspected prompt injection"
    )
    quarantine.add_argument("--release", metavar="ID", help="release this memory until its text changes")
    agent_commands.add_parsers(commands, data)
    _add_setup_options(commands.add_parser("setup", parents=[data], help="configure an MCP client for this server"))
    doctor = commands.add_parser("doctor", parents=[data], help="diagnose the installation and suggest remedies")
    health = commands.add_parser("health", help="check the health of a running server")
    ui = commands.add_parser("ui", help="open the console of a running server in the browser")
    ui.add_argument("--key", default="", help="API key; - reads it from standard input (that of a client's entry)")
    for command in (doctor, health, ui):
        command.add_argument("--host", type=_host, help="address of the server (HOST, 127.0.0.1)")
        command.add_argument("--port", type=_port, help=f"port of the server (PORT, {config.DEFAULT_PORT})")


def _add_setup_options(setup: argparse.ArgumentParser) -> None:
    setup.add_argument("--client", metavar="NAME", help="client to configure; lists the supported ones if left out")
    setup.add_argument("--all", action="store_true", help="configure every supported client of this machine")
    setup.add_argument("--remove", action="store_true", help="remove the entry instead of writing it")
    setup.add_argument("--stdio", action="store_true", help="let the client start the server")
    setup.add_argument("--url", help="URL of the server (http://127.0.0.1:PORT/mcp)")
    setup.add_argument(
        "--dialect",
        action="append",
        default=[],
        help="dialect to use, or all; may be repeated (paths and common)",
    )
    setup.add_argument("--key", default="", help="API key; - reads it from standard input")
    setup.add_argument("--name", default="quipu", help="name of the server entry in the client (quipu)")
    setup.add_argument(
        "--replace",
        choices=["server-memory"],
        help="write it in place of the entry that starts this server, under the name of that entry",
    )
    setup.add_argument(
        "--hooks", choices=("none", "prime", "recall"), help="what sessions get without asking: see `quipu hook status`"
    )
    setup.add_argument("--print", dest="shown", action="store_true", help="print the entry instead of writing it")
    setup.add_argument("--link", action="store_true", help="print a link that installs the entry in the client")


def _add_backup_parsers(commands: Any, data: argparse.ArgumentParser) -> None:
    backup = commands.add_parser("backup", parents=[data], help="copy the database, or everything, while it is in use")
    backup.add_argument("target", type=Path, nargs="?", help="file to write (quipu-TIME.db in the data directory)")
    backup.add_argument("--all", type=Path, metavar="DIR", help="copy all tenants, files of notes, keys and settings")
    backup.add_argument("--to", type=Path, metavar="DIR", help="the same into a dated folder below this one")
    backup.add_argument("--keep", type=_count, metavar="N", default=KEPT, help=f"with --to: newest to keep ({KEPT})")
    backup.add_argument("--every", type=_duration, metavar="TIME", help="with --to: go on so, such as 1h")
    replica = commands.add_parser("replica", parents=[data], help="keep a copy that follows, for serve --follow")
    replica.add_argument("target", type=Path, help="folder of the copy; an empty one at first")
    restore = commands.add_parser("restore", parents=[data], help="put a backup in place; the server must be stopped")
    restore.add_argument("source", type=Path, help="file of `backup FILE`, or folder of `backup --all DIR`")


def _add_backup_options(serve: argparse.ArgumentParser) -> None:
    serve.add_argument(
        "--backup-to", type=Path, metavar="DIR", help="copy everything into dated folders there (QUIPU_BACKUP_TO)"
    )
    serve.add_argument(
        "--follow",
        action="store_true",
        default=None,
        help="serve a copy of `quipu replica`, read-only (QUIPU_FOLLOW=1)",
    )
    serve.add_argument("--backup-every", type=_duration, metavar="TIME", help="how often (QUIPU_BACKUP_EVERY, 1h)")
    serve.add_argument("--backup-keep", type=_count, metavar="N", help="newest to keep (QUIPU_BACKUP_KEEP, 24)")


def _duration(given: str) -> int:
    try:
        return config.duration(given, given)
    except Fault as fault:
        raise argparse.ArgumentTypeError(fault.message.replace("is a", "is no")) from None


def _count(given: str) -> int:
    try:
        return config.from_mapping({"QUIPU_BACKUP_KEEP": given}).backup_keep
    except Fault:
        raise argparse.ArgumentTypeError(f"{given} is not a number from 1 to 100000") from None


def _add_exchange_parsers(commands: Any, data: argparse.ArgumentParser) -> None:
    import_ = commands.add_parser("import", parents=[data], help="import the memories of another program")
    import_.add_argument("kind", nargs="?", help="format of the data, unless it says so; an unknown name lists all")
    import_.add_argument("path", type=Path, help="file or folder to read; it is not modified")
    import_.add_argument(
        "--into", metavar="NAME", default="", help="database of brain, project of scopes or session to put memories in"
    )
    import_.add_argument("--dry-run", action="store_true", help="count what would be imported, and write nothing")
    import_.add_argument(
        "--password-env", metavar="NAME", help="environment variable with the password of encrypted files"
    )
    export = commands.add_parser("export", parents=[data], help="write everything, or a dialect, into a file or folder")
    export.add_argument("kind", help="what to export; an unknown name lists what there is")
    export.add_argument("path", type=Path, help="file or folder to write, which must not be there")


def _add_memory_parsers(commands: Any, data: argparse.ArgumentParser) -> None:
    asked = argparse.ArgumentParser(add_help=False, parents=[data])
    asked.add_argument("--url", help="ask this server instead, such as https://memory.example")
    asked.add_argument("--key", default="", help="API key for --url; - reads it from standard input")

    def command(name: str, about: str) -> argparse.ArgumentParser:
        made: argparse.ArgumentParser = commands.add_parser(name, parents=[asked], help=about)
        return made

    _add_reading(command)
    _add_writing(command)
    completion = commands.add_parser("completion", help="print the completion of a shell")
    completion.add_argument("shell", choices=_SHELLS, help="the shell")


def _add_reading(command: Callable[[str, str], argparse.ArgumentParser]) -> None:
    recall = command("recall", "find memories of every dialect")
    recall.add_argument("query", nargs="+", help="what to look for, in plain words")
    recall.add_argument("--limit", type=int, default=10, help="most memories to show (10)")
    recall.add_argument("--as-of", metavar="TIME", help="memories as they stood at this time (ISO 8601)")
    listed = command("list", "list the newest memories")
    listed.add_argument("--limit", type=int, default=50, help="most memories to list (50)")
    for one in (recall, listed):
        one.add_argument("--since", metavar="TIME", help="only what has changed since: 7d, 12h, 30m or ISO 8601")
        one.add_argument("--dialect", action="append", default=[], help="only this dialect; may be repeated")
        one.add_argument("--actor", help="only what this actor has written")
    for name, about in (("show", "show one memory"), ("history", "show what happened to one memory")):
        command(name, about).add_argument("id", metavar="ID", help="id of the memory, as recall and list show it")
    command("stats", "count the memories")


def _add_writing(command: Callable[[str, str], argparse.ArgumentParser]) -> None:
    add = command("add", "add a memory")
    add.add_argument("text", nargs="?", help="its text; - or nothing reads standard input, or opens $EDITOR")
    add.add_argument("--dialect", default="", help="dialect that keeps it (paths)")
    add.add_argument("--name", default="", help="path or title, where the dialect has one (made from the first line)")
    edit = command("edit", "change the text of a memory in $EDITOR")
    edit.add_argument("id", metavar="ID", help="id of the memory")
    edit.add_argument("--text", help="the new text, instead of $EDITOR; - reads standard input")
    forget = command("forget", "delete a memory")
    forget.add_argument("id", metavar="ID", help="id of the memory")
    forget.add_argument("--observation", metavar="TEXT", default="", help="only this observation of an entity")
    forget.add_argument("--immutable", action="store_true", help="even if it is immutable, which takes an admin")


def _add_key_parsers(key: argparse.ArgumentParser) -> None:
    actions = key.add_subparsers(dest="key", required=True)
    data = argparse.ArgumentParser(add_help=False)
    data.add_argument("--data", type=Path, help="data directory (QUIPU_DATA)")
    _add_store_options(data)
    create = actions.add_parser("create", parents=[data], help="create a key and print its secret once")
    create.add_argument("--tenant", default=MAIN, help=f"tenant of the key ({MAIN})")
    create.add_argument(
        "--scope", choices=[permission.name for permission in Permission], required=True, help="permission"
    )
    create.add_argument("--dialect", action="append", default=[], help="allow only this dialect; may be repeated")
    create.add_argument("--expires", metavar="WHEN", help="90d, 12h, 30m or an ISO 8601 time (never)")
    create.add_argument("--name", default="", help="label in `quipu key list`")
    actions.add_parser("list", parents=[data], help="list all keys, without secrets")
    revoke = actions.add_parser("revoke", parents=[data], help="revoke a key; takes effect within a second")
    revoke.add_argument("id", help="id of the key, from `quipu key list`")
    delete = actions.add_parser("delete", parents=[data], help="delete a key, so that it is no longer listed")
    delete.add_argument("id", help="id of the key, from `quipu key list`")
    actions.add_parser("reset", parents=[data], help="delete every key; a server on this machine then asks for none")


def _add_store_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--store", type=_address, metavar="ADDRESS", help=f"{_PLACE} in place of a file (QUIPU_STORE)")
    parser.add_argument("--read-store", type=_address, metavar="ADDRESS", help="a replica for reads (QUIPU_READ_STORE)")


def _add_store_parser(store: argparse.ArgumentParser) -> None:
    actions = store.add_subparsers(dest="action", required=True)
    copy = actions.add_parser("copy", help="copy a tenant into an empty one")
    copy.add_argument("source", help=f"data directory, or {_PLACE}")
    copy.add_argument("target", help="the same; it has no memories yet")
    copy.add_argument("--tenant", help=f"tenant ({MAIN})")
    home = _home()
    actions.add_parser("list", parents=[home], help="list the databases that tenants are on")
    add = actions.add_parser("add", parents=[home], help="let new tenants go to a database")
    remove = actions.add_parser("remove", parents=[home], help="let no new tenants go to a database")
    for one in (add, remove):
        one.add_argument("address", help=f"{_PLACE}, or home")


def _add_tenant_parser(tenant: argparse.ArgumentParser) -> None:
    actions = tenant.add_subparsers(dest="action", required=True)
    home = _home()
    actions.add_parser("list", parents=[home], help="list the tenants with their databases")
    move = actions.add_parser("move", parents=[home], help="move a tenant to another database")
    move.add_argument("name", help="the tenant")
    move.add_argument("--to", required=True, metavar="ADDRESS", help=f"{_PLACE}, or home")


def _home() -> argparse.ArgumentParser:
    home = argparse.ArgumentParser(add_help=False)
    home.add_argument("--store", type=_address, metavar="ADDRESS", help="the database with the directory (QUIPU_STORE)")
    return home


def _address(given: str) -> str:
    try:
        return config.from_mapping({"QUIPU_STORE": given}).store
    except Fault as fault:
        raise argparse.ArgumentTypeError(fault.message) from None
