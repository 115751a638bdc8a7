"""The command line: serve, stdio, check, backup, reindex, import, tools, key, health."""

import argparse
import gc
import os
import sys
from pathlib import Path
from typing import Any

from kernel import config
from kernel.data_dir import MAIN
from kernel.errors import Fault
from kernel.observe import logs
from kernel.security.permissions import Permission


def parser() -> argparse.ArgumentParser:
    """The commands and their options; what is not given comes from the environment."""
    top = argparse.ArgumentParser(prog="quipu", description="The memory that AI agents share.")
    top.add_argument("--version", action="version", version=f"quipu {config.VERSION}")
    commands = top.add_subparsers(dest="command", required=True)
    data = argparse.ArgumentParser(add_help=False)
    data.add_argument("--data", type=Path, help="data directory (QUIPU_DATA)")
    data.add_argument("--model", type=Path, help="model2vec folder, or none (QUIPU_MODEL)")
    serve = commands.add_parser("serve", parents=[data], help="serve MCP and JSON over HTTP")
    serve.add_argument("--host", help="address to listen on (HOST, 127.0.0.1)")
    serve.add_argument("--port", type=int, help=f"port to listen on (PORT, {config.DEFAULT_PORT})")
    serve.add_argument("--open", action="store_true", default=None, help="let in whoever has no key (QUIPU_OPEN=1)")
    data = argparse.ArgumentParser(add_help=False, parents=[data])
    data.add_argument("--tenant", help=f"whose memories ({MAIN})")
    stdio = commands.add_parser("stdio", parents=[data], help="serve MCP over standard input and output")
    stdio.add_argument("--dialect", action="append", default=[], help="serve only this dialect; may be repeated")
    check = commands.add_parser("check", parents=[data], help="compare rows, full text and vectors")
    check.add_argument("--repair", action="store_true", help="rebuild what can be derived from the rows")
    backup = commands.add_parser("backup", parents=[data], help="copy the database while it is in use")
    backup.add_argument("target", type=Path, nargs="?", help="file to write (quipu-TIME.db in the data directory)")
    commands.add_parser("reindex", parents=[data], help="rebuild full text and vectors from the rows")
    bring = commands.add_parser("import", parents=[data], help="bring in the data of another memory server")
    bring.add_argument("kind", help="whose data it is; an unknown name lists the known ones")
    bring.add_argument("path", type=Path, help="the file or folder to read; it is not changed")
    bring.add_argument("--password-env", metavar="NAME", help="variable that holds the password of encrypted files")
    calls = commands.add_parser("audit", parents=[data], help="show who changed what, and check that nothing is gone")
    calls.add_argument("--limit", type=int, default=50, help="how many calls to show, the newest first (50)")
    calls.add_argument("--json", action="store_true", help="one JSON object a line")
    undo = commands.add_parser("undo", parents=[data], help="take back what one call changed")
    undo.add_argument("id", type=int, help="the number of the call, as the audit shows it")
    tools = commands.add_parser("tools", help="list the tools of every dialect")
    tools.add_argument("--tokens", action="store_true", help="what each tool list costs a model's context")
    _key_parsers(commands.add_parser("key", help="make, list and take back the keys that callers need"))
    _looking_parsers(commands, data)
    return top


def _key_parsers(key: argparse.ArgumentParser) -> None:
    actions = key.add_subparsers(dest="key", required=True)
    data = argparse.ArgumentParser(add_help=False)
    data.add_argument("--data", type=Path, help="data directory (QUIPU_DATA)")
    create = actions.add_parser("create", parents=[data], help="make a key and print it, this once")
    create.add_argument("--tenant", default=MAIN, help=f"whose memories it opens ({MAIN})")
    create.add_argument("--scope", choices=[right.name for right in Permission], required=True, help="what it allows")
    create.add_argument("--dialect", action="append", default=[], help="reach this dialect alone; may be repeated")
    create.add_argument("--expires", metavar="WHEN", help="90d, 12h, 30m or an ISO 8601 time; never if left out")
    create.add_argument("--name", default="", help="what the list shall call it")
    actions.add_parser("list", parents=[data], help="show every key without its secret")
    revoke = actions.add_parser("revoke", parents=[data], help="take a key back, within a second")
    revoke.add_argument("id", help="the id of the key, as the list shows it")


def _looking_parsers(commands: Any, data: argparse.ArgumentParser) -> None:
    compact = commands.add_parser("compact", parents=[data], help="give the room of what was deleted back")
    compact.add_argument("--forget", metavar="TIME", help="drop the history of what was deleted before it (ISO 8601)")
    suspects = commands.add_parser("quarantine", parents=[data], help="show the memories kept apart as poison")
    suspects.add_argument("--release", metavar="ID", help="let go of this one, for as long as its text stays as it is")
    _setup_options(commands.add_parser("setup", parents=[data], help="point an MCP client at this server"))
    doctor = commands.add_parser("doctor", parents=[data], help="say what is wrong and what helps")
    health = commands.add_parser("health", help="ask a running server whether it is healthy")
    for command in (doctor, health):
        command.add_argument("--host", help="address it listens on (HOST, 127.0.0.1)")
        command.add_argument("--port", type=int, help=f"port to ask on (PORT, {config.DEFAULT_PORT})")


def _setup_options(setup: argparse.ArgumentParser) -> None:
    setup.add_argument("--client", metavar="NAME", help="which client; without it the known ones are listed")
    setup.add_argument("--stdio", action="store_true", help="let the client start the server")
    setup.add_argument("--url", help="where the server is (http://127.0.0.1:PORT/mcp)")
    setup.add_argument("--dialect", action="append", default=[], help="only this dialect; may be repeated with --stdio")
    setup.add_argument("--key", default="", help="key that the server asks for; - reads it from standard input")
    setup.add_argument("--name", default="quipu", help="what the client shall call the server (quipu)")
    setup.add_argument("--print", dest="shown", action="store_true", help="print the configuration, change nothing")
    setup.add_argument("--link", action="store_true", help="print an address that makes the client offer to add it")


def settings(arguments: argparse.Namespace) -> config.Config:
    """The configuration: options first, then the environment."""
    base = config.from_mapping(os.environ)
    given = {name: getattr(arguments, name, None) for name in ("data", "host", "port", "open", "tenant")}
    base = base._replace(**{name: value for name, value in given.items() if value is not None})
    model: Path | None = getattr(arguments, "model", None)
    return base if model is None else base._replace(model=None if str(model) == "none" else model)


def main(arguments: list[str] | None = None) -> int:
    """Runs one command; the exit status, with one line on standard error where it is not 0."""
    # More than one thread for products this small costs more than it gives, and must be said before numpy loads.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    chosen = parser().parse_args(arguments)
    logs.set_up()
    try:
        return _run(chosen, settings(chosen))
    except Fault as fault:
        print(f"quipu: {fault.message}", file=sys.stderr)
        return 1


def _run(arguments: argparse.Namespace, chosen: config.Config) -> int:
    logs.set_up(as_json=chosen.log == "json", calls=chosen.log_calls)
    if arguments.command in {"serve", "stdio"}:
        gc.disable()  # what a start makes stays; once it is over, serve looks for garbage
    if arguments.command == "serve":
        from kernel import server as serve

        return serve.http(chosen)
    if arguments.command == "stdio":
        from kernel import server as serve

        return serve.stdio(chosen, tuple(arguments.dialect))
    if arguments.command == "health":
        from kernel.cli import probe as health

        health.ask(chosen.host, chosen.port)
        return 0
    if arguments.command == "setup":
        from kernel.cli import setup

        return setup.run(arguments, chosen)
    if arguments.command == "doctor":
        from kernel.cli import doctor

        return doctor.run(chosen)
    from kernel.cli import commands

    return commands.run(arguments, chosen)


if __name__ == "__main__":
    sys.exit(main())
