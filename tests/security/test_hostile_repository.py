"""A hostile repository: nothing from outside its root in any output, request, log or store, and nothing waits."""

import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from handlers.common.hooks import CLIENTS
from handlers.importers import IMPORTS
from kernel.cli import agent_commands, hook_client, main, witness
from kernel.cli.hook_files import HOOK_CLIENTS, plugin
from kernel.cli.main import parser
from kernel.core.config import Config
from kernel.core.errors import Fault
from tests.catalogue import Catalogue
from tests.conftest import Call
from tests.imports.harness import Shell
from tests.reliability.server_process import ROOT, Client, serving
from tests.security.hostile_repositories import CANARY, PLACES, TEXT, Outside, committed, outside_of, shapes

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are neither pipes nor links for everybody"),
]
EVERY = int(os.environ.get("HOSTILE_EVERY", "3"))  # a client and a kind of import get the shapes in turn
SECONDS = 30  # for one shape on one surface, on a busy machine
EVENTS = ("session-start", "first-prompt", "post-compact")
SUMMARY = "The API moved to port 8123; its tests pass, the worker is next."
FOLDERS = ("rules", "obsidian", "basic-memory", "okf", "claude-code", "codex", "cogx", "project-brain")
# The environment of this process: a link to /proc/self/environ leads there.
ENVIRONMENT = [part for part in Path("/proc/self/environ").read_bytes().split(b"\0") if len(part) > 20][:5]


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Outside:
    return outside_of(tmp_path_factory.mktemp("o"))


@pytest.fixture(scope="module")
def repositories(tmp_path_factory: pytest.TempPathFactory, outside: Outside) -> dict[str, Path]:
    """The root of each shape."""
    roots: dict[str, Path] = {}
    for number, shape in enumerate(shapes()):
        root = tmp_path_factory.mktemp(f"r{number}") / shape.name
        root.mkdir()
        shape.build(root, outside)
        roots[shape.title] = root
    assert len(roots) >= 60
    return roots


@pytest.fixture
def shell(config: Config, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Shell:
    return Shell(config, capsys, tmp_path)


@contextmanager
def limit(title: str) -> Iterator[None]:
    """Fail for a call that waits."""

    def late(_number: int, _frame: FrameType | None) -> None:
        raise AssertionError(f"{title} waits")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def leaked(*outputs: bytes | str) -> int:
    """The bytes of an output, if it has any text from outside."""
    texts = [one.encode("utf-8", "replace") if isinstance(one, str) else one for one in outputs]
    return sum(len(text) for text in texts if CANARY.encode() in text or any(part in text for part in ENVIRONMENT))


def test_a_canary_is_seen_where_it_leaks(outside: Outside) -> None:
    assert leaked(outside.file.read_bytes()) > 0
    assert leaked(Path("/proc/self/environ").read_bytes()) > 0


@pytest.fixture
def hook(
    call: Call, outside: Outside, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str, str, Path], tuple[bytes, ...]]:
    """Run a hook in this process over a store that knows of both projects: return its requests and its output."""
    call("memory_guideline", action="add", scopeType="global", name="check", content="Run make check.")
    told = {"session_id": "o", "kind": "handoff", "metadata_json": json.dumps({"project": str(outside.project)})}
    call("remember", content=f"Handoff of another project {CANARY}", **told)
    sent: list[bytes] = []

    def post(_url: str, path: str, _key: str, body: bytes, *_rest: Any) -> bytes:
        sent.append(body)
        client, event = path.split("/")[2:]
        if b"\\udc" in body:  # half a character is refused before a tool is called
            return b""
        return call(f"hook {event}", **{**json.loads(body), "client": client}).body

    def run(client: str, event: str, root: Path) -> tuple[bytes, ...]:
        sent.clear()
        given = {"session_id": f"{client}-{root}", "cwd": str(root), "prompt": "Where is the key?" * 2}
        text = json.dumps({**given, "compact_summary": SUMMARY}).encode()
        monkeypatch.setattr(hook_client, "_read", lambda _: text)
        words = [event, "--client", client, "--url", "http://127.0.0.1:1"]
        return (hook_client.run(words, {}, time.monotonic() + SECONDS)[0], *sent)

    monkeypatch.setattr(hook_client, "post", post)
    return run


def test_hooks_tell_nothing_of_what_lies_outside(
    hook: Any, repositories: dict[str, Path], capfd: pytest.CaptureFixture[str], catalogue: Catalogue
) -> None:
    found: dict[str, int] = {}
    noted = times = 0
    for number, (title, root) in enumerate(repositories.items()):
        for client in CLIENTS[number % EVERY :: EVERY]:
            for event in EVENTS:
                times += 1
                with limit(title):
                    outputs = hook(client, event, root)
                errors = capfd.readouterr().err
                noted += "is not read" in errors
                if size := leaked(*outputs, errors):
                    found[f"{title}, {client} {event}"] = size
    assert found == {}
    assert noted >= 15 * len(CLIENTS) // EVERY  # of most tricks with prime.md
    catalogue("S14", injected="hostile repositories, hooks", times=times, outcome="0 bytes from outside")


def test_prime_tells_nothing_of_what_lies_outside(
    shell: Shell, repositories: dict[str, Path], capsys: pytest.CaptureFixture[str], catalogue: Catalogue
) -> None:
    shell.run("add", "Ask Ada.", "--name", "web/answers")
    found: dict[str, int] = {}
    spoken = 0
    for title, root in repositories.items():
        with limit(title):
            arguments = parser().parse_args(["prime", "--project", str(root), "--query", "the key"])
            agent_commands.prime(arguments, shell.config)
        printed = capsys.readouterr()
        spoken += "Ask Ada." in printed.out
        if size := leaked(printed.out, printed.err):
            found[title] = size
    assert found == {}
    assert spoken >= len(repositories) // 2  # it has something to say of a project of this name
    catalogue("S14", injected="hostile repositories, prime", times=len(repositories), outcome="0 bytes from outside")


def test_a_witness_reads_nothing_of_what_lies_outside(
    repositories: dict[str, Path], outside: Outside, catalogue: Catalogue
) -> None:
    """It is asked for every file of the corpus, whole and by a line and a symbol, and for a commit, and tells their
    digests.
    """
    names = [name for names in (*PLACES.values(), ("../credentials", str(outside.file))) for name in names]
    canaries = [part.encode() for part in (TEXT, *TEXT.splitlines()) if CANARY in part]
    forbidden = {digest for text in canaries for digest in (witness._blob(text), witness._digest([text.decode()]))}
    commit = committed(outside.project / ".git" / "objects")
    told: dict[str, list[str]] = {}
    for title, root in repositories.items():
        tree = witness.Tree(str(root), "web", SECONDS, 10_000)
        with limit(title):
            tree.words(0, 0, [("", name, 0, "", "", "") for name in (commit, commit[:8])])
            for number, name in enumerate(names):
                places = [(name, symbol, line, "", "", "") for symbol, line in (("", 0), ("", 3), (CANARY, 0))]
                tree.words(number, 0, places)
                tree.words(number, 0, [(name, "", 0, f"{'ab' * 8}:::", "", "web")])
        said = [":".join(row[4:]) for row in tree.news]
        own = {commit[:16]} if "hard links" not in title else set[str]()  # whose names are in the root
        if CANARY in str(said) or (forbidden | own).intersection(":".join(said).split(":")):
            told[title] = said
    assert told == {}
    times = len(repositories) * len(names)
    catalogue("S14", injected="hostile repositories, witness", times=times, outcome="0 bytes from outside")


def test_imports_take_nothing_of_what_lies_outside(
    shell: Shell,
    repositories: dict[str, Path],
    capsys: pytest.CaptureFixture[str],
    catalogue: Catalogue,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(logging, "raiseExceptions", False)  # a handler of an earlier test may have a closed stream
    assert {*FOLDERS} - {"project-brain"} <= {one.kind for one in IMPORTS}
    found: dict[str, int] = {}
    times = 0
    for number, (title, root) in enumerate(repositories.items()):
        for kind in FOLDERS[number % EVERY :: EVERY]:
            times += 1
            said = ""
            with limit(f"{title}, {kind}"), suppress(Fault):
                try:
                    shell.run("import", kind, str(root))
                except Fault as fault:
                    said = fault.message
            printed = capsys.readouterr()
            assert "Traceback" not in printed.err, (title, kind)
            if size := leaked(said, printed.out, printed.err):
                found[f"{title}, {kind}"] = size
    stored = shell.export().read_bytes()
    assert (found, leaked(stored)) == ({}, 0)
    assert b"Ask Ada." in stored
    catalogue("S14", injected="hostile repositories, imports", times=times, outcome="0 bytes from outside")


def test_setup_takes_nothing_from_the_folder_it_is_called_in(
    repositories: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("QUIPU_DATA", str(tmp_path / "data"))
    clients = [client.name for client in HOOK_CLIENTS]
    for number, (title, root) in enumerate(repositories.items()):
        monkeypatch.chdir(root)
        with limit(title):
            assert main.main(["setup", "--client", clients[number % len(clients)], "--hooks", "recall"]) == 0
        printed = capsys.readouterr()
        assert leaked(printed.out, printed.err) == 0, title
    written = [path for path in (tmp_path / "home").rglob("*") if path.is_file()]
    assert leaked(*(path.read_bytes() for path in written)) == 0


PLUGIN = """
import { Quipu } from "./quipu.mjs"
const roots = JSON.parse(process.env.ROOTS)
for (const [title, directory] of Object.entries(roots)) {
  const hooks = await Quipu({ directory, worktree: directory })
  const output = { system: [] }
  await hooks["chat.message"]({ sessionID: title }, { parts: [{ type: "text", text: "Where is the key of it?" }] })
  await hooks["experimental.chat.system.transform"]({ sessionID: title }, output)
  await hooks.event({ event: { type: "session.compacted", properties: { sessionID: title } } })
  await hooks["experimental.chat.system.transform"]({ sessionID: title }, output)
  console.log(JSON.stringify([title, output.system]))
}
"""


def test_the_plugin_of_opencode_tells_nothing_of_what_lies_outside(
    repositories: dict[str, Path], outside: Outside, tmp_path: Path
) -> None:
    node = next((path for name in os.get_exec_path() if (path := Path(name, "node")).is_file()), None)
    if node is None:
        pytest.skip("there is no node")
    data = tmp_path / "data"
    with serving(data) as server:
        with closing(Client(server.port)) as client:
            rule = {"scopeType": "global", "name": "a", "content": "Be kind."}
            assert client.call("memory_guideline", action="add", **rule)[0] == 200
            about = json.dumps({"project": str(outside.project)})
            client.call("remember", content=f"Handoff {CANARY}", session_id="o", kind="handoff", metadata_json=about)
        words = ["env", f"PYTHONPATH={ROOT}", sys.executable, "-P", "-m", "kernel"]
        options = ["--url", f"http://127.0.0.1:{server.port}", "--data", str(data)]
        (tmp_path / "quipu.mjs").write_text(plugin(HOOK_CLIENTS[-1], "recall", words, options), encoding="utf-8")
        (tmp_path / "run.mjs").write_text(PLUGIN, encoding="utf-8")
        # A name that is no text never gets into a string of JavaScript.
        roots = {title: str(root) for title, root in repositories.items() if str(root).isprintable()}
        roots = {title: root for title, root in roots.items() if "prime" in title or "git" in title or "text" in title}
        done = subprocess.run(
            [str(node), "run.mjs"],
            cwd=tmp_path,
            capture_output=True,
            timeout=600,
            env={**os.environ, "ROOTS": json.dumps(roots), "SECRET": CANARY},
        )
        rows = dict(json.loads(line) for line in done.stdout.splitlines())
    assert {*rows} == {*roots}, done.stderr
    assert leaked(done.stdout, done.stderr) == 0
    assert all("Be kind." in "\n".join(rows[title]) for title in roots)


def test_a_file_that_is_swapped_while_it_is_read_gives_one_or_nothing(tmp_path: Path, outside: Outside) -> None:
    (tmp_path / ".quipu").mkdir()
    plain, link, folder = tmp_path / "plain", tmp_path / "link", tmp_path / "folder"
    plain.write_text("Ask Ada.", encoding="utf-8")
    folder.symlink_to(outside.folder)
    ended = threading.Event()

    def swap() -> None:
        while not ended.is_set():
            for make in (lambda: link.symlink_to(outside.file), lambda: link.write_text("Ask Ada.", encoding="utf-8")):
                make()
                with suppress(OSError):
                    link.replace(tmp_path / ".quipu" / "prime.md")
            with suppress(OSError):  # the folder too, for a moment
                here = tmp_path / ".quipu"
                here.rename(tmp_path / "away")
                folder.rename(here)
                here.rename(folder)
                (tmp_path / "away").rename(here)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        with limit("a race"):
            texts = {hook_client.read_intro(str(tmp_path)) for _ in range(3000)}
    finally:
        ended.set()
        thread.join()
    assert {text for text, _ in texts} <= {"", "Ask Ada."}
    assert leaked(*(problem for _, problem in texts)) == 0
