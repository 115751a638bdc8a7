"""The configuration of one server, read once from environment variables."""

import os
import re
import sys
from collections.abc import Iterator, Mapping
from datetime import timedelta
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeVar
from urllib.parse import urlsplit

from kernel.core import data_dir
from kernel.core.data_dir import MAIN
from kernel.core.errors import Fault
from kernel.core.lazy_regex import regex
from kernel.core.limits import BOUNDS, Limits
from kernel.core.limits import PREFIX as LIMIT_PREFIX
from kernel.core.times import span

VERSION = "0.2.0"
FIRST_DIALECTS = ("paths", "common")  # whose tools a client gets, unless others are chosen
DEFAULT_PORT = 7847
PREFIX = "QUIPU_"
MOST_WORKERS = 64
STORE_SCHEMES = ("postgresql://", "postgres://")
_OAUTH = ("ISSUER", "JWKS", "AUDIENCE", "TENANT", "TENANT_CLAIM")
_URL = regex(r"https?://(?:[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?(?:/[A-Za-z0-9._~/-]*)?")
_MAX_DIGITS = 18  # int() refuses a text of thousands
_NAME = regex(r"(?:[A-Za-z0-9_-]{1,63}\.){0,30}[A-Za-z0-9_-]{1,63}\.?")
_ADDRESS = regex(r"[0-9A-Fa-f]{0,4}:[0-9A-Fa-f:.]{1,41}(?:%[A-Za-z0-9_.-]{1,64})?")  # of IPv6
_AUTHORITY = regex(r"\*|[^/*@\s]+")  # of a host, with its port or without
_ORIGIN = regex(r"\*|(?:[A-Za-z][A-Za-z0-9+.-]*://)?[^/*@\s]+")
_IP = regex(rf"\d{{1,3}}(?:\.\d{{1,3}}){{3}}|{_ADDRESS.pattern}")
_LOOPBACK = regex(r"127(?:\.\d{1,3}){3}")
MODEL = Path(__file__).resolve().parents[1] / "model" / "static-multilingual-256-int8"

Word = TypeVar("Word", bound=str)
Log = Literal["text", "json"]
KeptCalls = Literal["counts", "calls", "texts"]
InjectionMode = Literal["off", "flag", "quarantine"]
_KEPT: Mapping[str, KeptCalls] = {"0": "counts", "1": "calls", "full": "texts"}  # by QUIPU_UI_CALLS


class OAuth(NamedTuple):
    """A trusted authorization server: its `issuer`, the file with its public keys, and the audience of its tokens.

    Without `audience` it is the public address; without `tenant` each token names its tenant in the claim `claim`.
    """

    issuer: str
    keys: Path
    audience: str = ""
    tenant: str = ""
    claim: str = "tenant"


class Config(NamedTuple):
    """Where the data lies, where to listen, which model embeds, and how long queues may be.

    `undo_hours` is how long the changes of a destructive call are kept for `quipu undo`; 0 keeps nothing. `queue_wait`
    is how many milliseconds a call may wait in a queue before it is refused. `injection_mode` is the treatment of
    memories that match a rule of `kernel.security.rules.injection`. `idle_exit` is the number of seconds without a
    request after which the server ends; 0 is never. `environment` is the mapping itself, for the settings of dialects.
    `tenant` is the tenant of callers whose key names none, and `tenant_megabytes` the memory from which on unused
    tenants are closed. Every `backup_every` seconds everything is copied into the folder `backup_to`, if the newest
    `backup_keep` copies stay. With `follow` the data directory is a copy that `quipu replica` keeps, and only read.
    `workers` is how many processes serve HTTP. `open` requires no key, `public` is the address for clients. `metrics`
    serves /metrics, `traces` sends spans, `log_calls` logs a line for each call, `log_slow` for those that take so many
    milliseconds, `log_requests` for each request, and `proxies` are the addresses whose `X-Forwarded-For` counts. `ui`
    serves the console at /ui, and `ui_calls` is the detail of calls that it keeps in memory. `store` is the address of
    a PostgreSQL database, empty for the file in the data directory, `read_store` that of a replica for reads, and
    `store_wait` for how many seconds a start waits for the database.
    """

    data: Path
    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    model: Path | None = MODEL
    dialects: tuple[str, ...] = ()
    readers: int = 2
    queue_wait: int = 10_000
    group: int = 256
    durable: bool = True
    idle_exit: int = 0
    undo_hours: int = 168
    injection_mode: InjectionMode = "quarantine"
    allowed_hosts: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()
    limits: Limits = Limits()
    environment: Mapping[str, str] = MappingProxyType({})
    tenant: str = MAIN
    tenant_megabytes: int = 148
    workers: int = 1
    open: bool = False
    public: str = ""
    metrics: bool = False
    traces: bool = False
    log: Log = "text"
    log_calls: bool = False
    log_slow: int = 0
    log_requests: bool = False
    proxies: tuple[str, ...] = ()
    ui: bool = True
    ui_calls: KeptCalls = "counts"
    oauth: OAuth | None = None
    store: str = ""
    read_store: str = ""
    store_wait: int = 60
    backup_to: Path | None = None
    backup_every: int = 3600
    backup_keep: int = 24
    follow: bool = False

    @property
    def home(self) -> Path:
        return data_dir.home(self.data, self.tenant)

    @property
    def file(self) -> Path:
        return self.home / "quipu.db"


def from_mapping(values: Mapping[str, str], platform: str = sys.platform) -> Config:
    """Return the configuration in environment variables; raises Fault("invalid") naming the variable."""
    model = values.get("QUIPU_MODEL", "")
    return Config(
        data=Path(values["QUIPU_DATA"]) if values.get("QUIPU_DATA") else default_data(values, platform),
        host=host_name(values.get("HOST") or "127.0.0.1"),
        port=_number(values, "PORT", DEFAULT_PORT, 0, 65535),
        model=None if model == "none" else Path(model) if model else MODEL,
        dialects=_names(values, "QUIPU_DIALECTS"),
        readers=_number(values, "QUIPU_READERS", 2, 1, 64),
        queue_wait=_number(values, "QUIPU_QUEUE_WAIT", 10_000, 1, 3_600_000),
        group=_number(values, "QUIPU_GROUP", 256, 1, 10_000),
        durable=_choice(values, "QUIPU_DURABILITY", "full", "normal") == "full",
        idle_exit=_number(values, "QUIPU_IDLE_EXIT", 0, 0, 31_536_000),
        undo_hours=_number(values, "QUIPU_UNDO_HOURS", 168, 0, 87_600),
        injection_mode=_choice(values, "QUIPU_SUSPECTS", "quarantine", "flag", "off"),
        allowed_hosts=_names(values, "QUIPU_ALLOWED_HOSTS", _AUTHORITY, "* or names such as memory.example"),
        allowed_origins=_names(values, "QUIPU_ALLOWED_ORIGINS", _ORIGIN, "* or origins such as https://app.example"),
        limits=_limits(values),
        environment=values,
        tenant_megabytes=_number(values, "QUIPU_TENANT_MEGABYTES", 148, 1, 1_000_000),
        workers=_workers(values),
        open=_flag(values, "QUIPU_OPEN"),
        metrics=_flag(values, "QUIPU_METRICS"),
        traces=_flag(values, "QUIPU_TRACES"),
        log=_choice(values, "QUIPU_LOG", "text", "json"),
        log_calls=_flag(values, "QUIPU_LOG_CALLS"),
        log_slow=_number(values, "QUIPU_LOG_SLOW", 0, 0, 3_600_000),
        log_requests=_flag(values, "QUIPU_LOG_REQUESTS"),
        proxies=_names(values, "QUIPU_PROXIES", _IP, "addresses such as 127.0.0.1"),
        ui=bool(_number(values, "QUIPU_UI", 1, 0, 1)),
        ui_calls=_KEPT[_choice(values, "QUIPU_UI_CALLS", "0", "1", "full")],
        public=_public(values),
        oauth=_oauth(values),
    )._replace(**_stores(values), **_backups(values))


class _Asked(Mapping[str, str]):
    """An empty environment that remembers which names were looked up."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def __getitem__(self, key: str) -> str:
        self.names.add(key)
        raise KeyError(key)

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


@cache
def variables() -> frozenset[str]:
    names = _Asked()
    from_mapping(names)
    return frozenset(names.names)


def on_loopback(host: str) -> bool:
    return host.lower() in {"localhost", "::1"} or _LOOPBACK.fullmatch(host) is not None


def user_folder(values: Mapping[str, str]) -> Path:
    """Return the user's folder; the accounts of the system have it too, for a process that starts without variables."""
    return Path(values.get("HOME") or values.get("USERPROFILE") or os.path.expanduser("~"))  # noqa: PTH111


def default_data(values: Mapping[str, str], platform: str) -> Path:
    """Return the folder `quipu` in the user's data directory on this platform."""
    if platform == "darwin":
        return user_folder(values) / "Library" / "Application Support" / "quipu"
    if platform == "win32":
        return Path(values.get("LOCALAPPDATA") or user_folder(values) / "AppData" / "Local") / "quipu"
    return Path(values.get("XDG_DATA_HOME") or user_folder(values) / ".local" / "share") / "quipu"


def _stores(values: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields of the places of memories other than a file of its own."""
    return {
        "store": _store(values, "QUIPU_STORE"),
        "read_store": _store(values, "QUIPU_READ_STORE"),
        "store_wait": _number(values, "QUIPU_STORE_WAIT", 60, 0, 86_400),
        "follow": _flag(values, "QUIPU_FOLLOW"),
    }


def _backups(values: Mapping[str, str]) -> dict[str, Any]:
    return {
        "backup_to": Path(values["QUIPU_BACKUP_TO"]) if values.get("QUIPU_BACKUP_TO") else None,
        "backup_every": duration("QUIPU_BACKUP_EVERY", values.get("QUIPU_BACKUP_EVERY") or "1h"),
        "backup_keep": _number(values, "QUIPU_BACKUP_KEEP", 24, 1, 100_000),
    }


def host_name(value: str) -> str:
    """Return a name or address to listen on, without brackets; raises Fault("invalid") if it can be neither."""
    address = value[1:-1] if value[:1] == "[" and value[-1:] == "]" else value
    if not (_ADDRESS.fullmatch(address) or _NAME.fullmatch(value)):
        raise Fault("invalid", "HOST is a name or an address, such as 127.0.0.1")
    return address


def duration(name: str, value: str) -> int:
    """Return the seconds of a duration such as 30m; raises Fault("invalid") with the name of the setting."""
    seconds = int((span(value) or timedelta()).total_seconds())
    if not seconds:
        raise Fault("invalid", f"{name} must be a duration such as 30m, 1h or 7d")
    return seconds


def _limits(values: Mapping[str, str]) -> Limits:
    defaults = Limits()
    numbers: dict[str, Any] = {
        field: _number(values, LIMIT_PREFIX + field.upper(), getattr(defaults, field), bounds.low, bounds.high)
        for field, bounds in BOUNDS.items()
    }
    return defaults._replace(**numbers)


def _store(values: Mapping[str, str], name: str) -> str:
    value = values.get(name, "").strip()
    if value and not value.startswith(STORE_SCHEMES):
        raise Fault("invalid", f"{name} is an address such as postgresql://user@host/database")
    return value


def _public(values: Mapping[str, str]) -> str:
    address = values.get("QUIPU_PUBLIC_URL", "").rstrip("/")
    if address and not _is_url(address):
        raise Fault("invalid", "QUIPU_PUBLIC_URL is an address such as https://memory.example")
    return address


def _is_url(text: str) -> bool:
    try:
        return _URL.fullmatch(text) is not None and urlsplit(text).port != 0
    except ValueError:  # no port, or no address between brackets
        return False


def _oauth(values: Mapping[str, str]) -> OAuth | None:
    parts = {name: values.get(f"QUIPU_OAUTH_{name}", "").strip() for name in _OAUTH}
    if not any(parts.values()):
        return None
    for name in ("ISSUER", "JWKS"):
        if not parts[name]:
            raise Fault("invalid", f"OAuth needs QUIPU_OAUTH_{name}")
    if not parts["AUDIENCE"] and not values.get("QUIPU_PUBLIC_URL"):
        raise Fault("invalid", "OAuth needs QUIPU_PUBLIC_URL or QUIPU_OAUTH_AUDIENCE, which its tokens are for")
    if parts["TENANT"]:
        data_dir.tenant_name(parts["TENANT"])
    return OAuth(
        parts["ISSUER"], Path(parts["JWKS"]), parts["AUDIENCE"], parts["TENANT"], parts["TENANT_CLAIM"] or "tenant"
    )


def _names(
    values: Mapping[str, str], name: str, form: re.Pattern[str] | None = None, forms: str = ""
) -> tuple[str, ...]:
    """Return the entries of a list; raises Fault("invalid") for one that no request can have, as the URL of a host."""
    names = tuple(part.strip() for part in values.get(name, "").split(",") if part.strip())
    for entry in names:
        if form and not form.fullmatch(entry):
            raise Fault("invalid", f"{name} is {forms}, separated by commas, and not {entry[:80]}")
    return names


def _choice(values: Mapping[str, str], name: str, *choices: Word) -> Word:
    word = values.get(name) or choices[0]
    for choice in choices:
        if word == choice:
            return choice
    raise Fault("invalid", f"{name} is {', '.join(choices[:-1])} or {choices[-1]}")


def _workers(values: Mapping[str, str]) -> int:
    """Return how many processes serve; `auto` is one for each core that this process may use."""
    if values.get("QUIPU_WORKERS", "").strip() != "auto":
        return _number(values, "QUIPU_WORKERS", 1, 1, MOST_WORKERS, "auto or ")
    if sys.platform == "win32":
        return 1
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    return min(cores, MOST_WORKERS)


def _flag(values: Mapping[str, str], name: str) -> bool:
    return bool(_number(values, name, 0, 0, 1))


def _number(values: Mapping[str, str], name: str, default: int, low: int, high: int, others: str = "") -> int:
    value = values.get(name, "").strip()
    if not value:
        return default
    if not value.isascii() or not value.isdigit() or len(value) > _MAX_DIGITS or not low <= int(value) <= high:
        raise Fault("invalid", f"{name} is {others}a number from {low} to {high}")
    return int(value)
