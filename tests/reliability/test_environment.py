"""Too little memory, a folder that cannot be used and an engine that is too old are told in one line, and a process
that lives on serves as before.
"""

import json
import os
import resource
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import IO

import apsw
import pytest

from kernel.core.config import Config
from kernel.core.errors import Fault
from kernel.embed.model import Embedder
from kernel.server import app
from kernel.server.app import Kernel
from tests.catalogue import Catalogue
from tests.conftest import Call, everything
from tests.reliability.server_process import LOST, ROOT, Client, disagreements, free_port, memories, serving, until
from tests.reliability.write_scenario import PATHS, SCOPES, Kept
from tests.support.reliability_power_cut import run

NOBODY = 65534
LARGE = "many words " * 300_000


def test_an_engine_without_memory_is_busy_and_leaves_nothing_of_the_call(
    kernel: Kernel, call: Call, catalogue: Catalogue
) -> None:
    kept, refused = Kept(), 0
    story = [*PATHS[:4], *SCOPES[:13]]
    try:
        for step in story:
            before = everything(kernel)
            for room in (0, 10_000, 40_000):
                apsw.hard_heap_limit(apsw.memory_used() + room)
                reply = call(step.tool, **kept.arguments(step))
                apsw.hard_heap_limit(0)
                if reply.fault is None:
                    break
                assert reply.fault == "busy", (step, room, reply)
                assert everything(kernel) == before
                refused += 1
            else:
                reply = call(step.tool, **kept.arguments(step))
            assert reply.fault is None
            kept.take(step, reply)
    finally:
        apsw.hard_heap_limit(0)
    assert refused > len(story)
    catalogue("R08", injected="engine without memory", times=refused, outcome="busy, nothing half done, then done")


def test_memory_that_ends_inside_a_call_is_busy_for_that_call_alone(
    kernel: Kernel, call: Call, catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_embedder: Embedder, _texts: object) -> None:
        raise MemoryError

    before = everything(kernel)
    with monkeypatch.context() as patch:
        patch.setattr(Embedder, "embed", fail)
        for number in range(5):
            reply = call("add_memory", path=f"new/{number}", content="no room")
            assert (reply.fault, b"Too little memory" in reply.body) == ("busy", True)
    assert everything(kernel) == before
    assert call("add_memory", path="new/0", content="room again").fault is None
    catalogue("R08", injected="MemoryError inside a call", times=5, outcome="busy, nothing half done, then served")


SHORT_OF_MEMORY = """
import resource
import sys
from pathlib import Path
from kernel.core.text import json_decoder, json_text
value = [["large", "many words " * 300_000]] * 5
text, decode = json_text(value).encode(), json_decoder(list)
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 2_000_000, resource.RLIM_INFINITY))
try:
    decode(text) if sys.argv[1] == "decode" else json_text(value)
except MemoryError:
    print("MemoryError")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the address space of a process is read from /proc")
@pytest.mark.parametrize("work", ["decode", "encode"])
def test_json_that_exceeds_the_memory_is_an_error_and_not_the_end_of_the_process(work: str) -> None:
    command = [sys.executable, "-c", SHORT_OF_MEMORY, work]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "MemoryError\n")


# After a call, so many requests for memory are granted, and so many refused, to whatever thread they are of.
FAILING_REQUESTS = """
import threading
import time
import _testcapi
from kernel.store.context import CallContext
from kernel.store.queue import CallQueue, Job, ThreadPool, discard

def answered(granted, refused):
    granting, done = threading.Lock(), []  # until the first call; its release asks for no memory
    granting.acquire()

    def run(jobs):
        if granting.locked():
            _testcapi.set_nomemory(granted, granted + refused)
            granting.release()
        else:
            done.extend(jobs)

    pool = ThreadPool("pool", 2)
    queue = CallQueue(pool, run, group=4)
    pool.begin_all()
    callers = [CallContext("things", "add", name) for name in "ab"]
    queue.put(Job(int, callers[0], discard))
    granting.acquire(timeout=10)
    time.sleep(0.005)
    granting.release()
    _testcapi.remove_mem_hooks()
    for number in range(4):
        queue.put(Job(int, callers[number % 2], discard))
    end = time.monotonic() + 10
    while len(done) < 4 and time.monotonic() < end:
        time.sleep(0.001)
    return len(done), queue.waiting, pool.bytes, [thread.is_alive() for thread in pool._threads]

for refused in (1, 2, 40):
    for granted in range(60):
        assert answered(granted, refused) == (4, 0, 0, [True, True]), (granted, refused)
print("served")
"""


@pytest.mark.skipif(find_spec("_testcapi") is None, reason="requests for memory are made to fail by Python's own tests")
def test_a_queue_whose_threads_get_no_memory_serves_the_next_calls() -> None:
    command = [sys.executable, "-c", FAILING_REQUESTS]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (0, "served\n"), done.stderr


def address_space(pid: int) -> int:
    """Bytes of address space a process has."""
    words = Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()
    return int(words[0]) * os.sysconf("SC_PAGE_SIZE")


class Sender(threading.Thread):
    """Adds large memories; return the answers, and the accepted memories."""

    def __init__(self, port: int, name: str) -> None:
        super().__init__(daemon=True)
        self.answers: list[int] = []
        self.kept: dict[str, str] = {}
        self._port, self._name = port, name

    def run(self) -> None:
        client = Client(self._port)
        try:
            for turn in range(4):
                path = f"{self._name}/{turn}"
                content = LARGE if turn % 2 else LARGE[:900_000]  # past the bound of a memory, and below it
                status, _ = client.call("add_memory", path=path, content=content)
                self.answers.append(status)
                if status == 200:
                    self.kept[path] = content
        except TimeoutError:  # with an answer that never comes
            self.answers.append(-1)
        except LOST:
            self.answers.append(0)
        finally:
            client.close()


@pytest.mark.skipif(sys.platform != "linux", reason="limits of another process are set on Linux alone")
def test_a_server_that_gets_no_more_memory_refuses_what_is_large_and_loses_nothing(
    tmp_path: Path, catalogue: Catalogue
) -> None:
    with serving(tmp_path / "data") as server:
        client = Client(server.port)
        assert client.call("add_memory", path="small", content="from before")[0] == 200
        client.close()  # it would be idle for as long as the senders take
        bound = address_space(server.process.pid)
        resource.prlimit(server.process.pid, resource.RLIMIT_AS, (bound, resource.RLIM_INFINITY))
        senders = [Sender(server.port, f"large/{number}") for number in range(12)]
        for sender in senders:
            sender.start()
        for sender in senders:
            sender.join()
        assert server.process.poll() is None
        resource.prlimit(server.process.pid, resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        client = Client(server.port)
        assert client.call("read_memory", path="small")[0] == 200
        client.close()
    answers = [status for sender in senders for status in sender.answers]
    kept = {path: content for sender in senders for path, content in sender.kept.items()}
    # 0: without memory to read a request into, its connection is closed.
    assert set(answers) <= {0, 200, 400, 413, 503}
    assert memories(tmp_path / "data").items() >= kept.items()
    assert disagreements(tmp_path / "data") == []
    outcome = f"{len(answers) - len(kept)} of {len(answers)} refused, lives on, 0 lost"
    catalogue("R08", injected="server at the end of its address space", times=1, outcome=outcome)


@pytest.mark.skipif(sys.platform != "linux", reason="limits of another process are set on Linux alone")
def test_a_client_of_stdio_is_answered_once_there_is_memory_again(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "kernel", "stdio", "--data", str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(line_of_call(1, "small", "from before"))
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["id"] == 1
        resource.prlimit(process.pid, resource.RLIMIT_AS, (address_space(process.pid), resource.RLIM_INFINITY))
        sender = threading.Thread(target=send_large, args=(process.stdin,), daemon=True)
        sender.start()
        sender.join(60)
        resource.prlimit(process.pid, resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        process.stdin.write(line_of_call(99, "after", "again"))
        process.stdin.close()
        assert 99 in [json.loads(line)["id"] for line in process.stdout]
    assert process.returncode == 0
    assert memories(tmp_path).items() >= {"small": "from before", "after": "again"}.items()


def line_of_call(number: int, path: str, content: str) -> bytes:
    arguments = {"path": path, "content": content}
    params = {"name": "add_memory", "arguments": arguments}
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}).encode() + b"\n"


def send_large(to: IO[bytes]) -> None:
    for number in range(2, 14):
        to.write(line_of_call(number, f"large/{number}", LARGE[: 900_000 if number % 3 else 2_000_000]))
        to.flush()


@pytest.mark.skipif(sys.platform != "linux", reason="limits of another process are set on Linux alone")
def test_a_server_that_may_open_no_more_files_answers_over_the_connections_it_has(tmp_path: Path) -> None:
    with serving(tmp_path / "data") as server:
        client = Client(server.port)
        assert client.call("add_memory", path="tea", content="Ada likes tea.")[0] == 200
        maps = Path(f"/proc/{server.process.pid}/maps")
        until(lambda: "simsimd" in maps.read_text(encoding="utf-8"), "the library that compares vectors")
        most = resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE)[1]
        files = len([*Path(f"/proc/{server.process.pid}/fd").iterdir()])
        resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (files, most))
        answers = [client.call(name, query="Ada tea")[0] for name in ("recall", "search_nodes")]
        resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (most, most))
        assert answers == [200, 200]
        client.close()
        client = Client(server.port)
        assert client.call("read_memory", path="tea")[0] == 200
        client.close()


def started(data: Path, *before: str) -> tuple[int, str]:
    """The status and the last line of a server that cannot start, run by another program; there is no traceback."""
    command = [*before, sys.executable, "-m", "kernel", "serve", "--data", str(data), "--port", str(free_port())]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert "Traceback" not in done.stderr
    return done.returncode, done.stderr.splitlines()[-1]


@contextmanager
def readonly(folder: Path) -> Iterator[None]:
    """The folder as a file system that cannot be written to, until the end of the block."""
    try:
        run("mount", "--bind", str(folder), str(folder))
    except OSError as error:
        pytest.skip(f"no file system can be mounted here: {error}")
    try:
        run("mount", "-o", "remount,ro,bind", str(folder))
        yield
    finally:
        run("umount", str(folder))


def test_a_file_system_that_cannot_be_written_to_is_told_in_one_line(tmp_path: Path, catalogue: Catalogue) -> None:
    data = tmp_path / "data"
    app.open_kernel(Config(data=data)).store.close()
    before = (data / "quipu.db").read_bytes()
    with readonly(data):
        status, line = started(data)
        assert (status, line.partition(";")[0]) == (
            1,
            f"quipu: Cannot write to storage: {data} cannot be used: its file system is mounted read-only",
        )
    assert (data / "quipu.db").read_bytes() == before
    catalogue("R09", injected="read-only file system", times=1, outcome="one line, status 1, file as it was")


def done(data: Path, *words: str) -> tuple[int, str]:
    """The exit status of a command, and the last line of its errors."""
    command = [sys.executable, "-m", "kernel", *words, "--data", str(data)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    return ended.returncode, ended.stderr.rpartition("quipu: ")[2].strip()


@pytest.mark.parametrize("state", ["closed", "killed", "without an index of the log", "open"])
def test_a_file_system_that_cannot_be_written_to_can_be_backed_up(state: str, tmp_path: Path) -> None:
    data, copies = tmp_path / "data", tmp_path / "copies"
    copies.mkdir()
    with serving(data) as server:
        client = Client(server.port)
        assert client.call("add_memory", path="boat", content="The boat is red.")[0] == 200
        client.close()
        if state != "open":
            server.stop() if state == "closed" else server.kill()
        if state == "without an index of the log":
            (data / "quipu.db-shm").unlink()
            assert (data / "quipu.db-wal").stat().st_size > 0
            (data / "quipu.lock").unlink()
        (data / "notes" / ".mnemonics").mkdir(parents=True)
        (data / "notes" / ".mnemonics" / "plan.md").write_text("Paint the boat.", encoding="utf-8")
        with readonly(data):
            assert done(data, "backup", str(copies / "one.db"))[0] == 0
            assert done(data, "backup", "--all", str(copies / "all"))[0] == 0
            status, line = done(data, "backup")
            assert (status, str(data) in line, line.endswith(": Read-only file system")) == (1, True, True)
    assert {path.name for path in copies.iterdir()} == {"one.db", "all"}
    assert [file.read_text(encoding="utf-8") for file in copies.rglob("plan.md")] == ["Paint the boat."]
    for copy in copies.iterdir():
        other = tmp_path / f"other-{copy.name}"
        assert done(other, "restore", str(copy))[0] == 0
        with closing(apsw.Connection(str(other / "quipu.db"))) as db:
            rows = db.execute("SELECT path, content FROM paths_memory").fetchall()
        assert rows == [("boat", "The boat is red.")]


def test_a_folder_of_somebody_else_is_told_in_one_line(tmp_path: Path, catalogue: Catalogue) -> None:
    powerless = ("setpriv", "--bounding-set=-dac_override,-dac_read_search")
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("only root can give a folder away, and setpriv take from root what it may do with any folder")
    data = tmp_path / "data"
    app.open_kernel(Config(data=data)).store.close()
    os.chown(data, NOBODY, NOBODY)
    assert started(data, *powerless) == (1, f"quipu: Cannot use the data directory {data}: Permission denied")
    catalogue("R09", injected="folder of another user", times=1, outcome="one line, status 1")


@pytest.mark.slow
def test_the_owner_of_a_folder_owns_what_root_has_made_in_it(tmp_path: Path, catalogue: Catalogue) -> None:
    if sys.platform == "win32" or os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    data, exported, ours = tmp_path / "data", tmp_path / "all.jsonl", tmp_path / "ours"
    app.open_kernel(Config(data=data)).store.close()
    ours.mkdir()
    (ours / "secret").touch()
    for path in (data, *data.rglob("*")):
        os.chown(path, NOBODY, NOBODY)
    (data / "link").symlink_to(ours / "secret")
    (data / "folder").symlink_to(ours)
    (data / "name").hardlink_to(ours / "secret")
    for command in (
        ("key", "create", "--scope", "read"),
        ("add", "Tea at five.", "--name", "tea"),
        ("export", "jsonl", str(exported)),
        ("import", str(exported), "--tenant", "acme"),
        ("backup", str(tmp_path / "copy.db")),
        ("restore", str(tmp_path / "copy.db")),
    ):
        done = subprocess.run(
            [sys.executable, "-m", "kernel", *command, "--data", str(data)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        made = [path for path in data.rglob("*") if not path.is_symlink() and path.name != "name"]
        assert {path.stat().st_uid for path in made} == {NOBODY}, command
    assert {path.lstat().st_uid for path in (ours, ours / "secret", data / "link", data / "folder")} == {0}
    assert (data / "tenants" / "acme" / "quipu.db").exists()
    catalogue("R09", injected="commands of root", times=6, outcome="all that they made belongs to the owner")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="an open file cannot be removed there")
@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("way", ["removed", "moved", "replaced"])
def test_a_file_that_is_removed_or_replaced_takes_no_more_writes(
    tmp_path: Path, workers: str, way: str, catalogue: Catalogue
) -> None:
    data, file = tmp_path / "data", tmp_path / "data" / "quipu.db"
    with serving(data, QUIPU_WORKERS=workers) as server, ExitStack() as stack:
        clients = [stack.enter_context(closing(Client(server.port))) for _ in range(8)]
        for number, client in enumerate(clients):
            assert client.call("add_memory", path=f"before/{number}", content="red")[0] == 200
        file.rename(tmp_path / "aside.db")
        if way == "replaced":
            shutil.copy(tmp_path / "aside.db", file)
        if way == "removed":
            (tmp_path / "aside.db").unlink()
        for number, client in enumerate(clients):
            status, answer = client.call("add_memory", path=f"after/{number}", content="red")
            assert (status, b"quipu.db was removed or replaced" in answer) == (507, True)
            assert client.get("/readyz") == 503
        assert file.exists() == (way == "replaced")
        if way == "moved":
            (tmp_path / "aside.db").rename(file)
            for number, client in enumerate(clients):
                assert client.call("add_memory", path=f"back/{number}", content="red")[0] == 200
                assert client.get("/readyz") == 200
    catalogue("R09", injected=f"database {way} under {workers} workers", times=1, outcome="507, /readyz 503, one error")


@pytest.mark.parametrize("folder", ["/proc/quipu", "/dev/null/quipu"])
def test_a_folder_that_cannot_be_made_is_told_in_one_line(folder: str, catalogue: Catalogue) -> None:
    status, line = started(Path(folder))
    assert (status, line.startswith(f"quipu: Cannot use the data directory {folder}: ")) == (1, True)
    catalogue("R09", injected=f"folder {folder}", times=1, outcome="one line, status 1")


def test_an_engine_that_can_lose_pages_opens_nothing(
    config: Config, monkeypatch: pytest.MonkeyPatch, catalogue: Catalogue
) -> None:
    app.open_kernel(config).store.close()
    before = config.file.read_bytes()
    for version in (3_040_000, 3_050_004, 3_051_002):
        with monkeypatch.context() as patch:
            patch.setattr("kernel.engines.migrations.sqlite_version", lambda version=version: version)
            with pytest.raises(Fault, match=r"SQLite 3\.51\.3 or newer is needed"):
                app.open_kernel(config)
    assert config.file.read_bytes() == before
    app.open_kernel(config).store.close()
    catalogue("R12", injected="SQLite older than 3.51.3", times=3, outcome="refused by name, file as it was")
