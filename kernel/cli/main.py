"""The parser of the command line and its dispatch to the commands."""

import argparse
import gc
import logging
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from kernel.cli import agent_commands, backup_parsers, exchange_parsers, help_text, memory_parsers, output
from kernel.cli.environment import unknown_variables
from kernel.cli.key_parsers import add_key_parsers
from kernel.cli.store_options import add_store_options, add_store_parser, add_tenant_parser
from kernel.core import config
from kernel.core.data_dir import MAIN
from kernel.core.errors import NO_SPACE, Fault, is_disk_full
from kernel.core.text import harmless
from kernel.server import logs

if TYPE_CHECKING:
    from handlers.console.guide import Guide

_OPTIONS = (
    *("data", "host", "port", "open", "tenant", "workers", "store", "read_store"),
    *("backup_to", "backup_every", "backup_keep", "follow"),
)
_MAX_PORT = 65535
_INTERRUPTED = 130  # 128 + SIGINT, as shells report it


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
    add_store_options(data)
    data.add_argument("--model", type=Path, help="model2vec folder, or none (QUIPU_MODEL)")
    _add_server_parsers(commands, data)
    data = _Parser(add_help=False, parents=[data])
    data.add_argument("--tenant", help=f"tenant ({MAIN})")
    stdio = commands.add_parser("stdio", parents=[data], help="serve MCP over standard input and output")
    stdio.add_argument("--dialect", action="append", default=[], help="serve only this dialect; may be repeated")
    check = commands.add_parser("check", parents=[data], help="verify the file, rows, full-text index and vectors")
    check.add_argument("--repair", action="store_true", help="rebuild the indexes that differ from the rows")
    backup_parsers.add_parsers(commands, data)
    exchange_parsers.add_parsers(commands, data)
    audit = commands.add_parser("audit", parents=[data], help="show the audit log and verify its hash chain")
    audit.add_argument("--limit", type=_number(1, 1_000_000), default=50, help="most calls to show, newest first (50)")
    undo = commands.add_parser("undo", parents=[data], help="undo the changes of one call")
    undo.add_argument("id", type=_number(1, 2**63 - 1), help="id of the call, from `quipu audit`")
    add_store_parser(commands.add_parser("store", help="copy a store, or name databases for tenants"))
    add_tenant_parser(commands.add_parser("tenant", help="list tenants, or move one to another database"))
    memory_parsers.add_parsers(commands, data)
    add_key_parsers(commands.add_parser("key", help="create, list, revoke and delete API keys"))
    _maintenance_parsers(commands, data)
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
    backup_parsers.add_serve_options(serve)
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


def _maintenance_parsers(commands: Any, data: argparse.ArgumentParser) -> None:
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


def config_of(arguments: argparse.Namespace) -> config.Config:
    """Return the configuration; options take precedence over the environment."""
    base = config.from_mapping(os.environ)
    given = {name: getattr(arguments, name, None) for name in _OPTIONS}
    base = base._replace(**{name: value for name, value in given.items() if value is not None})
    model: Path | None = getattr(arguments, "model", None)
    return base if model is None else base._replace(model=None if str(model) == "none" else model)


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit status; a Fault is one line on standard error and status 1."""
    # The matrix products here are too small to gain from BLAS threads; OpenBLAS reads this when numpy is imported.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    output.accept_any_text()
    try:
        try:
            return _checked(arguments)
        finally:
            print(end="", flush=True)  # if the output cannot be written, here and not at the interpreter's end
    except OSError as error:
        output.discard_rest()
        if output.is_closed_pipe(error):
            return output.CLOSED_PIPE
        output.note(f"quipu: {NO_SPACE if is_disk_full(error) else error}")
        return 1
    except KeyboardInterrupt:
        return _INTERRUPTED


def _checked(arguments: list[str] | None) -> int:
    chosen = parser().parse_args(arguments)
    if chosen.command is None:
        parser().print_help()
        return 0
    logs.set_up()
    try:
        return _run(chosen, config_of(chosen))
    except Fault as fault:
        output.note(f"quipu: {output.describe(fault)}")
    except _engine_errors() as error:
        output.note(f"quipu: {_told(error)}")
    return 1


def _engine_errors() -> tuple[type[BaseException], ...]:
    """Return the errors of the engine; it is imported for them only once there is an error."""
    from kernel.engines.sqlite.errors import SQLITE_ERRORS

    return SQLITE_ERRORS


def _told(error: BaseException) -> str:
    from kernel.engines.sqlite.errors import as_fault

    fault = as_fault(error)
    if fault is None:
        raise error
    return fault.message


def _run(arguments: argparse.Namespace, chosen: config.Config) -> int:
    # If SQLite puts what does not fit into memory: there is room for it if the database is.
    os.environ.setdefault("SQLITE_TMPDIR", str(chosen.data.absolute()))
    logs.set_up(as_json=chosen.log == "json", calls=chosen.log_calls)
    if arguments.command not in {"health", "doctor"}:  # doctor reports them itself
        for remark in unknown_variables(chosen, getattr(arguments, "password_env", None)):
            logging.getLogger("quipu").warning(remark)
    return _COMMANDS.get(arguments.command, _work_on_data)(arguments, chosen)


# Each command imports what it needs: `health` runs every few seconds in a container.


def _serve(_arguments: argparse.Namespace, chosen: config.Config) -> int:
    gc.disable()  # objects made at startup stay alive; kernel.server.server enables collection after it
    from kernel.server import server

    return server.http(chosen, _guide)


def _guide(chosen: config.Config) -> "Guide":
    from kernel.cli import console_guide

    return console_guide.guide(chosen)


def _stdio(arguments: argparse.Namespace, chosen: config.Config) -> int:
    gc.disable()
    from kernel.server import server

    return server.stdio(chosen, tuple(arguments.dialect))


def _health(arguments: argparse.Namespace, chosen: config.Config) -> int:
    from kernel.cli import probe

    probe.check_health(chosen.host, chosen.port)
    if arguments.json:
        print('{"status":"ok"}')
    return 0


def _ui(arguments: argparse.Namespace, chosen: config.Config) -> int:
    from kernel.cli import ui_command

    return ui_command.run(chosen, arguments.key)


def _setup(arguments: argparse.Namespace, chosen: config.Config) -> int:
    from kernel.cli import setup

    return setup.run(arguments, chosen)


def _service(arguments: argparse.Namespace, chosen: config.Config) -> int:
    from kernel.cli import service

    return service.run(arguments, chosen)


def _doctor(arguments: argparse.Namespace, chosen: config.Config) -> int:
    from kernel.cli import doctor

    return doctor.run(chosen, as_json=arguments.json)


def _memories(arguments: argparse.Namespace, chosen: config.Config) -> int:
    from kernel.cli import memory_commands

    return memory_commands.run(arguments, chosen)


def _replica(arguments: argparse.Namespace, chosen: config.Config) -> int:
    from kernel.cli import replica_command

    return replica_command.run(arguments, chosen)


def _completion(arguments: argparse.Namespace, _chosen: config.Config) -> int:
    from kernel.cli import completion

    print(completion.script(arguments.shell, parser()))
    return 0


def _work_on_data(arguments: argparse.Namespace, chosen: config.Config) -> int:
    from kernel.cli import commands

    return commands.run(arguments, chosen)


_COMMANDS = {
    "prime": agent_commands.prime,
    "hook": agent_commands.hook,
    "serve": _serve,
    "stdio": _stdio,
    "health": _health,
    "ui": _ui,
    "setup": _setup,
    "service": _service,
    "doctor": _doctor,
    "completion": _completion,
    "replica": _replica,
    **dict.fromkeys(memory_parsers.COMMANDS, _memories),
}


if __name__ == "__main__":
    sys.exit(main())
