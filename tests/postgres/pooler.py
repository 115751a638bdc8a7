"""PgBouncer in transaction mode before a database server, for tests: in a temporary folder and on a free port."""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from urllib.parse import urlsplit

from tests.postgres.cluster import account, free_port

_UNPACKED = Path(__file__).parents[2] / ".venv-pgbouncer"  # where .ci/unpack unpacks one
_START_SECONDS = 20
_SESSIONS = 4  # with the database, fewer than callers: transactions of a caller get different sessions
_SETTINGS = """\
[databases]
* = host={host} port={port} user={user}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {own}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = {sessions}
max_client_conn = 500
server_round_robin = 1
logfile = {folder}/log
"""


def program() -> Path | None:
    """The program; None where it is not installed and cannot be unpacked."""
    if found := shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin"):
        return Path(found)
    unpacked = _UNPACKED / "usr/sbin/pgbouncer"
    return unpacked if unpacked.exists() else None


@contextmanager
def pooled(address: str) -> Iterator[str]:
    """The address of a pooler before a server, which ends with the block."""
    found = program()
    assert found is not None
    server, own, user = urlsplit(address), free_port(), account()
    with tempfile.TemporaryDirectory(prefix="quipu-pooler-") as folder:
        settings = Path(folder) / "pgbouncer.ini"
        to = {"host": server.hostname, "port": server.port, "user": server.username}
        settings.write_text(_SETTINGS.format(own=own, sessions=_SESSIONS, folder=folder, **to))
        if user:
            shutil.chown(folder, user)
        libraries = ":".join(str(path) for path in _UNPACKED.glob("usr/lib/*-linux-*"))
        running = subprocess.Popen(
            [found, "-q", settings],
            env={**os.environ, "LD_LIBRARY_PATH": libraries},
            cwd=folder,
            user=user,
        )
        try:
            made = f"{server.scheme}://{server.username}@127.0.0.1:{own}"
            _wait_for(f"{made}/postgres")
            yield made
        finally:
            running.terminate()
            running.wait()


def _wait_for(address: str) -> None:
    psycopg = import_module("psycopg")
    end = time.monotonic() + _START_SECONDS
    while True:
        try:
            psycopg.connect(address).close()
        except psycopg.OperationalError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)
        else:
            return
