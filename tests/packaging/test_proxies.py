"""Caddy, nginx and Traefik with the lines of docs/guides/proxy.md lead to the tools, the console and its stream."""

import json
import shutil
import ssl
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from kernel.security import api_keys
from kernel.security.api_keys import Key
from tests.contracts.pages import ROOT, blocks
from tests.packaging.programs import environment
from tests.reliability.server_process import PATIENCE, Server, free_port, serving, until

pytestmark = pytest.mark.ship
UNPACKED = ROOT / ".venv-proxies"
NAME = "memory.example"
CALLER = "127.0.0.7"  # an address of loopback from which nothing else calls
_GUIDE = [block.text for block in blocks() if block.name.startswith("docs/guides/proxy.md:")]
WRITTEN = {
    name: next(text for text in _GUIDE if sign in text)
    for name, sign in (("caddy", "# Caddyfile"), ("nginx", "proxy_pass"), ("traefik", "websecure"))
}
Prepared = tuple[list[str], Path]  # the options of a proxy, and the certificate to trust


def self_signed(folder: Path) -> tuple[Path, Path]:
    """Make a certificate of the name; return it and its key."""
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    kind = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    names = ["-subj", f"/CN={NAME}", "-addext", f"subjectAltName=DNS:{NAME}"]
    subprocess.run([*kind, *names, "-keyout", key, "-out", certificate], capture_output=True, check=True)
    return certificate, key


def caddy(folder: Path, port: int, written: str) -> Prepared:
    """Caddy signs for itself here, as nobody signs for a name that is not public."""
    alone = "admin off\nlocal_certs\nskip_install_trust\nauto_https disable_redirects\ndefault_bind 127.0.0.1"
    (folder / "Caddyfile").write_text(f"{{\n{alone}\nhttps_port {port}\n}}\n{written}")
    return ["run", "--config", "Caddyfile"], folder / "caddy" / "pki" / "authorities" / "local" / "root.crt"


def nginx(folder: Path, port: int, written: str) -> Prepared:
    certificate, key = self_signed(folder)
    changed = {"listen 443": f"listen 127.0.0.1:{port}", "/etc/ssl/memory.example.pem": str(certificate)}
    for old, new in {**changed, "/etc/ssl/memory.example.key": str(key)}.items():
        assert old in written
        written = written.replace(old, new)
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    temporary = "".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds)
    begin = f"daemon off; user root; pid {folder}/pid; error_log stderr; events {{}}"
    (folder / "nginx.conf").write_text(f"{begin}\nhttp {{ access_log off; {temporary}\n{written}}}\n")
    return ["-e", "stderr", "-p", str(folder), "-c", "nginx.conf"], certificate


def traefik(folder: Path, port: int, written: str) -> Prepared:
    certificate, key = self_signed(folder)
    resolver = "{ certResolver: letsencrypt }"
    assert resolver in written
    rules = folder / "rules"
    rules.mkdir()
    (rules / "quipu.yaml").write_text(written.replace(resolver, "{}"))
    # JSON is YAML
    certificates = [{"certFile": str(certificate), "keyFile": str(key)}]
    (rules / "tls.yaml").write_text(json.dumps({"tls": {"certificates": certificates}}))
    (folder / "traefik.yaml").write_text(
        json.dumps(
            {
                "entryPoints": {"websecure": {"address": f"127.0.0.1:{port}"}},
                "providers": {"file": {"directory": str(rules)}},
                "global": {"checkNewVersion": False, "sendAnonymousUsage": False},
            }
        )
    )
    return ["--configFile=traefik.yaml"], certificate


PROXIES: Mapping[str, Callable[[Path, int, str], Prepared]] = {"caddy": caddy, "nginx": nginx, "traefik": traefik}


def program(name: str) -> str:
    """The path of a proxy: on the PATH, or where `make proxies` unpacks it."""
    places = (UNPACKED / "bin", UNPACKED / "debian" / "usr" / "bin", UNPACKED / "debian" / "usr" / "sbin")
    found = shutil.which(name) or next((str(place / name) for place in places if (place / name).exists()), "")
    if not found:
        pytest.skip(f"make proxies unpacks {name}")
    return found


@contextmanager
def before(name: str, server: Server, folder: Path) -> Iterator[httpx.Client]:
    """A client that knows the proxy alone."""
    called, port = program(name), free_port()
    folder.mkdir()
    assert "127.0.0.1:7847" in WRITTEN[name]
    options, trusted = PROXIES[name](folder, port, WRITTEN[name].replace("7847", str(server.port)))
    log = folder / "log"
    with log.open("wb") as file:
        settings = environment(XDG_DATA_HOME=str(folder), XDG_CONFIG_HOME=str(folder))
        process = subprocess.Popen([called, *options], cwd=folder, env=settings, stdout=file, stderr=file)

    def answers() -> bool:
        assert process.poll() is None, log.read_text(encoding="utf-8")
        try:
            return client.get("/healthz").status_code == 200
        except httpx.TransportError:
            return False

    try:
        until(trusted.exists, f"the certificate of {name}")
        transport = httpx.HTTPTransport(verify=ssl.create_default_context(cafile=str(trusted)), local_address=CALLER)
        with httpx.Client(
            base_url=f"https://127.0.0.1:{port}",
            headers={"host": NAME},
            event_hooks={"request": [lambda request: request.extensions.update(sni_hostname=NAME)]},
            transport=transport,
            timeout=PATIENCE,
        ) as client:
            until(answers, name)
            yield client
    finally:
        process.terminate()
        process.wait(PATIENCE)


@pytest.mark.parametrize("name", PROXIES)
def test_a_proxy_with_the_lines_of_the_guide_leads_to_all_of_the_server(name: str, tmp_path: Path) -> None:
    data = tmp_path / "data"
    settings = {"QUIPU_ALLOWED_HOSTS": NAME, "QUIPU_PUBLIC_URL": f"https://{NAME}", "QUIPU_PROXIES": "127.0.0.1"}
    with serving(data, **settings, QUIPU_LOG_REQUESTS=1) as server:
        key = api_keys.create(data, Key("", "admin", ""))[1]
        with before(name, server, tmp_path / name) as client:
            tools = {"authorization": f"Bearer {key}", "accept": "application/json"}
            until(lambda: client.post("/tools/list_memories", json={}).status_code == 401, "the key")

            def added(content: str) -> httpx.Response:
                return client.post("/tools/add_memory", json={"path": "car", "content": content}, headers=tools)

            assert "MEMORY_CONTENT_TOO_LARGE" in added("x" * 3_000_000).text  # the server's word, not the proxy's
            assert added("My automobile goes to the garage in May.").status_code == 200
            found = client.post("/tools/recall", json={"query": "vehicle maintenance"}, headers=tools)
            assert [memory["id"] for memory in found.json()["memories"]] == ["paths/car"]

            form = {"origin": f"https://{NAME}", "sec-fetch-site": "same-origin"}
            entered = client.post("/ui/do/login", data={"key": key}, headers=form)
            assert (entered.status_code, entered.headers["location"]) == (303, "/ui")
            assert entered.headers["set-cookie"].endswith("; Secure")
            cookie = {"cookie": entered.headers["set-cookie"].partition(";")[0]}
            assert "My automobile goes to the garage" in client.get("/ui", headers=cookie).text

            with client.stream("GET", "/ui/live", headers=cookie) as stream:
                assert stream.headers["content-type"].startswith("text/event-stream")
                pieces = stream.iter_text()
                client.post("/tools/add_memory", json={"path": "tea", "content": "Green."}, headers=tools)
                shown = ""
                while "add_memory" not in shown:
                    shown += next(pieces)
        assert CALLER in server.log()
