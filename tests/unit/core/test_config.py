"""Configuration comes from a mapping, and an invalid value is refused by name."""

import os
import sys
from pathlib import Path

import pytest

from kernel.core.config import MODEL, Config, OAuth, default_data, from_mapping, on_loopback
from kernel.core.errors import Fault
from kernel.core.limits import BOUNDS, PREFIX, Limits
from tests.unit.sql.code import ROOT

HOME = {"HOME": "/home/ada"}


def test_empty_environment_gives_the_defaults() -> None:
    data = Path("/home/ada/.local/share/quipu")
    assert from_mapping(HOME, "linux") == Config(data=data, environment=HOME)
    assert from_mapping(HOME, "linux").file == data / "quipu.db"
    assert (MODEL / "model.safetensors").exists()


def test_every_variable_is_read() -> None:
    values = {
        "QUIPU_DATA": "/data",
        "HOST": "0.0.0.0",
        "PORT": "8080",
        "QUIPU_MODEL": "/models/own",
        "QUIPU_DIALECTS": "paths, common ,",
        "QUIPU_READERS": "4",
        "QUIPU_QUEUE_WAIT": "30",
        "QUIPU_GROUP": "1",
        "QUIPU_DURABILITY": "normal",
        "QUIPU_IDLE_EXIT": "300",
        "QUIPU_ALLOWED_HOSTS": "memory.example",
        "QUIPU_ALLOWED_ORIGINS": "https://a.example,https://b.example",
        "QUIPU_METRICS": "1",
        "QUIPU_TRACES": "1",
        "QUIPU_LOG": "json",
        "QUIPU_LOG_CALLS": "1",
        "QUIPU_LOG_REQUESTS": "1",
        "QUIPU_PROXIES": "127.0.0.1,10.0.0.2",
        "QUIPU_UI": "0",
        "QUIPU_UI_CALLS": "full",
        "QUIPU_OPEN": "1",
        "QUIPU_TENANT_MEGABYTES": "3",
        "QUIPU_WORKERS": "2",
        "QUIPU_PUBLIC_URL": "https://memory.example/",
        "QUIPU_OAUTH_ISSUER": "https://id.example",
        "QUIPU_OAUTH_JWKS": "/etc/jwks.json",
        "QUIPU_OAUTH_AUDIENCE": "quipu",
        "QUIPU_OAUTH_TENANT": "acme",
        "QUIPU_OAUTH_TENANT_CLAIM": "org",
    }
    assert from_mapping(values, "linux") == Config(
        data=Path("/data"),
        host="0.0.0.0",
        port=8080,
        model=Path("/models/own"),
        dialects=("paths", "common"),
        readers=4,
        queue_wait=30,
        group=1,
        durable=False,
        idle_exit=300,
        allowed_hosts=("memory.example",),
        allowed_origins=("https://a.example", "https://b.example"),
        metrics=True,
        traces=True,
        log="json",
        log_calls=True,
        log_requests=True,
        proxies=("127.0.0.1", "10.0.0.2"),
        ui=False,
        ui_calls="texts",
        open=True,
        tenant_megabytes=3,
        workers=2,
        public="https://memory.example",
        oauth=OAuth("https://id.example", Path("/etc/jwks.json"), "quipu", "acme", "org"),
        environment=values,
    )


def test_each_tenant_has_its_own_folder() -> None:
    assert Config(data=Path("/data")).home == Path("/data")
    assert Config(data=Path("/data"), tenant="acme").file == Path("/data/tenants/acme/quipu.db")
    with pytest.raises(Fault, match="A tenant has a name"):
        _ = Config(data=Path("/data"), tenant="../acme").file


def test_token_audience_defaults_to_the_public_address() -> None:
    least = {"QUIPU_OAUTH_ISSUER": "https://id.example", "QUIPU_OAUTH_JWKS": "/jwks"}
    found = from_mapping({**HOME, **least, "QUIPU_PUBLIC_URL": "https://memory.example"}, "linux")
    assert found.oauth == OAuth("https://id.example", Path("/jwks"))


@pytest.mark.parametrize(
    ("host", "local"),
    [
        ("127.0.0.1", True),
        ("127.1.2.3", True),
        ("localhost", True),
        ("LOCALHOST", True),
        ("::1", True),
        ("0.0.0.0", False),
        ("::", False),
        ("127.0.0.1.example", False),
        ("10.0.0.1", False),
        ("127.1", False),
        ("localhost.example", False),
        ("", False),
        ("example", False),
        ("::ffff:127.0.0.1", False),
    ],
)
def test_only_loopback_addresses_are_loopback(host: str, local: bool) -> None:
    assert on_loopback(host) == local


def test_workers_can_be_one_for_each_core() -> None:
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count()
    assert from_mapping({**HOME, "QUIPU_WORKERS": "auto"}, "linux").workers == cores


def test_model_can_be_none_and_empty_variables_count_as_unset() -> None:
    assert from_mapping({**HOME, "QUIPU_MODEL": "none"}, "linux").model is None
    empty = {"QUIPU_DATA": "", "HOST": "", "PORT": " ", "QUIPU_MODEL": "", "QUIPU_READERS": "", "QUIPU_DURABILITY": ""}
    assert from_mapping({**HOME, **empty}, "linux")._replace(environment=HOME) == from_mapping(HOME, "linux")


def test_every_limit_can_be_set_and_is_documented() -> None:
    given = {f"{PREFIX}{field.upper()}": str(bound.high) for field, bound in BOUNDS.items()}
    read = from_mapping({**HOME, **given}, "linux").limits
    assert read == Limits()._replace(**{field: bound.high for field, bound in BOUNDS.items()})  # pyrefly: ignore[bad-argument-type]
    assert set(Limits._fields) - set(BOUNDS) == {"hosts", "origins"}
    rows = [
        f"| `{PREFIX}{field.upper()}` | {getattr(Limits(), field)} | {bound.about} | {bound.on_excess} |"
        for field, bound in BOUNDS.items()
    ]
    lines = (ROOT / "docs" / "security.md").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if line.startswith(f"| `{PREFIX}")] == rows


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("QUIPU_LIMIT_BODY", "0", "QUIPU_LIMIT_BODY is a number from 1024 to 1073741824"),
        ("PORT", "65536", "PORT is a number from 0 to 65535"),
        ("PORT", "-1", "PORT is a number from 0 to 65535"),
        ("PORT", "http", "PORT is a number from 0 to 65535"),
        ("PORT", "٣", "PORT is a number from 0 to 65535"),
        ("PORT", "9" * 5000, "PORT is a number from 0 to 65535"),
        ("QUIPU_READERS", "0", "QUIPU_READERS is a number from 1 to 64"),
        ("QUIPU_GROUP", "1e3", "QUIPU_GROUP is a number from 1 to 10000"),
        ("QUIPU_DURABILITY", "off", "QUIPU_DURABILITY is full or normal"),
        ("QUIPU_LOG", "xml", "QUIPU_LOG is text or json"),
        ("QUIPU_WORKERS", "all", "QUIPU_WORKERS is auto or a number from 1 to 64"),
        ("QUIPU_METRICS", "yes", "QUIPU_METRICS is a number from 0 to 1"),
        ("QUIPU_OPEN", "yes", "QUIPU_OPEN is a number from 0 to 1"),
        ("QUIPU_TENANT_MEGABYTES", "0", "QUIPU_TENANT_MEGABYTES is a number from 1 to 1000000"),
        ("QUIPU_PUBLIC_URL", "memory.example", "QUIPU_PUBLIC_URL is an address such as https://memory.example"),
        ("QUIPU_PUBLIC_URL", 'https://a"b', "QUIPU_PUBLIC_URL is an address such as https://memory.example"),
        ("QUIPU_PUBLIC_URL", "http://[", "QUIPU_PUBLIC_URL is an address such as https://memory.example"),
        ("QUIPU_PUBLIC_URL", "http://[::1]x", "QUIPU_PUBLIC_URL is an address such as https://memory.example"),
        ("QUIPU_PUBLIC_URL", "https://[::::]", "QUIPU_PUBLIC_URL is an address such as https://memory.example"),
        (
            "QUIPU_PUBLIC_URL",
            "https://a.example:99999",
            "QUIPU_PUBLIC_URL is an address such as https://memory.example",
        ),
        (
            "QUIPU_ALLOWED_HOSTS",
            "a.example, https://b.example/",
            "QUIPU_ALLOWED_HOSTS is * or names such as memory.example, separated by commas, and not https://b.example/",
        ),
        (
            "QUIPU_ALLOWED_HOSTS",
            "*.example",
            "QUIPU_ALLOWED_HOSTS is * or names such as memory.example, separated by commas, and not *.example",
        ),
        (
            "QUIPU_ALLOWED_ORIGINS",
            "https://a.example/",
            "QUIPU_ALLOWED_ORIGINS is * or origins such as https://app.example, separated by commas, and not "
            "https://a.example/",
        ),
        (
            "QUIPU_PROXIES",
            "10.0.0.0/8",
            "QUIPU_PROXIES is addresses such as 127.0.0.1, separated by commas, and not 10.0.0.0/8",
        ),
        (
            "QUIPU_PROXIES",
            "localhost",
            "QUIPU_PROXIES is addresses such as 127.0.0.1, separated by commas, and not localhost",
        ),
        ("HOST", "[::1", "HOST is a name or an address, such as 127.0.0.1"),
        ("HOST", "::1]", "HOST is a name or an address, such as 127.0.0.1"),
        ("HOST", "[localhost]", "HOST is a name or an address, such as 127.0.0.1"),
        ("QUIPU_OAUTH_JWKS", "/jwks", "OAuth needs QUIPU_OAUTH_ISSUER"),
        ("QUIPU_OAUTH_ISSUER", "https://id.example", "OAuth needs QUIPU_OAUTH_JWKS"),
    ],
)
def test_invalid_value_is_refused_with_its_variable(name: str, value: str, message: str) -> None:
    with pytest.raises(Fault) as raised:
        from_mapping({**HOME, name: value}, "linux")
    assert (raised.value.code, raised.value.message) == ("invalid", message)


def test_an_address_in_brackets_is_the_address() -> None:
    config = from_mapping({**HOME, "HOST": "[::1]", "QUIPU_PUBLIC_URL": "http://[::1]:80/x"}, "linux")
    assert (config.host, config.public, on_loopback(config.host)) == ("::1", "http://[::1]:80/x", True)


@pytest.mark.parametrize(
    ("values", "platform", "wanted"),
    [
        (HOME, "linux", "/home/ada/.local/share/quipu"),
        ({**HOME, "XDG_DATA_HOME": "/xdg"}, "linux", "/xdg/quipu"),
        (HOME, "darwin", "/home/ada/Library/Application Support/quipu"),
        ({"LOCALAPPDATA": "/local"}, "win32", "/local/quipu"),
        ({"USERPROFILE": "/users/ada"}, "win32", "/users/ada/AppData/Local/quipu"),
    ],
)
def test_data_directory_follows_the_platform(values: dict[str, str], platform: str, wanted: str) -> None:
    assert default_data(values, platform) == Path(wanted)


@pytest.mark.skipif(sys.platform == "win32", reason="accounts of POSIX")
def test_process_without_variables_uses_the_folder_of_its_account(monkeypatch: pytest.MonkeyPatch) -> None:
    import pwd

    for name in ("HOME", "USERPROFILE"):
        monkeypatch.delenv(name, raising=False)
    assert default_data({}, "linux") == Path(pwd.getpwuid(os.getuid()).pw_dir) / ".local" / "share" / "quipu"
