"""Keys are random, kept as a digest in a private file, and changed by one command at a time."""

import os
import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel.core.errors import Fault
from kernel.security import api_keys
from kernel.security.api_keys import Key, create, digest, expiry, matches, parse, read, revoke
from tests.unit.sql.code import ROOT

NOW = "2026-11-21T10:00:00.000Z"
WANTED = Key("", "write", NOW, tenant="acme", name="laptop", dialects=("brain",), expires="2027-01-01T00:00:00.000Z")


def test_key_is_shown_once_and_stored_as_its_digest(tmp_path: Path) -> None:
    made, secret = create(tmp_path / "data", WANTED)
    assert re.fullmatch(r"quipu_[0-9a-z]{8}_[A-Za-z0-9_-]{43}", secret)
    assert made == msgspec.structs.replace(WANTED, id=secret[6:14], hash=digest(secret))
    assert read(tmp_path / "data") == [made]
    kept = (tmp_path / "data" / "keys.json").read_text()
    assert secret not in kept
    assert secret[15:] not in kept


def test_keys_are_distinct(tmp_path: Path) -> None:
    made = [create(tmp_path, WANTED) for _ in range(20)]
    assert len({key.id for key, _ in made}) == len({secret for _, secret in made}) == 20
    assert read(tmp_path) == [key for key, _ in made]


def test_key_file_is_private_with_any_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        made, _ = create(tmp_path / "data", WANTED)
        revoke(tmp_path / "data", made.id, NOW)
    finally:
        os.umask(before)
    files = sorted((tmp_path / "data").iterdir())
    assert [file.name for file in files] == ["keys.json", "keys.json.lock"]
    assert {oct(file.stat().st_mode & 0o777) for file in files} == {"0o600"}
    assert oct((tmp_path / "data" / "keys.json").stat().st_mode & 0o777) == "0o600"
    assert oct((tmp_path / "data").stat().st_mode & 0o777) == "0o700"


def test_only_the_whole_key_matches(tmp_path: Path) -> None:
    made, secret = create(tmp_path, WANTED)
    assert matches(secret, made)
    assert parse(secret) == made.id
    assert not matches(secret, None)
    assert not matches(secret, msgspec.structs.replace(made, hash=""))
    for place in (0, 7, 20, -1):
        other = secret[:place] + ("a" if secret[place] != "a" else "b") + (secret[place + 1 :] if place != -1 else "")
        assert not matches(other, made)


@given(st.text())
def test_text_that_is_no_key_has_no_id(text: str) -> None:
    assert parse(text) == ""


def test_revoked_key_stays_listed_and_matches_nothing(tmp_path: Path) -> None:
    made, secret = create(tmp_path, WANTED)
    other, _ = create(tmp_path, WANTED)
    gone = revoke(tmp_path, made.id, NOW)
    assert gone == msgspec.structs.replace(made, hash="", revoked=NOW)
    assert read(tmp_path) == [gone, other]
    assert not matches(secret, gone)
    assert revoke(tmp_path, made.id, "2026-11-22T10:00:00.000Z") == gone
    with pytest.raises(Fault) as raised:
        revoke(tmp_path, "unknown0", NOW)
    assert raised.value.code == "not_found"


def test_state_of_a_key_follows_from_its_times() -> None:
    assert WANTED.state(NOW) == "active"
    assert WANTED.state("2027-01-01T00:00:00.000Z") == "expired"
    assert msgspec.structs.replace(WANTED, revoked=NOW).state(NOW) == "revoked"
    assert Key("", "read", NOW).state("9999-01-01T00:00:00.000Z") == "active"


@pytest.mark.parametrize(
    ("given", "end"),
    [
        ("90d", "2027-02-19T10:00:00.000Z"),
        ("12h", "2026-11-21T22:00:00.000Z"),
        ("5m", "2026-11-21T10:05:00.000Z"),
        ("2027-01-31", "2027-01-31T00:00:00.000Z"),
        ("2027-01-31T12:00:00+02:00", "2027-01-31T10:00:00.000Z"),
    ],
)
def test_expiry_is_a_duration_or_a_time(given: str, end: str) -> None:
    assert expiry(given, NOW) == end


@pytest.mark.parametrize(
    "given", ["", "never", "0d", "-1d", "1y", "99999d99", "2026-01-01", "2026-11-21T10:00:00Z", "99999-01-01", "9" * 99]
)
def test_past_or_unclear_expiry_is_refused(given: str) -> None:
    with pytest.raises(Fault, match="A key"):
        expiry(given, NOW)


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"[1]", b'[{"id":"a"}]', b'[{"id":"a","scope":"owner","created":""}]', b"[" * 5000, b"\xff"]
)
def test_unreadable_key_file_is_a_storage_fault_and_kept(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "keys.json").write_bytes(content)
    for attempt in (lambda: read(tmp_path), lambda: create(tmp_path, WANTED)):
        with pytest.raises(Fault, match=r"keys\.json cannot be read"):
            attempt()
    assert (tmp_path / "keys.json").read_bytes() == content
    assert sorted(file.name for file in tmp_path.iterdir()) == ["keys.json", "keys.json.lock"]


@pytest.mark.slow
def test_concurrent_commands_lose_no_key(tmp_path: Path) -> None:
    program = "import sys; from kernel.security import api_keys as keys; from pathlib import Path\n"
    program += "for _ in range(10): keys.create(Path(sys.argv[1]), keys.Key('', 'read', ''))"
    running = [subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], cwd=ROOT) for _ in range(3)]
    assert [one.wait(60) for one in running] == [0, 0, 0]
    assert len(read(tmp_path)) == 30


HOLDING = (
    "import sys, time; from pathlib import Path; from kernel.core.data_dir import file_lock\n"
    "with file_lock(Path(sys.argv[1]), 1):\n    print(1, flush=True); time.sleep(60)"
)


def test_killed_command_holds_up_no_other_and_a_running_one_is_a_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = tmp_path / "keys.json.lock"
    with subprocess.Popen([sys.executable, "-c", HOLDING, str(lock)], cwd=ROOT, stdout=subprocess.PIPE) as holding:
        assert holding.stdout is not None
        assert holding.stdout.readline() == b"1\n"
        monkeypatch.setattr(api_keys, "_LOCK_WAIT_SECONDS", 0.05)
        with pytest.raises(Fault, match=r"keys\.json\.lock") as raised:
            create(tmp_path, WANTED)
        assert (raised.value.code, (tmp_path / "keys.json").exists()) == ("busy", False)
        holding.kill()
    assert lock.exists()
    made, _ = create(tmp_path, WANTED)
    assert revoke(tmp_path, made.id, NOW).revoked == NOW


def test_rest_of_a_killed_command_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "keys.json.new").write_bytes(b"[" * 5000)
    made, _ = create(tmp_path, WANTED)
    assert read(tmp_path) == [made]
    assert not (tmp_path / "keys.json.new").exists()


def test_keys_are_needed_until_they_are_cleared(tmp_path: Path) -> None:
    assert not api_keys.needed(tmp_path)
    create(tmp_path, WANTED)
    assert api_keys.needed(tmp_path)
    api_keys.clear(tmp_path)
    assert (api_keys.needed(tmp_path), read(tmp_path), (tmp_path / "keys.json").exists()) == (False, [], True)
    (tmp_path / "keys.json").write_bytes(b"[")
    assert api_keys.needed(tmp_path)


def test_unwritable_folder_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "keys.json").mkdir()
    with pytest.raises(Fault):
        create(tmp_path, WANTED)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["keys.json", "keys.json.lock"]
