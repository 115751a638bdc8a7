"""`quipu hook EVENT --client NAME` as a process: its imports, its requests, and its silence after every failure."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kernel.cli import hook_client
from kernel.security import local_access
from tests.reliability.server_process import ROOT, serving

START = {"session_id": "s", "source": "startup"}
ANSWER = b'{"hookSpecificOutput":{}}'
OK = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(ANSWER), ANSWER)
SLACK = 5.0  # seconds that a busy machine may take to start the interpreter
HOOK = [sys.executable, "-m", "kernel", "hook"]
TOKEN = "the-token-of-a-running-server"
NONCE = re.compile(rb"x-quipu-nonce: ([0-9a-f]{32})\r\n")


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The data directory of a server that is running."""
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / local_access.FILE).write_text(f"127.0.0.1 1 {TOKEN}\n", encoding="ascii")
    monkeypatch.setenv("QUIPU_DATA", str(folder))
    return folder


def run(event: str, given: bytes, *more: str, folder: Path = ROOT, **environment: str) -> tuple[int, bytes, bytes]:
    """Status, output and errors of a hook."""
    values = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    words = [*HOOK, event, "--client", "claude", *more]
    done = subprocess.run(words, input=given, capture_output=True, cwd=folder, env=values, timeout=30)
    return done.returncode, done.stdout, done.stderr


class Stub:
    """A server that proves itself by a secret, keeps the later requests and does one thing.

    A stranger has no secret, and keeps all requests.
    """

    def __init__(self, act: Callable[[socket.socket], object], secret: str = TOKEN) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.secret = secret
        self.received: list[bytes] = []
        self.act = act
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            with connection:
                try:
                    if self.secret:
                        connection.sendall(self.proof(connection.recv(1 << 20)))
                    self.received.append(connection.recv(1 << 20))
                    self.act(connection)
                except OSError:
                    continue

    def proof(self, request: bytes) -> bytes:
        """The answer to the question for a proof."""
        nonce = NONCE.search(request)
        assert nonce is not None, request
        shown = local_access.proof(self.secret, nonce[1], self.port)
        return b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(shown), shown)

    @property
    def body(self) -> dict[str, Any]:
        """The body of the only request."""
        [request] = self.received
        return json.loads(request.partition(b"\r\n\r\n")[2])


@pytest.fixture
def stub() -> Iterator[Callable[..., Stub]]:
    made: list[Stub] = []

    def make(act: Callable[[socket.socket], object] | bytes = OK, secret: str = TOKEN) -> Stub:
        answer = act
        made.append(Stub(act if callable(act) else lambda connection: connection.sendall(answer), secret))  # pyrefly: ignore[bad-argument-type]
        return made[-1]

    yield make
    for one in made:
        one.listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
        one.listener.close()
        one.thread.join()


def given(**more: Any) -> bytes:
    return json.dumps({**START, **more}).encode()


def trickle(connection: socket.socket) -> None:
    """An answer that takes longer than any event."""
    for byte in OK:
        connection.sendall(bytes([byte]))
        time.sleep(0.2)


FAILING: dict[str, Callable[[socket.socket], object] | bytes] = {
    "401": b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 2\r\n\r\n{}",
    "429": b"HTTP/1.1 429 Too Many Requests\r\ncontent-length: 2\r\n\r\n{}",
    "500": b"HTTP/1.1 500 Internal Server Error\r\ncontent-length: 2\r\n\r\n{}",
    "half": OK[:-5],
    "closed": b"",
    "not-http": b"SSH-2.0-OpenSSH_9.9\r\n",
    "huge": b"HTTP/1.1 200 OK\r\ncontent-length: 300000\r\n\r\n" + b"x" * 300_000,
    "slow": lambda connection: time.sleep(4),
    "trickle": trickle,
}


@pytest.mark.parametrize("failure", FAILING)
@pytest.mark.parametrize("event", ["session-start", "first-prompt"])
def test_a_failing_server_leaves_the_client_alone(event: str, failure: str, stub: Callable[..., Stub]) -> None:
    began = time.monotonic()
    assert run(event, given(prompt="x" * 20), "--url", stub(FAILING[failure]).url) == (0, b"", b"")
    assert time.monotonic() - began < hook_client.EVENTS[event] + SLACK


@pytest.mark.slow
def test_no_server_leaves_the_client_alone() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    assert run("session-start", given(), "--url", url) == (0, b"", b"")
    assert b"ConnectionRefusedError" in run("session-start", given(), "--url", url, "--debug")[2]


@pytest.mark.parametrize(
    "text",
    [b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"cwd": 5}', b'{"workspace_roots": 1}', b"[" * 100_000, b"x" * 10**7],
    ids=["empty", "open", "list", "null", "not-utf8", "number", "roots", "deep", "10 MB"],
)
def test_input_that_is_none_leaves_the_client_alone(text: bytes, stub: Callable[..., Stub]) -> None:
    made = stub()
    assert run("session-start", text, "--url", made.url) == (0, b"", b"")
    assert made.received == []


def test_input_that_never_ends_leaves_the_client_alone(stub: Callable[..., Stub]) -> None:
    words = [*HOOK, "session-start", "--client", "claude", "--url", stub().url]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe, cwd=ROOT) as hook:
        assert hook.wait(30) == 0
        assert hook.stdout is not None
        assert hook.stdout.read() == b""


def test_a_closed_output_leaves_the_client_alone(stub: Callable[..., Stub]) -> None:
    words = [*HOOK, "session-start", "--client", "claude", "--url", stub().url]
    reader, writer = os.pipe()
    os.close(reader)
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=writer, stderr=subprocess.PIPE, cwd=ROOT) as hook:
        os.close(writer)
        assert (hook.communicate(given(), 30)[1], hook.returncode) == (b"", 0)


def test_answer_is_printed_and_only_what_the_event_needs_is_sent(stub: Callable[..., Stub], tmp_path: Path) -> None:
    made, root = stub(), tmp_path / "web"
    (root / ".git").mkdir(parents=True)
    (root / "src").mkdir()
    (root / ".quipu").mkdir()
    (root / ".quipu" / "prime.md").write_text("Ask Ada.", encoding="utf-8")
    sent = given(cwd=str(root / "src"), transcript_path="/secret", tool_input={"a": 1}, user_email="ada@example.com")

    assert run("session-start", sent, "--url", made.url, QUIPU_KEY="k-1") == (0, ANSWER, b"")
    mark = made.body["mark"]
    body = {**START, "cwd": str(root / "src"), "root": str(root), "intro": "Ask Ada.", "mark": mark}
    assert (made.body, len(mark)) == (body, 32)
    assert b"authorization: Bearer k-1\r\n" in made.received[0]
    assert made.received[0].startswith(b"POST /hook/claude/session-start HTTP/1.1\r\n")


def test_a_linked_worktree_belongs_to_its_repository(stub: Callable[..., Stub], tmp_path: Path) -> None:
    made, common = stub(), tmp_path / "web" / ".git"
    (common / "worktrees" / "fix").mkdir(parents=True)
    (common / "worktrees" / "fix" / "commondir").write_text("../..\n", encoding="utf-8")
    (common / "worktrees" / "fix" / "gitdir").write_text(f"{tmp_path / 'fix' / '.git'}\n", encoding="utf-8")
    (tmp_path / "fix").mkdir()
    (tmp_path / "fix" / ".git").write_text(f"gitdir: {common / 'worktrees' / 'fix'}\n", encoding="utf-8")
    run("session-start", given(cwd=str(tmp_path / "fix")), "--url", made.url)
    assert made.body["root"] == str(tmp_path / "web")


def test_a_git_file_decides_nothing_that_the_repository_does_not_confirm(tmp_path: Path) -> None:
    common, fix, hostile = tmp_path / "web" / ".git", tmp_path / "fix", tmp_path / "hostile"
    (common / "worktrees" / "fix").mkdir(parents=True)
    (common / "worktrees" / "fix" / "commondir").write_text("../..\n", encoding="utf-8")
    (common / "worktrees" / "fix" / "gitdir").write_text(f"{fix / '.git'}\n", encoding="utf-8")
    fix.mkdir()
    (fix / ".git").write_text(f"gitdir: {common / 'worktrees' / 'fix'}\n", encoding="utf-8")
    assert hook_client.project_root(str(fix)) == str(tmp_path / "web")

    own = hostile / "x" / "worktrees" / "y"
    own.mkdir(parents=True)
    (own / "commondir").write_text(f"{common}\n", encoding="utf-8")
    (own / "gitdir").write_text(f"{hostile / '.git'}\n", encoding="utf-8")
    (hostile / "deep" / "er").mkdir(parents=True)
    (hostile / "link").symlink_to(hostile / "deep" / "er")
    for named in (
        str(common / "worktrees" / "fix"),  # of another folder
        str(own),  # its own list of worktrees, and the folder of another repository
        str(common),
        "x/worktrees/y",
        "link/../../x/worktrees/y",
        "../web/.git/worktrees/fix",
    ):
        (hostile / ".git").write_text(f"gitdir: {named}\n", encoding="utf-8")
        assert hook_client.project_root(str(hostile)) == str(hostile), named
    (own / "commondir").write_text("../..\n", encoding="utf-8")  # true, and a link makes it look like another's
    (hostile / ".git").write_text("gitdir: link/../../../web/../hostile/x/worktrees/y\n", encoding="utf-8")
    assert hook_client.project_root(str(hostile)) in (str(hostile), str(own.parents[1].parent))


@pytest.mark.slow
def test_a_stranger_on_the_port_gets_nothing_and_says_nothing(
    stub: Callable[..., Stub], data: Path, tmp_path: Path
) -> None:
    project = tmp_path / "secret-project"
    project.mkdir()
    key = "quipu_12345678_" + "k" * 43
    sent = given(cwd=str(project), prompt="a question with a canary")
    for secret in ("", "a-guess"):
        stranger = stub(OK, secret)
        words = ("--url", stranger.url)
        assert run("first-prompt", sent, *words, QUIPU_KEY=key) == (0, b"", b"")
        assert run("session-start", sent, *words) == (0, b"", b"")
        seen = b"".join(stranger.received)
        assert [one for one in (key, "canary", "secret-project", TOKEN) if one.encode() in seen] == []
    ours = stub()  # it proves that it listens elsewhere
    stranger = stub(OK, "")
    ours.port = stranger.port + 1
    assert run("first-prompt", sent, "--url", ours.url) == (0, b"", b"")
    assert b"does not prove" in run("session-start", sent, "--url", stranger.url, "--debug")[2]
    shutil.rmtree(data)
    assert run("first-prompt", sent, "--url", stub().url) == (0, b"", b"")


@pytest.mark.parametrize("how", ["file", "variable", "folders"])
def test_hooks_that_are_switched_off_send_nothing(how: str, stub: Callable[..., Stub], tmp_path: Path) -> None:
    made, project = stub(), tmp_path / "web"
    (project / ".quipu").mkdir(parents=True)
    values: dict[str, Any] = {}
    if how == "file":
        (project / ".quipu" / "off").touch()
    elif how == "variable":
        values["QUIPU_HOOKS"] = "0"
    else:
        values["QUIPU_HOOKS_OFF"] = os.pathsep.join(["/elsewhere", str(tmp_path)])
    assert run("first-prompt", given(cwd=str(project), prompt="x" * 20), "--url", made.url, **values) == (0, b"", b"")
    assert made.received == []


@pytest.mark.parametrize(
    "url", ["http://memory.example:7847", "ftp://127.0.0.1", "127.0.0.1:7847", "http://127.0.0.1:x"]
)
def test_nothing_leaves_the_machine_unencrypted(url: str) -> None:
    assert run("session-start", given(), "--url", url) == (0, b"", b"")


def test_neither_the_kernel_nor_slow_modules_are_imported(tmp_path: Path) -> None:
    """The imports of `quipu hook` of the wheel: its own module, and of the library what the event needs."""
    package = tmp_path / "quipu_memory"
    package.mkdir()
    for name in (
        "cli/hook_client.py",
        "cli/local_client.py",
        "cli/witness.py",
        "cli/git_history.py",
        "core/checkout.py",
    ):
        shutil.copy(ROOT / "kernel" / name, package)
    code = (
        "import sys; before = set(sys.modules); from quipu_memory import hook_client; import time\n"
        'hook_client._read = lambda _: b\'{"cwd": "/"}\'\n'
        "words = ['session-start', '--client', 'claude', '--url', 'http://127.0.0.1:1']\n"
        "try: hook_client.run(words, {}, time.monotonic() + 1)\n"
        "except OSError: pass\n"
        "print(*sorted({name.partition('.')[0] for name in set(sys.modules) - before}))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=30)
    slow = {"kernel", "handlers", "msgspec", "argparse", "pathlib", "http", "email", "ssl", "typing", "urllib"}
    imported = set(done.stdout.split())
    assert "quipu_memory" in imported, done.stderr
    assert imported & slow == set()


@pytest.mark.parametrize("words", [["hook"], ["hook", "status"], ["hook", "session-start"], ["serve"], []])
def test_other_words_are_for_the_parser(words: list[str]) -> None:
    assert not hook_client.is_event(words)


@pytest.mark.slow
def test_a_hook_without_an_address_asks_the_server_on_the_data(tmp_path: Path, data: Path) -> None:
    (data / local_access.FILE).unlink()
    summary = "The API moved to port 8123; its tests pass, the worker is next."
    with serving(data):
        assert run("post-compact", given(cwd=str(tmp_path), compact_summary=summary)) == (0, b"", b"")
        assert b"The API moved to port 8123" in run("session-start", given(cwd=str(tmp_path), session_id="b"))[1]


@pytest.mark.slow
def test_hooks_reach_a_server_with_keys(tmp_path: Path, data: Path) -> None:
    project = tmp_path / "web"
    project.mkdir()
    (data / local_access.FILE).unlink()
    key = subprocess.run(
        [sys.executable, "-m", "kernel", "key", "create", "--scope", "write", "--data", str(data)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    ).stdout.strip()
    file = tmp_path / "key"
    file.write_text(f"{key}\n", encoding="ascii")
    with serving(data) as server:
        url = f"http://127.0.0.1:{server.port}"
        summary = "The API moved to port 8123; its tests pass, the worker is next."
        sent = given(cwd=str(project), compact_summary=summary)
        assert run("post-compact", sent, "--url", url) == (0, b"", b"")
        assert run("post-compact", sent, "--url", url, "--key-file", str(file)) == (0, b"", b"")
        # By the data directory the server proves itself, and by the key alone, as one in a container has to.
        for place in (data, tmp_path / "none", Path("relative")):
            words = ("--url", url, "--data", str(place))
            status, printed, _ = run("session-start", given(cwd=str(project), session_id="t"), *words, QUIPU_KEY=key)
            context = json.loads(printed)["hookSpecificOutput"]["additionalContext"]
            assert (status, context.count("The API moved to port 8123")) == (0, 1)
        start = given(cwd=str(project), session_id="u")
        assert run("session-start", start, "--url", url) == (0, b"", b"")
        words = ("--url", url, "--data", str(tmp_path / "none"), "--debug")
        assert b"does not prove" in run("session-start", start, *words, QUIPU_KEY=f"{key[:-4]}xxxx")[2]
