"""`quipu expose`: the settings with which a server is reached by a name, and the steps that remain."""

import argparse
from urllib.parse import urlsplit

from kernel.calls.dispatch import catch_faults
from kernel.cli import doctor
from kernel.cli.output import note, show
from kernel.core import exposure
from kernel.core.config import Config, host_name, on_loopback
from kernel.core.errors import Fault
from kernel.core.exposure import Exposure
from kernel.core.ids import utc_now
from kernel.security import api_keys

_PROXIES = ("127.0.0.1",)
_STEPS = """\
{public} needs a proxy or a tunnel with TLS in front of {local}, one of:
  caddy reverse-proxy --from {host} --to {local}          # a name of yours, and port 443 of this machine
  cloudflared tunnel run --url http://{local} NAME        # no open port; route {host} to the tunnel first
  tailscale serve --bg {port}                             # in your own network alone
Start the server again, so that it knows the name, and look: `quipu doctor`; https://{host}/healthz from the phone.
Console: {public}/ui   Assistants that log in: {public}/mcp
Other clients: `quipu setup --client NAME --url {public}/mcp --key -`"""


def run(arguments: argparse.Namespace, config: Config) -> int:
    """Store or remove the name, or show how the server is reached; return 1 if a check fails."""
    if arguments.off:
        (config.data / exposure.FILE).unlink(missing_ok=True)
        note("No public name is stored. A running server has it until it ends.")
        return 0
    if arguments.name is None:
        findings = [*doctor.address(config)]
        for finding in findings:
            remedy = f"; {finding.remedy}" if finding.remedy else ""
            show(finding, f"{finding.grade:5}  {finding.subject}: {finding.detail}{remedy}", as_json=arguments.json)
        if not findings:
            note("No public name is stored: `quipu expose --host NAME`.")
        return int(any(finding.grade == "wrong" for finding in findings))
    made = Exposure(_name(arguments.name), tuple(arguments.proxy) or _PROXIES)
    _check(config)
    exposure.write(config.data, made)
    wanted = exposure.applied(config._replace(allowed_hosts=()), made)
    if urlsplit(wanted.public).hostname != made.host:
        note(f"QUIPU_PUBLIC_URL says {wanted.public}, which comes first: unset it.")
    line = (
        f"{exposure.FILE}: public address {wanted.public}, allowed host {made.host}, proxies {','.join(wanted.proxies)}"
    )
    show({"public": wanted.public, "host": made.host, "proxies": wanted.proxies}, line, as_json=arguments.json)
    local = f"127.0.0.1:{config.port}"
    note(_STEPS.format(public=wanted.public, host=made.host, local=local, port=config.port))
    return 0


def _name(text: str) -> str:
    name = text.strip().lower().rstrip(".")
    if catch_faults(host_name, name) != name or "." not in name or ":" in name or on_loopback(name):
        raise Fault("invalid", "--host is the name by which other devices reach the server, such as memory.example.")
    return name


def _check(config: Config) -> None:
    """Raise Fault("invalid") for a server that a proxy would open to everybody."""
    keys = api_keys.read(config.data)
    if config.open:
        raise Fault("invalid", "QUIPU_OPEN lets everybody in: unset it before the server has a public name.")
    if not config.oauth and not any(key.state(utc_now()) == "active" for key in keys):
        raise Fault("invalid", "Behind a proxy everybody is local: make a key first, `quipu key create --scope admin`.")
