"""The images run with next to no rights, alone, in a pod and as a unit that systemd starts at the first connection."""

import http.client
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.packaging.containers import BASE, CONFINED, EDGE, LATEST, USER, booted, contained, needs, podman
from tests.packaging.programs import Running
from tests.reliability.server_process import ROOT, Countdown, Ledger, Writer, finish, free_port, until

pytestmark = pytest.mark.ship
EDGE_MB = 170
OPEN = ("--env", "QUIPU_OPEN=1", "--env", "QUIPU_LIMIT_RATE=0")
both = pytest.mark.parametrize("image", [LATEST, EDGE])
Sure = Callable[[str], None]


@both
def test_a_container_needs_no_rights_and_keeps_what_it_was_told(image: str, tmp_path: Path) -> None:
    needs(image)
    with contained(image, tmp_path / "data", *OPEN) as server:
        assert server.remembers("car/日本", "My automobile goes to the garage in May.", "vehicle maintenance")
        process = Path("/proc", server.inspect("{{.State.Pid}}"), "status").read_text()
        assert set(re.findall(r"^[UG]id:\t(.*)$", process, re.M)) == {"\t".join([str(USER)] * 4)}
        assert re.findall(r"^Cap(?:Prm|Eff|Bnd|Amb):\t(\w+)$", process, re.M) == ["0" * 16] * 4
        assert podman("healthcheck", "run", server.id).returncode == 0
        assert server.stop() == 0
        server.start()
        assert server.finds("car/日本", "vehicle maintenance")
        assert server.stop() == 0


@both
def test_the_port_can_be_chosen_and_health_asks_there(image: str, tmp_path: Path) -> None:
    needs(image)
    with contained(image, tmp_path / "data", *OPEN, "--env", "PORT=9000", port=9000) as server:
        assert podman("exec", server.id, "quipu", "health").returncode == 0
        assert podman("exec", server.id, "quipu", "health", "--port", "9001", check=False).returncode == 1


@both
def test_a_container_that_is_stopped_under_load_has_kept_every_answered_write(image: str, tmp_path: Path) -> None:
    needs(image)
    ledger, data = Ledger(), tmp_path / "data"
    with contained(image, data, *OPEN) as server:
        for life in range(2):
            enough = Countdown(400)
            writers = [Writer(server.port, f"{life}-{name}", life * 8 + name, enough) for name in range(8)]
            for writer in writers:
                writer.start()
            assert enough.done.wait(60)
            assert server.stop() == 0
            finish(writers)
            assert [writer.errors for writer in writers if writer.errors] == []
            assert ledger.take(writers, data) == []
            server.start()
    assert len(ledger.known) > 200


def test_the_edge_image_is_small_and_holds_nothing_but_the_program() -> None:
    needs(EDGE)
    assert int(podman("image", "inspect", "--format", "{{.Size}}", EDGE).stdout) / 1e6 <= EDGE_MB
    for name in ("sh", "/bin/sh", "python3", "ls"):
        assert podman("run", "--rm", "--network", "none", "--entrypoint", name, EDGE, check=False).returncode == 127


class Pod(Running):
    """The pod of the manifest, under names and on a port of its own."""

    def __init__(self, folder: Path) -> None:
        super().__init__(free_port())
        self.name, self.volume = f"quipu-{self.port}", f"quipu-data-{self.port}"
        text = (ROOT / ".ci" / "ship" / "pod.yaml").read_text(encoding="utf-8")
        text = text.replace("hostPort: 7847", f"hostPort: {self.port}").replace("quipu-data", self.volume)
        self.manifest = folder / "pod.yaml"
        self.manifest.write_text(text.replace("  name: quipu\n", f"  name: {self.name}\n"), encoding="utf-8")

    @property
    def container(self) -> str:
        """The name podman gives its container."""
        return f"{self.name}-server"


@pytest.fixture
def pod(tmp_path: Path) -> Iterator[Pod]:
    """A pod that plays."""
    needs(LATEST)
    found = Pod(tmp_path)
    try:
        podman("kube", "play", str(found.manifest))
        yield found
    finally:
        podman("kube", "down", str(found.manifest), check=False)
        podman("volume", "rm", "--force", found.volume, check=False)


def test_the_pod_becomes_healthy_and_keeps_its_data(pod: Pod) -> None:
    until(pod.healthy, "the pod")
    until(lambda: podman("healthcheck", "run", pod.container, check=False).returncode == 0, "the probe of the pod")
    assert pod.remembers("car", "My automobile goes to the garage in May.", "vehicle maintenance")
    shown = podman("inspect", "--format", "{{.HostConfig.ReadonlyRootfs}} {{.Config.User}}", pod.container).stdout
    assert shown.split() == ["true", f"{USER}:{USER}"]
    podman("kube", "down", str(pod.manifest))
    pod.manifest.write_text(pod.manifest.read_text(encoding="utf-8").split("\n---\n")[1], encoding="utf-8")
    podman("kube", "play", str(pod.manifest))
    until(pod.healthy, "the pod, played again")
    assert pod.finds("car", "vehicle maintenance")


@pytest.fixture
def unit() -> Iterator[Sure]:
    """A machine with systemd and the units; runs a shell command on it that must succeed."""
    needs(BASE)
    with booted(f"{ROOT / 'dist' / 'quipu'}:/opt/quipu:ro", f"{ROOT / '.ci' / 'ship'}:/units:ro") as machine:

        def sure(command: str) -> None:
            podman("exec", machine, "sh", "-ec", command)

        sure("cp /units/quipu.service /units/quipu.socket /etc/systemd/system/")
        sure("sed -i s/QUIPU_IDLE_EXIT=300/QUIPU_IDLE_EXIT=2/ /etc/systemd/system/quipu.service")
        sure("systemd-analyze verify quipu.service quipu.socket && systemctl start quipu.socket")
        yield sure


POST = """python3 - <<'END'
import urllib.request
body = {"content-type": "application/json"}
for tool, said in (("add_memory", b'{"path": "%s", "content": "My car"}'), ("read_memory", b'{"path": "first"}')):
    asked = urllib.request.Request("http://127.0.0.1:7847/tools/" + tool, said, body)
    assert b"car" in urllib.request.urlopen(asked).read() or tool == "add_memory"
END"""


def test_systemd_starts_it_at_the_first_connection_and_it_goes_when_idle(unit: Sure) -> None:
    unit("! systemctl is-active quipu.service")
    for path in ("first", "second"):
        unit(POST.replace("%s", path))
        unit("systemctl is-active quipu.service")
        unit("for n in $(seq 100); do systemctl is-active quipu.service || exit 0; sleep 0.2; done; exit 1")
        unit("! systemctl is-failed quipu.service && systemctl is-active quipu.socket")
    unit("systemctl restart quipu.service")
    unit(POST.replace("%s", "third"))
    unit("systemctl stop quipu.service && test $(systemctl show -P NRestarts quipu.service) = 0")
    unit("systemd-analyze security --no-pager --threshold=15 quipu.service")


def test_a_container_that_anybody_could_reach_wants_a_key_first(tmp_path: Path) -> None:
    needs(EDGE)
    volume = ("--volume", f"{tmp_path}:/data")
    os.chown(tmp_path, USER, USER)
    refused = podman("run", "--rm", *CONFINED, *volume, EDGE, check=False)
    assert (refused.returncode, refused.stderr.count("quipu key create")) == (1, 1)
    key = podman("run", "--rm", *CONFINED, *volume, EDGE, "key", "create", "--scope", "write").stdout.strip()
    with contained(EDGE, tmp_path) as server:
        assert podman("healthcheck", "run", server.id).returncode == 0
        for shown, status in (({}, 401), ({"authorization": f"Bearer {key}"}, 200)):
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
            connection.request("POST", "/tools/list_memories", "{}", {"content-type": "application/json", **shown})
            assert connection.getresponse().status == status
            connection.close()
