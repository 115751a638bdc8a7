"""A server that others can reach lets nobody in without a key, and does not start where nobody could have one."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from kernel.security import api_keys
from kernel.security.api_keys import Key
from tests.catalogue import Catalogue
from tests.reliability.server_process import PATIENCE, ROOT, free_port
from tests.security.authenticated_server import EXPIRED, House
from tests.support.security_binding import alive

# An address of this machine alone that does not say so: nothing here is reachable from anywhere else.
ELSEWHERE = "127.1"
REFUSAL = (
    f"quipu: Listening on {ELSEWHERE} needs keys: make one with `quipu key create --scope admin`, "
    "or say that anybody may read and write everything with --open (QUIPU_OPEN=1).\n"
)


def command(data: Path, port: int, host: str, *more: str) -> list[str]:
    return [
        sys.executable,
        "-m",
        "kernel",
        "serve",
        "--data",
        str(data),
        "--host",
        host,
        "--port",
        str(port),
        *more,
    ]


@contextmanager
def serving(data: Path, *more: str, host: str = ELSEWHERE, environment: Mapping[str, str] = {}) -> Iterator[House]:
    """A server that answers, on any host."""
    port = free_port()
    env = {**os.environ, "QUIPU_MODEL": "none", **environment}
    process = subprocess.Popen(command(data, port, host, *more), cwd=ROOT, env=env, stderr=subprocess.PIPE, text=True)
    found = House(port, None, data)
    try:
        deadline = time.monotonic() + PATIENCE
        while not alive(found):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)
        yield found
    finally:
        found.close()
        process.terminate()
        process.communicate(timeout=PATIENCE)


@pytest.mark.parametrize("host", [ELSEWHERE, "0.0.0.0", "::", "example.invalid"])
def test_a_server_for_others_does_not_start_while_nobody_has_a_key(
    tmp_path: Path, host: str, catalogue: Catalogue
) -> None:
    done = subprocess.run(
        command(tmp_path / "data", 0, host), cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert (done.returncode, done.stderr) == (1, REFUSAL.replace(ELSEWHERE, host))
    assert not (tmp_path / "data").exists()
    catalogue("S04", injected=f"listen on {host} without a key", times=1, outcome="refused")


def test_a_file_of_keys_that_cannot_be_read_starts_nothing(tmp_path: Path) -> None:
    (tmp_path / "keys.json").write_text("{")
    done = subprocess.run(
        command(tmp_path, 0, ELSEWHERE), cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    told = "quipu: keys.json cannot be read, so no caller can be authenticated.\n"
    assert (done.returncode, done.stderr) == (1, told)


def test_a_server_for_others_asks_everybody_for_a_key_even_when_the_last_is_gone(
    tmp_path: Path, catalogue: Catalogue
) -> None:
    made, secret = api_keys.create(tmp_path, Key("", "read", EXPIRED))
    with serving(tmp_path) as found:
        assert found.ask("GET", "/tools").status == 401
        assert found.ask("GET", "/tools", secret).status == 200
        api_keys.revoke(tmp_path, made.id, EXPIRED)
        found.told()
        assert found.ask("GET", "/tools", secret).status == 401
        (tmp_path / "keys.json").unlink()
        found.told()
        assert found.ask("GET", "/tools").status == 401
    catalogue("S04", injected="the last key taken back, the file removed", times=2, outcome="401")


@pytest.mark.parametrize("said", [("--open",), ()], ids=["option", "variable"])
def test_a_server_that_is_said_to_be_open_lets_anybody_in(tmp_path: Path, said: tuple[str, ...]) -> None:
    with serving(tmp_path / "data", *said, environment={} if said else {"QUIPU_OPEN": "1"}) as found:
        answer = found.tool("add_memory", {"path": "a", "content": "b"})
        assert (answer.status, json.loads(answer.body)["path"]) == (200, "a")


def test_a_server_for_this_machine_starts_without_a_key_and_asks_for_one_from_the_first_on(tmp_path: Path) -> None:
    with serving(tmp_path / "data", host="127.0.0.1") as found:
        assert found.tool("list_memories", {}).status == 200
        secret = found.key("read")
        found.told()
        assert (found.tool("list_memories", {}).status, found.tool("list_memories", {}, secret).status) == (401, 200)
