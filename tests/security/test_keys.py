"""Keys are random, told once, compared in a time that tells nothing, taken back at once, and written down nowhere."""

import json
import logging
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from kernel.cli.main import main
from kernel.core.config import Config
from kernel.security import api_keys
from kernel.security.api_keys import Key
from kernel.security.auth import Auth, Unauthenticated
from tests.catalogue import Catalogue
from tests.reliability.server_process import serving
from tests.security.authenticated_server import EXPIRED, JSON, House, house

Steps = list[tuple[str, int]]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with house(Config(data=tmp_path_factory.mktemp("keys") / "data", model=None)) as found:
        found.key()
        found.told()
        yield found


def steps(work: Callable[[], object]) -> Steps:
    """Every line of ours that `work` runs, in order."""
    seen: Steps = []

    def trace(frame: FrameType, event: str, _given: Any) -> Any:
        name = frame.f_code.co_filename
        if "/kernel/" in name and event == "line":
            seen.append((name.rpartition("/")[2], frame.f_lineno))
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return seen


def test_a_wrong_key_takes_the_same_steps_however_much_of_it_is_right(tmp_path: Path, catalogue: Catalogue) -> None:
    """Each step is one of ours, or `compare_digest`, which takes as long wherever two digests differ."""
    made = [api_keys.create(tmp_path, Key("", "read", EXPIRED)) for _ in range(2)]
    gone = api_keys.create(tmp_path, Key("", "read", EXPIRED))
    api_keys.revoke(tmp_path, gone[0].id, EXPIRED)
    found = Auth(tmp_path)
    found.needed()
    secret = made[0][1]
    others = [secret[:place] + ("a" if secret[place] != "a" else "b") + secret[place + 1 :] for place in range(15, 58)]
    others += [f"quipu_{made[0][0].id}_{made[1][1][15:]}", f"quipu_absent00_{secret[15:]}", gone[1]]

    def ask(bearer: str) -> Steps:
        def call() -> None:
            with pytest.raises(Unauthenticated):
                found.caller({b"authorization": b"Bearer " + bearer.encode()})

        return steps(call)

    ask(others[0])  # whoever comes first has the pattern of keys compiled
    first = ask(others[0])
    assert ("api_keys.py", api_keys.matches.__code__.co_firstlineno + 2) in first
    assert [bearer for bearer in others if ask(bearer) != first] == []
    catalogue("S28", injected="keys that are nearly right", times=len(others), outcome="the same steps")


def test_secrets_are_compared_by_nothing_else() -> None:
    source = Path(api_keys.__file__).read_text(encoding="utf-8")
    assert source.count("compare_digest(digest(secret), ") == 1
    assert not re.search(r"(?:==|!=|\bin\b)[^\n]*\bhash\b|\bhash\b[^\n]*(?:==|!=)", source)


def test_a_key_holds_256_bits_and_no_two_are_alike(tmp_path: Path, catalogue: Catalogue) -> None:
    secrets = [api_keys.create(tmp_path, Key("", "read", EXPIRED))[1].split("_", 2)[2] for _ in range(64)]
    assert {len(secret) for secret in secrets} == {43}  # 256 bits in six at a time
    for place in range(42):
        assert len({secret[place] for secret in secrets}) > 16, place
    assert len(set(secrets)) == 64
    catalogue("S28", injected="keys made", times=64, outcome="43 letters of 64, all different")


def test_keys_change_under_load_within_a_second_and_without_an_error(running: House, catalogue: Catalogue) -> None:
    """Old keys work until they are taken back and at most a second longer, new ones a second after their making."""
    old = running.key("write")
    running.told()
    seen: dict[str, list[tuple[float, int]]] = {"old": [], "new": []}
    ending, made = threading.Event(), {"old": old, "new": ""}

    def work(name: str, number: int) -> None:
        count = 0
        while not ending.is_set():
            if made[name]:
                arguments = {"path": f"{name}/{number}/{(count := count + 1)}", "content": "hello"}
                answer = running.tool("add_memory", arguments, made[name])
                seen[name].append((time.monotonic(), answer.status))

    callers = [threading.Thread(target=work, args=(name, number)) for name in seen for number in range(3)]
    for caller in callers:
        caller.start()
    time.sleep(0.3)
    made["new"], begun = running.key("write"), time.monotonic()
    time.sleep(0.5)
    taking = time.monotonic()
    api_keys.revoke(running.data, api_keys.parse(old), EXPIRED)
    taken = time.monotonic()
    time.sleep(1.5)
    ending.set()
    for caller in callers:
        caller.join()
    assert {status for answers in seen.values() for _, status in answers} == {200, 401}
    assert {status for at, status in seen["old"] if at < taking} == {200}
    assert {status for at, status in seen["old"] if at > taken + 1} == {401}
    assert {status for at, status in seen["new"] if at > begun + 1} == {200}
    times = sum(map(len, seen.values()))
    catalogue("S28", injected="calls while keys change", times=times, outcome="old ended, new began within 1 s")


PLACES = ["/mcp", "/tools/recall", "/tools/absent", "/tools", "/readyz", "/absent", "/mcp/absent"]
BODIES = [b"", b"{", b"[]", b"\xff", b'{"query":1}', b'{"a":' * 200, b'{"jsonrpc":"2.0","id":1,"method":"x"}']


def test_no_key_is_written_down_anywhere(tmp_path: Path, catalogue: Catalogue) -> None:
    """Not in the log, an answer, the list, or any file but as its digest, after every use."""
    with serving(tmp_path / "data") as server:
        made = [api_keys.create(server.data, Key("", scope, EXPIRED)) for scope in ("read", "admin")]
        time.sleep(0.3)
        found = House(server.port, None, server.data)
        answers: list[bytes] = []
        for _, secret in made:
            shown = (secret, secret[:-1], f"{secret}x")
            answers += [seen(found, path, key, body) for path in PLACES for body in BODIES for key in shown]
            answers += [found.tool("add_memory", {"path": "a", "content": "b"}, secret).body for _ in range(2)]
        found.close()
        api_keys.revoke(server.data, made[0][0].id, EXPIRED)
        server.stop()
        log = server.log()
    kept = [file.read_bytes() for file in (tmp_path / "data").rglob("*") if file.is_file()]
    parts = [secret.encode()[start : start + 16] for _, secret in made for start in range(6, 58, 8)]
    secret_parts = [part for part in parts if not any(part.startswith(key.id.encode()) for key, _ in made)]
    for where in (*answers, log.encode(), *kept):
        assert not any(part in where for part in secret_parts), where[:300]
    assert "Traceback" not in log
    catalogue("S28", injected="requests with keys, right and wrong", times=len(answers), outcome="no key written down")


def seen(found: House, path: str, key: str, body: bytes) -> bytes:
    answer = found.ask("POST" if body else "GET", path, key, body or None, {"content-type": JSON})
    return repr(answer.headers).encode() + answer.body


def test_the_list_and_the_log_of_a_command_show_no_key(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    data = ["--data", str(tmp_path)]
    assert main(["key", "create", "--scope", "admin", *data]) == 0
    printed = capsys.readouterr()
    secret = printed.out.strip()
    assert secret not in printed.err
    assert main(["key", "list", *data]) == 0
    assert main(["key", "revoke", api_keys.parse(secret), *data]) == 0
    assert main(["key", "list", *data]) == 0
    printed = capsys.readouterr()
    shown = printed.out + printed.err + caplog.text
    assert secret[15:] not in shown
    assert api_keys.digest(secret) not in shown
    assert json.loads((tmp_path / "keys.json").read_bytes())[0]["id"] == api_keys.parse(secret)
