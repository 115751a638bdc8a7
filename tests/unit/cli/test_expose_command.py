"""`quipu expose`: the name of a server is stored beside the data, and holds from its next start on."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from kernel.cli import doctor
from kernel.cli.main import config_of, main
from kernel.core.config import Config
from kernel.security import api_keys
from tests.security.authenticated_server import house

NAME = "memory.example"


def configured(data: Path, port: int = 1) -> Config:
    """The configuration of a command on this data directory."""
    return config_of(SimpleNamespace(data=data, port=port))  # pyrefly: ignore[bad-argument-type]


def expose(data: Path, *words: str) -> int:
    return main(["expose", "--data", str(data), *words])


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("QUIPU_PORT", "1")  # on which no other server of the machine is
    api_keys.create(tmp_path, api_keys.Key("", "admin", "2026-01-01T00:00:00.000Z"))
    return tmp_path


def test_a_name_holds_from_the_next_start_on(data: Path) -> None:
    assert expose(data, "--host", "Memory.Example.", "--proxy", "10.0.0.1") == 0
    assert (data / "expose.json").stat().st_mode & 0o777 == 0o600
    config = configured(data)
    assert (config.public, config.allowed_hosts, config.proxies) == (f"https://{NAME}", (NAME,), ("10.0.0.1",))
    with house(config._replace(model=None)) as running:
        own = {"host": NAME}
        assert running.ask("GET", "/tools", headers=own).status == 401
        metadata = json.loads(running.ask("GET", "/.well-known/oauth-authorization-server", headers=own).body)
        assert metadata["issuer"] == f"https://{NAME}"
        assert running.ask("GET", "/tools", headers={"host": "other.example"}).status == 421
        (finding,) = doctor.address(config._replace(port=running.port))
        assert finding.grade == "ok"


def test_the_environment_comes_first(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expose(data, "--host", NAME)
    monkeypatch.setenv("QUIPU_PUBLIC_URL", "https://other.example")
    monkeypatch.setenv("QUIPU_PROXIES", "10.0.0.2")
    config = configured(data)
    assert (config.public, config.proxies) == ("https://other.example", ("10.0.0.2",))
    assert [finding.detail for finding in doctor.address(config)] == ["requests for other.example are refused"]


def test_a_running_server_without_the_name_is_told(data: Path) -> None:
    with house(Config(data=data, model=None)) as running:
        expose(data, "--host", NAME)
        (finding,) = doctor.address(configured(data, running.port))
    assert finding.detail == f"the server that runs does not know the name {NAME}"


@pytest.mark.parametrize(
    "name", ["localhost", "127.0.0.1", "memory", "a b.example", "https://a.example", "", "a.example:1"]
)
def test_what_is_no_public_name_is_refused(data: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert expose(data, "--host", name) == 1
    assert "--host is the name by which other devices reach the server" in capsys.readouterr().err
    assert not (data / "expose.json").exists()


def test_a_server_without_keys_gets_no_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert expose(tmp_path, "--host", NAME) == 1
    assert "make a key first" in capsys.readouterr().err
    monkeypatch.setenv("QUIPU_OPEN", "1")
    assert expose(tmp_path, "--host", NAME) == 1
    assert "unset it before the server has a public name" in capsys.readouterr().err
    assert not (tmp_path / "expose.json").exists()


def test_a_name_is_removed_also_if_its_file_is_damaged(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    expose(data, "--host", NAME)
    assert expose(data) == 0
    assert f"https://{NAME}" in capsys.readouterr().out
    (data / "expose.json").write_text("{")
    assert expose(data) == 1
    assert "`quipu expose --off` removes it" in capsys.readouterr().err
    assert expose(data, "--off") == 0
    assert configured(data).public == ""


def test_a_client_is_set_up_for_a_server_where_it_logs_in(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(data / "home"))
    monkeypatch.setenv("QUIPU_DATA", str(data / "other"))
    with house(Config(data=data, model=None, public="http://127.0.0.1:1")) as running:
        url = f"http://127.0.0.1:{running.port}/mcp"
        assert main(["setup", "--client", "cursor", "--url", url]) == 0
    assert "asks in the browser once the client logs in" in capsys.readouterr().err
    entry = json.loads((data / "home" / ".cursor" / "mcp.json").read_text())["mcpServers"]["quipu"]
    assert entry == {"url": url}
