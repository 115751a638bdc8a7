"""A store that had keys stays closed without them, until its owner makes a key or says that there shall be none."""

import shutil
import time
from pathlib import Path

import pytest

from kernel.cli.main import main
from kernel.security import api_keys
from kernel.security.api_keys import Key
from tests.catalogue import Catalogue
from tests.reliability.server_process import Server, serving, until
from tests.security.sockets import Peer, request

CREATED = "2026-11-21T10:00:00.000Z"


def status(server: Server, secret: str = "") -> int:
    given = {"Authorization": f"Bearer {secret}"} if secret else {}
    with Peer(server.port, request("/tools/list_memories", b"{}", **given)) as peer:
        return peer.answer()[0]


def made(data: Path) -> str:
    return api_keys.create(data, Key("", "write", CREATED))[1]


def test_a_running_server_that_loses_its_keys_is_closed(tmp_path: Path, catalogue: Catalogue) -> None:
    data = tmp_path / "data"
    secret = made(data)
    with serving(data) as server:
        assert (status(server), status(server, secret)) == (401, 200)
        (data / "keys.json").unlink()
        until(lambda: status(server, secret) == 401, "the loss is seen")
        time.sleep(0.6)
        assert (status(server), status(server, secret)) == (401, 401)
        assert "quipu key create" in server.log()
        new = made(data)
        until(lambda: status(server, new) == 200, "the new key is seen")
        assert (status(server), status(server, secret)) == (401, 401)
    catalogue("S05", injected="keys.json removed from a running server", times=1, outcome="closed until a key is made")


@pytest.mark.parametrize("when", ["before the start", "while it ran"])
def test_a_start_without_the_keys_there_were_is_closed(tmp_path: Path, when: str, catalogue: Catalogue) -> None:
    data, copy = tmp_path / "data", tmp_path / "copy"
    secret = made(data) if when == "before the start" else ""
    with serving(data) as server:
        if not secret:
            assert status(server) == 200
            secret = made(data)
        until(lambda: status(server) == 401, "the key is seen")
        until(lambda: status(server, secret) == 200, "the key is seen")
        server.stop()
    copy.mkdir()
    shutil.copy(data / "quipu.db", copy)
    (data / "keys.json").unlink()
    for place in (data, copy):
        with serving(place) as server:
            assert (status(server), status(server, secret)) == (401, 401)
            new = made(place)
            until(lambda server=server, new=new: status(server, new) == 200, "the new key is seen")
    catalogue("S05", injected=f"start without the keys made {when}", times=2, outcome="closed until a key is made")


def test_the_owner_may_say_that_there_are_no_keys(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "data"
    assert main(["key", "create", "--data", str(data), "--scope", "write", "--tenant", "ada"]) == 0
    warned = capsys.readouterr().err
    assert "from now on every client needs one" in warned
    assert "tenant main" in warned
    with serving(data) as server:
        assert status(server) == 401
        assert main(["key", "reset", "--data", str(data)]) == 0
        until(lambda: status(server) == 200, "no key is needed")
    with serving(data) as server:
        assert status(server) == 200
    assert main(["key", "create", "--data", str(data), "--scope", "write"]) == 0
    assert main(["key", "create", "--data", str(data), "--scope", "write"]) == 0
    assert capsys.readouterr().err.count("from now on every client needs one") == 1
