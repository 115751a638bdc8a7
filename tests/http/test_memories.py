"""The commands for memories beside a server and without it, and the answers of /memories by caller."""

import http.client
import json
import os
import pty
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from handlers.console.commands import COMMANDS
from kernel.cli import local_client
from kernel.core.config import default_data
from kernel.security.local_access import FILE, LocalAccess
from tests.reliability.server_process import ROOT, Server, serving

QUIPU = [sys.executable, "-m", "kernel"]
STORY = (
    ["add", "The garage opens at eight.", "--name", "car/garage"],
    ["add", "Tea at five.\nNo sugar.", "--dialect", "scopes", "--name", "tea"],
    ["add", "Buy apples.", "--dialect", "graph", "--name", "apples"],
    ["recall", "when", "does", "the", "garage", "open"],
    ["recall", "garage", "--limit", "1", "--json"],
    ["recall", "garage", "--dialect", "graph", "--since", "1d"],
    ["edit", "paths/car/garage", "--text", "The garage opens at nine."],
    ["edit", "paths/car/garage", "--text", "The garage opens at nine."],
    ["edit", "graph/apples", "--text", "Buy pears."],
    ["edit", "paths/none", "--text", "x"],
    ["show", "paths/car/garage"],
    ["show", "paths/none"],
    ["history", "paths/car/garage", "--json"],
    ["history", "paths/car/garage"],
    ["list", "--actor", "terminal"],
    ["list", "--limit", "0"],
    ["forget", "graph/apples"],
    ["show", "graph/apples"],
    ["add", "x", "--dialect", "none"],
    ["add", "  "],
    ["stats", "--tenant", "none"],
    ["recall", "nothing", "--dialect", "brain"],
    ["recall", "x", "--as-of", "yesterday"],
)
CHANGING = (
    (re.compile(r"\d{4}-\d\d-\d\d[T ][\d:.]+Z?"), "TIME"),
    (re.compile(r"kn_\w+"), "KN"),
    (re.compile(r"\b\d\.\d\d\b|\"score\":[\d.]+"), "SCORE"),
    (re.compile(r"\"version\":\"\w+\"|\"number\":\d+"), "NUMBER"),
)


def environment(data: Path, **changes: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("QUIPU_")}
    return {**kept, "QUIPU_DATA": str(data), "QUIPU_MODEL": "none", **changes}


def quipu(data: Path, *arguments: str, given: bytes = b"", **changes: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [*QUIPU, *arguments],
        cwd=ROOT,
        env=environment(data, **changes),
        input=given,
        capture_output=True,
        timeout=60,
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def told(data: Path) -> list[tuple[int, str, str]]:
    """Return the output of the story without parts that differ from run to run."""
    found = list[tuple[int, str, str]]()
    for words in STORY:
        status, *texts = quipu(data, *words)
        for pattern, name in CHANGING:
            texts = [pattern.sub(name, text) for text in texts]
        found.append((status, texts[0], texts[1]))
    return found


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("memories") / "data", QUIPU_MODEL="none") as server:
        yield server


def post(server: Server, command: str, headers: dict[str, str] | None = None, **asked: Any) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    try:
        given = {"content-type": "application/json", **(headers or {})}
        connection.request("POST", f"/memories/{command}", json.dumps(asked), given)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def test_arguments_are_taken_as_those_of_tools_are(tmp_path: Path) -> None:
    with serving(tmp_path / "data", QUIPU_MODEL="none") as server:
        assert json.loads(post(server, "add", text="half \ud83d", dialect=None, name="half")[1])["id"] == "paths/half"
        assert json.loads(post(server, "list", limit=1.0)[1])["text"] == "half half \ufffd"
        for (status, answer), words in (
            (post(server, "list", limit=1.5), "expected `integer`, got `number` - at `limit`"),
            (post(server, "erasable", about="x" * 5000), "expected `string` of length <= 4096 - at `about`"),
            (post(server, "add", text="x", dialect="brain", until="soon"), "until: must be a date or a time in ISO"),
        ):
            assert (status, words in json.loads(answer)["error"]["message"]) == (400, True), answer


def test_commands_print_the_same_beside_a_server_and_on_the_file(tmp_path: Path) -> None:
    with serving(tmp_path / "data", QUIPU_MODEL="none") as server:
        beside = told(server.data)
    assert [status for status, _, _ in beside] == [*[0] * 5, 1, 0, 0, 1, 1, 0, 1, 0, 0, 0, 2, 0, *[1] * 6]
    assert told(tmp_path / "file") == beside


def test_recall_beside_a_server_imports_nothing_of_the_kernel_but_its_client(running: Server) -> None:
    program = (
        "import sys\nfrom kernel.cli import entry\nsys.argv[1:] = ['recall', 'garage']\nstatus = entry.main()\n"
        "print(status, *sorted(name for name in sys.modules if name.partition('.')[0] in "
        "{'kernel', 'handlers', 'http', 'socket', 'json', 'argparse', 'pathlib'}))"
    )
    quipu(running.data, "add", "The garage is green.", "--name", "green")
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env=environment(running.data),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    *found, last = done.stdout.splitlines()
    assert last == "0 kernel kernel.cli kernel.cli.entry kernel.cli.local_client"
    assert "  The garage is green." in found


def test_colours_are_for_terminals_and_not_with_no_color(running: Server) -> None:
    quipu(running.data, "add", "The garage is green.", "--name", "coloured")

    def on_terminal(*words: str, **changes: str) -> bytes:
        ours, theirs = pty.openpty()
        environ = {name: value for name, value in environment(running.data).items() if name != "NO_COLOR"}
        with subprocess.Popen(
            [*QUIPU, *words], cwd=ROOT, env={**environ, "TERM": "xterm", **changes}, stdout=theirs
        ) as program:
            os.close(theirs)
            shown = b"".join(iter(lambda: _read(ours), b""))
            program.wait(timeout=60)
        os.close(ours)
        return shown

    for words in (["recall", "garage"], ["show", "paths/coloured"]):
        assert b"\x1b[1mpaths/coloured\x1b[0m" in on_terminal(*words), words
        assert b"\x1b" not in on_terminal(*words, NO_COLOR="1")
        assert b"\x1b" not in on_terminal(*words, TERM="dumb")
        assert b"\x1b" not in on_terminal(*words, "--json")
        assert "\x1b" not in quipu(running.data, *words)[1]


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:
        return b""


@pytest.mark.parametrize(
    "words",
    [
        ["add", b"bad \xff"],
        ["edit", "paths/bytes", "--text", b"bad \xff"],
        ["recall", b"bad \xff"],
        ["show", b"x/\xff"],
    ],
    ids=["add", "edit", "recall", "show"],
)
def test_bytes_that_are_no_text_are_refused_without_a_kept_file(
    running: Server, words: list[Any], tmp_path: Path
) -> None:
    quipu(running.data, "add", "red", "--name", "bytes")
    done = subprocess.run(
        [*QUIPU, *words],
        cwd=ROOT,
        env=environment(running.data, TMPDIR=str(tmp_path), PYTHONUTF8="1"),
        capture_output=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (1, b"")
    assert re.fullmatch(rb"quipu: \w+: these bytes are no text in UTF-8; nothing was written\.\n", done.stderr)
    assert (list(tmp_path.iterdir()), json.loads(quipu(running.data, "show", "paths/bytes", "--json")[1])["text"]) == (
        [],
        "red",
    )


def test_standard_input_is_read_as_text_or_refused(running: Server) -> None:
    assert quipu(running.data, "add", "-", "--name", "stdin", given="naïve\n".encode())[0] == 0
    assert json.loads(quipu(running.data, "show", "paths/stdin", "--json")[1])["text"] == "naïve\n"
    assert quipu(running.data, "edit", "paths/stdin", "--text", "-", given=b"ok \xff") == (
        1,
        "",
        "quipu: text: byte 3 is no text in UTF-8; nothing was written.\n",
    )
    assert quipu(running.data, "add", given=b"")[2] == "quipu: text: is empty; nothing was written.\n"


def test_keys_bound_what_a_command_may_do_and_the_token_needs_none(tmp_path: Path) -> None:
    data = tmp_path / "data"
    made = {
        scope: quipu(data, "key", "create", "--scope", scope, *more)[1].split()[-1]
        for scope, more in (("read", ()), ("write", ("--dialect", "scopes")))
    }
    held = quipu(data, "key", "create", "--read", "paths:work")[1].split()[-1]
    with serving(data, QUIPU_MODEL="none") as server:
        bearer = {scope: {"authorization": f"Bearer {secret}"} for scope, secret in made.items()}
        assert quipu(data, "add", "red", "--name", "car")[0] == 0
        url, unread = f"http://127.0.0.1:{server.port}", (1, "", "nothing is stored that this key may read\n")
        assert quipu(data, "list", "--url", url, "--key", "-", given=held.encode() + b"\n") == unread
        assert post(server, "list")[0] == 401
        assert post(server, "list", {"x-quipu-local": "wrong"})[0] == 401
        assert post(server, "show", bearer["read"], id="paths/car")[0] == 200
        assert post(server, "add", bearer["read"], text="x")[0] == 403
        assert post(server, "forget", bearer["read"], id="paths/car")[0] == 403
        assert post(server, "show", bearer["write"], id="paths/car")[0] == 403
        assert post(server, "add", bearer["write"], text="x")[0] == 403
        assert post(server, "add", bearer["write"], text="x", dialect="scopes")[0] == 200
        assert post(server, "stats", {**bearer["write"], "x-quipu-tenant": "other"})[0] == 200  # without effect
        token = {"x-quipu-local": (data / FILE).read_text().split()[2]}
        assert post(server, "stats", {**token, "x-quipu-tenant": "other"})[0] == 404
        give = "Give it by --key; --key - reads it from standard input."
        assert quipu(data, "list", "--url", url)[2] == f"quipu: A key is needed: Authorization: Bearer KEY. {give}\n"
        for path in ("", "/", "/mcp", "/mcp/", "/mcp/paths,common", "/mcp?tools=read"):
            words = ("list", "--url", url + path, "--key", "-")
            assert quipu(data, *words, given=made["read"].encode() + b"\n")[1].endswith("  paths/car  car red\n")


def test_every_command_answers_a_terminal_in_lines(running: Server) -> None:
    assert post(running, "add", text="red", name="car")[0] == 200
    version = json.loads(post(running, "show", id="paths/car")[1])["version"]
    fields: dict[str, dict[str, Any]] = {
        **{name: {} for name in ("list", "stats")},
        **{name: {"id": "paths/car"} for name in ("show", "history")},
        "recall": {"query": "red"},
        "add": {"text": "blue", "name": "bicycle"},
        "edit": {"id": "paths/car", "version": version, "text": "green"},
        "erasable": {"about": "green"},
        "witness": {"project": "web", "seen": []},
        "forget": {"id": "paths/car"},
        "undo": {"call": 4},
        "erase": {"ids": ["paths/bicycle"]},
    }
    assert fields.keys() == COMMANDS.keys()
    for name, asked in fields.items():
        status, body = post(running, f"{name}?as=colour", **asked)
        assert (name, status, body.endswith(b"\n")) == (name, 200, True)


def test_what_is_no_command_is_refused(running: Server) -> None:
    assert post(running, "none")[0] == 404
    assert post(running, "show", id=1)[0] == 400
    assert post(running, "show?as=html", id="paths/x")[0] == 400
    assert post(running, "show", {"content-type": "text/plain"}, id="x")[0] == 415
    assert post(running, "list", {"origin": "http://evil.example"})[0] == 403


class Silent:
    """A server that takes requests and answers none, in the place of the one of a data directory."""

    def __init__(self, data: Path) -> None:
        data.mkdir()
        self.requests = list[bytes]()
        self._listener = socket.create_server(("127.0.0.1", 0))
        LocalAccess.fresh(data).publish([self._listener])
        threading.Thread(target=self._take, daemon=True).start()

    def _take(self) -> None:
        while True:
            connection, _ = self._listener.accept()
            self.requests.append(connection.recv(65536))


def test_request_that_is_answered_late_is_sent_once(tmp_path: Path) -> None:
    data = tmp_path / "data"
    silent = Silent(data)
    program = (
        "import sys\nfrom kernel.cli import entry, local_client\nlocal_client._SECONDS = 0.5\n"
        "sys.argv[1:] = ['add', 'text']\nsys.exit(entry.main())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=environment(data), capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1
    assert re.fullmatch(
        r"quipu: The server on port \d+ has not answered in time\. "
        r"Whether it was done is not known: look before you try again\.\n",
        done.stderr,
    )
    assert (len(silent.requests), (data / "quipu.db").exists()) == (1, False)


def test_address_that_no_server_holds_is_not_used(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with serving(data, QUIPU_MODEL="none") as server:
        assert local_client.find(str(data)) is not None
        server.kill()
    with socket.create_server(("127.0.0.1", server.port)) as other:
        other.settimeout(0.1)
        assert local_client.find(str(data)) is None
        assert quipu(data, "add", "text", "--name", "later")[0] == 0
        with pytest.raises(TimeoutError):
            other.accept()


@pytest.mark.skipif(sys.platform == "win32", reason="one worker only")
def test_workers_accept_the_same_token_after_one_is_replaced(tmp_path: Path) -> None:
    with serving(tmp_path / "data", QUIPU_MODEL="none", QUIPU_WORKERS=2) as server:
        for number in range(6):
            assert quipu(server.data, "add", "text", "--name", f"n{number}")[0] == 0
        assert local_client.find(str(server.data)) is not None


@pytest.mark.parametrize("values", [{"HOME": "/home/ada"}, {"XDG_DATA_HOME": "/d"}, {"QUIPU_DATA": "/q"}, {}])
def test_data_directory_is_that_of_the_configuration(values: dict[str, str]) -> None:
    wanted = Path(values["QUIPU_DATA"]) if "QUIPU_DATA" in values else default_data(values, sys.platform)
    assert Path(local_client.default_data(values)) == wanted
