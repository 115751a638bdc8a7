"""Every file and folder we make is its owner's alone, under any umask."""

import stat
import subprocess
import sys
import time
from pathlib import Path

from kernel.security import api_keys
from tests.catalogue import Catalogue
from tests.reliability.server_process import PATIENCE, ROOT, free_port, until
from tests.security.authenticated_server import House
from tests.security.calls import CALLS
from tests.support.security_binding import alive


def run(*arguments: str) -> str:
    """A command under the widest umask; return its output."""
    done = subprocess.run(
        [sys.executable, "-m", "kernel", *arguments],
        cwd=ROOT,
        umask=0,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def wide(folder: Path) -> dict[str, str]:
    """Return the entries of a folder that somebody else could read, by name, with its mode."""
    return {
        str(path.relative_to(folder.parent)): oct(stat.S_IMODE(path.lstat().st_mode))
        for path in (folder, *folder.rglob("*"))
        if stat.S_IMODE(path.lstat().st_mode) & 0o077
    }


def test_nothing_we_write_can_be_read_by_others(tmp_path: Path, catalogue: Catalogue) -> None:
    data = tmp_path / "new" / "data"
    given = ["--data", str(data)]
    main = run("key", "create", "--scope", "admin", *given)
    other = run("key", "create", "--scope", "admin", "--tenant", "acme", *given)
    api_keys.revoke(data, api_keys.parse(run("key", "create", "--scope", "read", *given)), "2026-01-01T00:00:00.000Z")
    port = free_port()
    command = [sys.executable, "-m", "kernel", "serve", "--port", str(port), *given]
    server = subprocess.Popen(command, cwd=ROOT, umask=0, stderr=subprocess.PIPE)
    found = House(port, None, data)
    try:
        until(lambda: alive(found), "health")
        for key in (main, other):
            for call, arguments in CALLS.items():
                assert found.tool(call[0], arguments, key).status < 500
        time.sleep(0.1)
        assert wide(tmp_path / "new") == {}
        kinds = {path.name.replace("quipu-before-reset", "copy").partition("-2")[0] for path in data.rglob("*")}
        backup = tmp_path / "backup.db"
        run("backup", str(backup), *given)
        run("backup", "--tenant", "acme", *given)
        run("check", "--repair", *given)
    finally:
        found.close()
        server.terminate()
        server.communicate(timeout=PATIENCE)
    wanted = {"quipu.db", "quipu.db-wal", "quipu.db-shm", "keys.json", "tenants", "acme", "notes", ".mnemonics", "copy"}
    assert wanted <= kinds
    assert wide(tmp_path / "new") == {}
    assert oct(stat.S_IMODE(backup.stat().st_mode)) == "0o600"
    assert [path for path in (tmp_path / "new").rglob("*") if path.owner() != Path("/proc/self").owner()] == []
    times = sum(1 for _ in (tmp_path / "new").rglob("*"))
    catalogue("S16", injected="files and folders under umask 000", times=times, outcome="0600 and 0700")


def test_a_file_of_keys_stays_private_where_it_was_not(tmp_path: Path) -> None:
    made, _ = api_keys.create(tmp_path, api_keys.Key("", "read", ""))
    (tmp_path / "keys.json").chmod(0o644)
    api_keys.revoke(tmp_path, made.id, "2026-01-01T00:00:00.000Z")
    assert oct(stat.S_IMODE((tmp_path / "keys.json").stat().st_mode)) == "0o600"
