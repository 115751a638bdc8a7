"""`quipu service`: run the server in the background, from each login or start of the machine on, without root.

The system's own service manager does it: systemd's user manager, launchd, or the Task Scheduler of Windows.
"""

import argparse
import os
import plistlib
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree as ET

from kernel.cli import client_entries, output
from kernel.cli.client_entries import LaunchCommand
from kernel.core.config import Config, user_folder
from kernel.core.errors import Fault

_UNIT = "quipu.service"
_LABEL = "io.github.quipu-memory.quipu"
_TASK = "Quipu"
_TASK_NAMESPACE = "http://schemas.microsoft.com/windows/2004/02/mit/task"
# On the command line instead, or of the process that installs.
_NOT_PASSED_ON = ("QUIPU_DATA", "QUIPU_MODEL", "QUIPU_PROGRAM", "QUIPU_TENANT", "QUIPU_IDLE_EXIT")
# In a systemd unit, % begins a specifier and $ a variable.
_UNIT_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "%": "%%", "$": "$$"})

_NO_SESSION = (
    " In a container, or after `su`, this user has no session of systemd: log in anew, or allow it by `sudo loginctl "
    "enable-linger USER`; else let the system start the server, by the units in docs/deploy.md."
)

Commands = tuple[tuple[str, ...], ...]


class Service(NamedTuple):
    """A definition for one service manager: its file, and the commands that carry out each action.

    `install` runs after the file is written, `remove` before it is deleted.
    """

    file: Path
    content: bytes
    commands: Mapping[str, Commands]
    remark: str = ""
    remedy: str = ""


def run(arguments: argparse.Namespace, config: Config, platform: str = sys.platform) -> int:
    """Carry out one action; return the exit status, that of the service manager for `status`."""
    service = define(config, client_entries.this_program(config), platform)
    action: str = arguments.action
    if action == "install":
        _install(service)
    elif not service.file.exists():
        raise Fault("not_found", "Quipu is not installed as a service: `quipu service install`")
    elif action == "status":
        return _run(service.commands[action][0])
    else:
        _carry_out(service, action)
    if action == "remove":
        service.file.unlink(missing_ok=True)
    output.note(f"{_DONE[action]}: {service.file}")
    if action == "install" and service.remark:
        output.note(service.remark)
    return 0


def _install(service: Service) -> None:
    before = service.file.read_bytes() if service.file.exists() else None
    service.file.parent.mkdir(parents=True, exist_ok=True)
    service.file.write_bytes(service.content)
    try:
        _carry_out(service, "install")
    except Fault as fault:
        if before is None:
            service.file.unlink()
        else:
            service.file.write_bytes(before)
        raise Fault(fault.code, f"{fault.message}. Nothing was installed.{service.remedy}") from None


def _carry_out(service: Service, action: str) -> None:
    for command in service.commands[action]:
        status = _run(command)
        if status and action != "remove":  # a service that does not run can be removed too
            raise Fault("storage", f"{' '.join(command)} ended with status {status}")


_DONE = {"install": "installed and started", "start": "started", "stop": "stopped", "remove": "stopped and removed"}


def _run(command: Sequence[str]) -> int:
    try:
        return subprocess.run(command, check=False).returncode  # noqa: S603  the words are ours
    except FileNotFoundError:
        raise Fault("invalid", f"{command[0]} is not installed, so that this system has no services of users") from None


def define(config: Config, program: LaunchCommand, platform: str) -> Service:
    words = [*program.words, "serve", "--data", str(config.data.absolute())]
    words += ["--host", config.host, "--port", str(config.port)]
    if config.environment.get("QUIPU_MODEL"):
        words += ["--model", str(config.model.absolute()) if config.model else "none"]
    env = {**program.env, **client_entries.settings_without(config, _NOT_PASSED_ON)}
    home = user_folder(config.environment)
    if platform == "darwin":
        return _launchd(home, words, env, config.data)
    if platform == "win32":
        return _task(home, words, env, config.environment)
    if platform == "linux":
        return _systemd(home, words, env, config.environment)
    raise Fault("invalid", f"there is no service manager for {platform}: start `{' '.join(words)}` yourself")


def _systemd(home: Path, words: Sequence[str], env: Mapping[str, str], values: Mapping[str, str]) -> Service:
    lines = [
        "[Unit]",
        "Description=Quipu, a memory server for AI agents",
        "",
        "[Service]",
        "Type=exec",
        f"ExecStart={' '.join(_quoted(word) for word in words)}",
        *(f"Environment={_quoted(f'{name}={value}')}" for name, value in env.items()),
        "Restart=on-failure",
        "TimeoutStopSec=10",
        "UMask=0077",
        "NoNewPrivileges=yes",
        "",
        "[Install]",
        "WantedBy=default.target",
        "",
    ]
    folder = Path(values.get("XDG_CONFIG_HOME") or home / ".config") / "systemd" / "user"
    manager = ("systemctl", "--user")
    commands: dict[str, Commands] = {
        "install": ((*manager, "daemon-reload"), (*manager, "enable", _UNIT), (*manager, "restart", _UNIT)),
        "start": ((*manager, "start", _UNIT),),
        "stop": ((*manager, "stop", _UNIT),),
        "status": ((*manager, "--no-pager", "status", _UNIT),),
        "remove": ((*manager, "disable", "--now", _UNIT),),
    }
    remark = "It runs while you are logged in; `loginctl enable-linger` keeps it running from boot on."
    return Service(folder / _UNIT, "\n".join(lines).encode(), commands, remark, _NO_SESSION)


def _quoted(word: str) -> str:
    return f'"{word.translate(_UNIT_ESCAPES)}"'


def _launchd(home: Path, words: Sequence[str], env: Mapping[str, str], data: Path) -> Service:
    definition: dict[str, Any] = {
        "Label": _LABEL,
        "ProgramArguments": list(words),
        "EnvironmentVariables": dict(env),
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "ProcessType": "Interactive",  # without the delays of background jobs
        "StandardErrorPath": str(home / "Library" / "Logs" / "quipu.log"),
        "Umask": 0o077,
        "WorkingDirectory": str(data.absolute().parent),
    }
    file = home / "Library" / "LaunchAgents" / f"{_LABEL}.plist"
    user: int = getattr(os, "getuid", lambda: 0)()  # Windows has none
    domain = f"gui/{user}"
    commands: dict[str, Commands] = {
        "install": (("launchctl", "bootstrap", domain, str(file)),),
        "start": (("launchctl", "kickstart", f"{domain}/{_LABEL}"),),
        "stop": (("launchctl", "kill", "SIGTERM", f"{domain}/{_LABEL}"),),
        "status": (("launchctl", "print", f"{domain}/{_LABEL}"),),
        "remove": (("launchctl", "bootout", f"{domain}/{_LABEL}"),),
    }
    return Service(file, plistlib.dumps(definition, sort_keys=False), commands)


def _task(home: Path, words: Sequence[str], env: Mapping[str, str], values: Mapping[str, str]) -> Service:
    task = ET.Element("Task", version="1.2", xmlns=_TASK_NAMESPACE)
    ET.SubElement(ET.SubElement(task, "RegistrationInfo"), "Description").text = "A memory server for AI agents"
    ET.SubElement(ET.SubElement(ET.SubElement(task, "Triggers"), "LogonTrigger"), "Enabled").text = "true"
    settings = ET.SubElement(task, "Settings")
    for name, value in _TASK_SETTINGS.items():
        ET.SubElement(settings, name).text = value
    restart = ET.SubElement(settings, "RestartOnFailure")
    ET.SubElement(restart, "Interval").text = "PT1M"
    ET.SubElement(restart, "Count").text = "3"
    action = ET.SubElement(ET.SubElement(task, "Actions"), "Exec")
    # A task has no environment of its own, and a console program has a window unless the console has none.
    line = "".join(f'set "{name}={value}" && ' for name, value in env.items()) + subprocess.list2cmdline(words)
    ET.SubElement(action, "Command").text = "conhost.exe"
    ET.SubElement(action, "Arguments").text = f'--headless cmd.exe /d /s /c "{line}"'
    folder = Path(values.get("LOCALAPPDATA") or home / "AppData" / "Local") / "quipu"
    file = folder / "service.xml"
    commands: dict[str, Commands] = {
        "install": (
            ("schtasks", "/Create", "/F", "/TN", _TASK, "/XML", str(file)),
            ("schtasks", "/Run", "/TN", _TASK),
        ),
        "start": (("schtasks", "/Run", "/TN", _TASK),),
        "stop": (("schtasks", "/End", "/TN", _TASK),),
        "status": (("schtasks", "/Query", "/V", "/FO", "LIST", "/TN", _TASK),),
        "remove": (("schtasks", "/End", "/TN", _TASK), ("schtasks", "/Delete", "/F", "/TN", _TASK)),
    }
    ET.indent(task)
    # schtasks reads UTF-16, and UTF-8 only if it holds no other characters than ASCII.
    return Service(file, ET.tostring(task, encoding="utf-16", xml_declaration=True), commands)


_TASK_SETTINGS = {
    "MultipleInstancesPolicy": "IgnoreNew",
    "DisallowStartIfOnBatteries": "false",
    "StopIfGoingOnBatteries": "false",
    "ExecutionTimeLimit": "PT0S",  # without a limit, a task ends after three days
    "Hidden": "true",
}
