"""The parser of the command line and its dispatch to the commands."""

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
    """The argument parser; options that are not given default to environment variables."""
    top = argparse.ArgumentParser(prog="quipu", description="A memory server for AI agents.")
    top.add_argument("--version", action="version", version=f"quipu {config.VERSION}")
    commands = top.add_subparsers(dest="command", required=True)
    data = argparse.ArgumentParser(add_help=False)
    data.add_argument("--data", type=Path, help="data directory (QUIPU_DATA)")
    data.add_argument("--model", type=Path, help="model2vec folder, or none (QUIPU_MODEL)")
    serve = commands.add_parser("serve", parents=[data], help="serve MCP and JSON over HTTP")
    serve.add_argument("--host", help="address to listen on (HOST, 127.0.0.1)")
    serve.add_argument("--port", type=int, help=f"port to listen on (PORT, {config.DEFAULT_PORT})")
    serve.add_argument("--open", action="store_true", default=None, help="accept requests without a key (QUIPU_OPEN=1)")
    data = argparse.ArgumentParser(add_help=False, parents=[data])
    data.add_argument("--tenant", help=f"tenant ({MAIN})")
    stdio = commands.add_parser("stdio", parents=[data], help="serve MCP over standard input and output")
    stdio.add_argument("--dialect", action="append", default=[], help="serve only this dialect; may be repeated")
    check = commands.add_parser("check", parents=[data], help="verify that rows, full-text index and vectors match")
    check.add_argument("--repair", action="store_true", help="rebuild the indexes that differ from the rows")
    backup = commands.add_parser("backup", parents=[data], help="copy the database, or everything, while it is in use")
    backup.add_argument("target", type=Path, nargs="?", help="file to write (quipu-TIME.db in the data directory)")
    backup.add_argument("--all", type=Path, metavar="DIR", help="copy all tenants, files of notes, keys and settings")
    restore = commands.add_parser("restore", parents=[data], help="put a backup in place; the server must be stopped")
    restore.add_argument("source", type=Path, help="file of `backup FILE`, or folder of `backup --all DIR`")
    commands.add_parser("reindex", parents=[data], help="rebuild the full-text index and the vectors from the rows")
    _add_import_parser(commands.add_parser("import", parents=[data], help="import the data of another memory server"))
    audit = commands.add_parser("audit", parents=[data], help="show the audit log and verify its hash chain")
    audit.add_argument("--limit", type=int, default=50, help="number of calls to show, newest first (50)")
    audit.add_argument("--json", action="store_true", help="one JSON object per line")
    undo = commands.add_parser("undo", parents=[data], help="undo the changes of one call")
    undo.add_argument("id", type=int, help="id of the call, from `quipu audit`")
    tools = commands.add_parser("tools", help="list the tools of every dialect")
    tools.add_argument("--tokens", action="store_true", help="tokens that each tool list takes in a model's context")
    _add_key_parsers(commands.add_parser("key", help="create, list and revoke API keys"))
    _maintenance_parsers(commands, data)
    return top


def _add_import_parser(command: argparse.ArgumentParser) -> None:
    command.add_argument("kind", help="format of the data; an unknown name lists the supported ones")
    command.add_argument("path", type=Path, help="file or folder to read; it is not modified")
    command.add_argument(
        "--password-env", metavar="NAME", help="environment variable with the password of encrypted files"
    )


def _add_key_parsers(key: argparse.ArgumentParser) -> None:
    actions = key.add_subparsers(dest="key", required=True)
    data = argparse.ArgumentParser(add_help=False)
    data.add_argument("--data", type=Path, help="data directory (QUIPU_DATA)")
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
    actions.add_parser("reset", parents=[data], help="delete every key; a server on this machine then asks for none")


def _maintenance_parsers(commands: Any, data: argparse.ArgumentParser) -> None:
    compact = commands.add_parser("compact", parents=[data], help="shrink the database file after deletions")
    compact.add_argument(
        "--forget", metavar="TIME", help="also drop the history of rows deleted before this time (ISO 8601)"
    )
    quarantine = commands.add_parser(
        "quarantine", parents=[data], help="list memories quarantined as suspected prompt injection"
    )
    quarantine.add_argument("--release", metavar="ID", help="release this memory until its text changes")
    _add_setup_options(commands.add_parser("setup", parents=[data], help="configure an MCP client for this server"))
    doctor = commands.add_parser("doctor", parents=[data], help="diagnose the installation and suggest remedies")
    health = commands.add_parser("health", help="check the health of a running server")
    for command in (doctor, health):
        command.add_argument("--host", help="address of the server (HOST, 127.0.0.1)")
        command.add_argument("--port", type=int, help=f"port of the server (PORT, {config.DEFAULT_PORT})")


def _add_setup_options(setup: argparse.ArgumentParser) -> None:
    setup.add_argument("--client", metavar="NAME", help="client to configure; lists the supported ones if left out")
    setup.add_argument("--stdio", action="store_true", help="let the client start the server")
    setup.add_argument("--url", help="URL of the server (http://127.0.0.1:PORT/mcp)")
    setup.add_argument(
        "--dialect", action="append", default=[], help="serve only this dialect; may be repeated with --stdio"
    )
    setup.add_argument("--key", default="", help="API key; - reads it from standard input")
    setup.add_argument("--name", default="quipu", help="name of the server entry in the client (quipu)")
    setup.add_argument("--print", dest="shown", action="store_true", help="print the entry instead of writing it")
    setup.add_argument("--link", action="store_true", help="print a link that installs the entry in the client")


def config_of(arguments: argparse.Namespace) -> config.Config:
    """The configuration; options take precedence over the environment."""
    base = config.from_mapping(os.environ)
    given = {name: getattr(arguments, name, None) for name in ("data", "host", "port", "open", "tenant")}
    base = base._replace(**{name: value for name, value in given.items() if value is not None})
    model: Path | None = getattr(arguments, "model", None)
    return base if model is None else base._replace(model=None if str(model) == "none" else model)


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit status; a Fault is one line on standard error and status 1."""
    # The matrix products here are too small to gain from BLAS threads; OpenBLAS reads this when numpy is imported.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    chosen = parser().parse_args(arguments)
    logs.set_up()
    try:
        return _run(chosen, config_of(chosen))
    except Fault as fault:
        print(f"quipu: {fault.message}", file=sys.stderr)
        return 1


def _run(arguments: argparse.Namespace, chosen: config.Config) -> int:
    logs.set_up(as_json=chosen.log == "json", calls=chosen.log_calls)
    if arguments.command in {"serve", "stdio"}:
        gc.disable()  # objects made at startup stay alive; kernel.server enables collection after it
    if arguments.command == "serve":
        from kernel import server

        return server.http(chosen)
    if arguments.command == "stdio":
        from kernel import server

        return server.stdio(chosen, tuple(arguments.dialect))
    # Each branch imports what it needs: `health` runs every few seconds in a container.
    if arguments.command == "health":
        from kernel.cli import probe

        probe.check_health(chosen.host, chosen.port)
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
