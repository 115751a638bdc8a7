"""`quipu service`: the definition for each platform, and the commands that its service manager gets."""

import plistlib
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from kernel.cli.client_entries import LaunchCommand
from kernel.cli.main import main
from kernel.cli.service import define
from kernel.core.config import Config, from_mapping
from kernel.core.errors import Fault

ENV = {
    "HOME": "/home/ada",
    "QUIPU_DATA": "/srv/my data",
    "QUIPU_METRICS": "1",
    "QUIPU_BRAIN_DATABASES": 'a,"b" 100%$X',
    "PORT": "8080",
    "PATH": "/bin",
}
STARTED = LaunchCommand(("/opt/My Quipu/quipu",), {"PYTHONPATH": "/opt"})

UNIT = """[Unit]
Description=Quipu, a memory server for AI agents

[Service]
Type=exec
ExecStart="/opt/My Quipu/quipu" "serve" "--data" "/srv/my data" "--host" "127.0.0.1" "--port" "8080"
Environment="PYTHONPATH=/opt"
Environment="QUIPU_BRAIN_DATABASES=a,\\"b\\" 100%%$$X"
Environment="QUIPU_METRICS=1"
Restart=on-failure
TimeoutStopSec=10
UMask=0077
NoNewPrivileges=yes

[Install]
WantedBy=default.target
"""


@pytest.fixture
def config() -> Config:
    return from_mapping(ENV)


def test_systemd_unit_starts_the_server_with_these_settings(config: Config) -> None:
    service = define(config, STARTED, "linux")
    assert (service.file, service.content.decode()) == (Path("/home/ada/.config/systemd/user/quipu.service"), UNIT)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd on this machine")
def test_systemd_accepts_the_unit(config: Config, tmp_path: Path) -> None:
    unit = tmp_path / "quipu.service"
    unit.write_bytes(define(config, LaunchCommand(("/bin/true",)), "linux").content)
    done = subprocess.run(
        ["systemd-analyze", "verify", "--user", "--man=no", str(unit)], capture_output=True, text=True, timeout=60
    )
    assert [line for line in done.stderr.splitlines() if "quipu" in line] == []


def test_launchd_agent_starts_at_login_and_after_a_crash(config: Config) -> None:
    service = define(config, STARTED, "darwin")
    assert service.file == Path("/home/ada/Library/LaunchAgents/io.github.quipu-memory.quipu.plist")
    assert plistlib.loads(service.content) == {
        "Label": "io.github.quipu-memory.quipu",
        "ProgramArguments": [
            "/opt/My Quipu/quipu",
            *("serve", "--data", "/srv/my data", "--host", "127.0.0.1", "--port", "8080"),
        ],
        "EnvironmentVariables": {
            "PYTHONPATH": "/opt",
            "QUIPU_BRAIN_DATABASES": 'a,"b" 100%$X',
            "QUIPU_METRICS": "1",
        },
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "ProcessType": "Interactive",
        "StandardErrorPath": "/home/ada/Library/Logs/quipu.log",
        "Umask": 0o077,
        "WorkingDirectory": "/srv",
    }


def test_scheduled_task_starts_at_logon_without_a_window_or_a_time_limit(config: Config) -> None:
    values = {**ENV, "QUIPU_BRAIN_DATABASES": "", "USERPROFILE": "C:/Users/ada", "HOME": ""}
    service = define(from_mapping(values), LaunchCommand(("C:/Program Files/quipu.exe",)), "win32")
    assert service.file == Path("C:/Users/ada/AppData/Local/quipu/service.xml")
    task = ET.fromstring(service.content)
    texts = {str(found.tag).rpartition("}")[2]: (found.text or "").strip() for found in task.iter()}
    assert texts["Command"] == "conhost.exe"
    assert texts["Arguments"] == (
        '--headless cmd.exe /d /s /c "set "QUIPU_METRICS=1" && '
        '"C:/Program Files/quipu.exe" serve --data "/srv/my data" --host 127.0.0.1 --port 8080"'
    )
    assert (texts["ExecutionTimeLimit"], texts["Hidden"], texts["StopIfGoingOnBatteries"]) == ("PT0S", "true", "false")
    assert "LogonTrigger" in texts


def test_other_systems_are_told_the_command(config: Config) -> None:
    with pytest.raises(Fault, match="no service manager for freebsd14: start `/opt/My Quipu/quipu serve"):
        define(config, STARTED, "freebsd14")


@pytest.fixture
def systemctl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """A `systemctl` that notes its arguments, and fails for `stop`; returns its arguments."""
    noted, program = tmp_path / "noted", tmp_path / "bin" / "systemctl"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\necho "$@" >>{noted}\n[ "$2" != stop ]\n')
    program.chmod(0o755)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("PATH", f"{program.parent}:/bin:/usr/bin")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return lambda: noted.read_text().splitlines()


def test_service_is_installed_asked_for_and_removed(
    systemctl: Callable[[], list[str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    unit = tmp_path / "home" / ".config" / "systemd" / "user" / "quipu.service"
    assert main(["service", "status"]) == 1
    assert capsys.readouterr().err == "quipu: Quipu is not installed as a service: `quipu service install`\n"
    assert main(["service", "install", "--data", str(tmp_path / "data")]) == 0
    assert f'"--data" "{tmp_path / "data"}"' in unit.read_text()
    assert main(["service", "status"]) == 0
    assert main(["service", "stop"]) == 1
    assert capsys.readouterr().err.endswith("systemctl --user stop quipu.service ended with status 1\n")
    assert main(["service", "remove"]) == 0
    assert not unit.exists()
    assert systemctl() == [
        "--user daemon-reload",
        "--user enable quipu.service",
        "--user restart quipu.service",
        "--user --no-pager status quipu.service",
        "--user stop quipu.service",
        "--user disable --now quipu.service",
    ]


def test_a_failed_installation_leaves_no_file_and_says_how_to_go_on(
    systemctl: Callable[[], list[str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bin" / "systemctl").write_text("#!/bin/sh\nexit 1\n")
    unit = tmp_path / "home" / ".config" / "systemd" / "user" / "quipu.service"
    assert main(["service", "install", "--data", str(tmp_path / "data")]) == 1
    error = capsys.readouterr().err
    assert error.startswith("quipu: systemctl --user daemon-reload ended with status 1. Nothing was installed. In a ")
    assert not unit.exists()
    unit.write_text("[Unit]\n")
    assert main(["service", "install", "--data", str(tmp_path / "data")]) == 1
    assert unit.read_text() == "[Unit]\n"


def test_missing_service_manager_is_named(
    systemctl: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert main(["service", "install"]) == 1
    assert capsys.readouterr().err.startswith("quipu: systemctl is not installed")
