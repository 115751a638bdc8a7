"""A program of this machine finds the server of a data directory by a file, which the server alone holds."""

import socket
from pathlib import Path

from kernel.security.local_access import FILE, LocalAccess, connectable, proof


def test_each_start_has_a_token_of_its_own(tmp_path: Path) -> None:
    assert LocalAccess.fresh(tmp_path).token != LocalAccess.fresh(tmp_path).token


def test_the_file_has_the_address_and_the_token_for_its_owner_alone(tmp_path: Path) -> None:
    access = LocalAccess.fresh(tmp_path)
    with socket.socket() as listening:
        listening.bind(("0.0.0.0", 0))  # clients of this machine connect to the loopback address
        access.publish([listening])
        port = listening.getsockname()[1]
    file = tmp_path / FILE
    assert file.read_text(encoding="utf-8") == f"127.0.0.1 {port} {access.token}\n"
    assert file.stat().st_mode & 0o077 == 0


def test_the_file_of_a_running_server_is_left_as_it_is(tmp_path: Path) -> None:
    first, second = LocalAccess.fresh(tmp_path), LocalAccess.fresh(tmp_path)
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        first.publish([listening])
        second.publish([listening])
    assert (tmp_path / FILE).read_text(encoding="utf-8").endswith(f" {first.token}\n")


def test_a_proof_is_of_the_nonce_and_the_port() -> None:
    same = proof("secret", b"nonce", 7847)
    assert same == proof("secret", b"nonce", 7847)
    assert same not in {proof("secret", b"other", 7847), proof("secret", b"nonce", 1), proof("other", b"nonce", 7847)}


def test_a_server_that_listens_everywhere_is_reached_on_the_loopback_address() -> None:
    assert [connectable(host) for host in ("0.0.0.0", "::", "10.0.0.1")] == ["127.0.0.1", "::1", "10.0.0.1"]
