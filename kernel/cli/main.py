"""The command line: arguments, configuration, errors, and the servers."""

import argparse
import gc
import logging
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from kernel.cli import commands, local_client, output
from kernel.cli.commands import parser
from kernel.cli.environment import unknown_variables
from kernel.core import config, data_dir
from kernel.core.errors import NO_SPACE, Fault, is_disk_full
from kernel.server import logs

if TYPE_CHECKING:
    from handlers.console.guide import Guide

_OPTIONS = (
    *("data", "host", "port", "open", "tenant", "workers", "store", "read_store"),
    *("backup_to", "backup_every", "backup_keep", "follow"),
)
_OF_A_SERVER = {"doctor", "expose", "health", "hook", "setup", "ui"}  # commands that look for it, or name its address
_INTERRUPTED = 130  # 128 + SIGINT, as shells report it


def config_of(arguments: argparse.Namespace) -> config.Config:
    """Return the configuration; options take precedence over the environment. An address that neither names is that of
    the server that runs on the data directory.
    """
    base = config.from_mapping(os.environ)
    options = {name: getattr(arguments, name, None) for name in _OPTIONS}
    base = base._replace(**{name: value for name, value in options.items() if value is not None})
    named = options["host"] or options["port"] is not None or not os.environ.keys().isdisjoint(("HOST", "PORT"))
    if getattr(arguments, "command", "") in _OF_A_SERVER and not (named or base.store):
        host, port, _ = local_client.find(str(base.data)) or (base.host, base.port, "")
        base = base._replace(host=host, port=port)
    if os.access(base.data / "expose.json", os.F_OK) and not getattr(arguments, "off", False):
        from kernel.core import exposure  # imported only where it is used, for a quick start

        public_name = exposure.read(base.data)
        base = base if public_name is None else exposure.applied(base, public_name)
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
        reason = f"{error.strerror}: {error.filename}" if error.filename is not None else error
        if isinstance(error, FileNotFoundError) and error.filename is None:  # of `os.getcwd`
            reason = "The folder in which this command was started is not there any more."
        output.note(f"quipu: {NO_SPACE if is_disk_full(error) else reason}")
        return 1
    except KeyboardInterrupt:
        return _INTERRUPTED


def _checked(arguments: list[str] | None) -> int:
    options = parser().parse_args(commands.spelled_out(sys.argv[1:] if arguments is None else arguments))
    if options.command is None:
        parser().print_help()
        return 0
    logs.set_up()
    try:
        return _run(options, config_of(options))
    except Fault as fault:
        output.note(f"quipu: {output.describe(fault)}")
    except _engine_errors() as error:
        from kernel.engines.sqlite.errors import as_fault

        if (fault := as_fault(error)) is None:
            raise
        output.note(f"quipu: {fault.message}")
    return 1


def _engine_errors() -> tuple[type[BaseException], ...]:
    """Return the errors of the engine; it is imported for them only once there is an error."""
    from kernel.engines.sqlite.errors import SQLITE_ERRORS

    return SQLITE_ERRORS


def _run(arguments: argparse.Namespace, settings: config.Config) -> int:
    if os.access(settings.data / "manifest.json", os.F_OK):
        from kernel.operations.backup import refuse_backup  # imported only where it may be needed, for a quick start

        refuse_backup(settings.data)
    # The folder of SQLite's temporary files: beside the database there is room for them.
    os.environ.setdefault("SQLITE_TMPDIR", str(settings.data.absolute()))
    calls = settings.log_calls or settings.log_slow > 0
    logs.set_up(as_json=settings.log == "json", calls=calls, requests=settings.log_requests)
    if arguments.command not in {"health", "doctor"}:  # doctor reports them itself
        for remark in unknown_variables(settings, getattr(arguments, "password_env", None)):
            logging.getLogger("quipu").warning(remark)
    try:
        return commands.run(arguments, settings)
    finally:
        data_dir.hand_over(settings.data)


def serve(_arguments: argparse.Namespace, settings: config.Config) -> int:
    gc.disable()  # objects made at startup stay alive; kernel.server.server enables collection after it
    from kernel.server import server

    def guide(settings: config.Config) -> "Guide":
        from kernel.cli import console_guide

        return console_guide.guide(settings)

    return server.http(settings, guide)


def stdio(arguments: argparse.Namespace, settings: config.Config) -> int:
    gc.disable()
    from kernel.server import server

    return server.stdio(settings, tuple(arguments.dialect), strict=arguments.strict)


if __name__ == "__main__":
    sys.exit(main())
