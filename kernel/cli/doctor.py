"""The command that looks for what is wrong, one line for each thing, with what to do about it."""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast
from urllib.parse import urlsplit

from kernel import app, data_dir
from kernel.cli import client_entries, probe
from kernel.cli.clients import CLIENTS, Client, Entry, file_of
from kernel.config import MODEL, VERSION, Config, on_loopback
from kernel.data_dir import MAIN
from kernel.dispatch import catch_faults
from kernel.embed.model import Embedder, Embedding
from kernel.errors import Fault
from kernel.ids import utc_now
from kernel.search import index
from kernel.security import api_keys
from kernel.store.context import CallContext, StoreContext
from kernel.store.migrations import pending_migrations
from kernel.store.sqlite.connection import Connection
from kernel.store.sqlite.errors import DAMAGED, OLDEST_SQLITE, sqlite_version
from kernel.store.transaction import Tx

_LEAST_BYTES = 64 << 20
_OTHERS = 0o077
_ANYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104
_SHARED = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "fuse.sshfs", "fuse.s3fs", "virtiofs"}
)
_MIB = 1 << 20

Grade = Literal["ok", "hint", "wrong"]


class Diagnosis(NamedTuple):
    """One thing that was looked at: `do` says what helps, where something does."""

    grade: Grade
    about: str
    detail: str
    remedy: str = ""

    def __str__(self) -> str:
        return f"{self.grade:5}  {self.about}: {self.detail}" + (f"; {self.remedy}" if self.remedy else "")


def run(config: Config, platform: str = sys.platform) -> int:
    """Prints what it finds; 1 if anything is wrong, 0 if there are hints at most."""
    found: list[Diagnosis] = []
    for look in (engine, folder, settings, database, model, room, server, doors, partial(clients, platform=platform)):
        for finding in look(config):
            print(finding, flush=True)
            found.append(finding)
    return 1 if any(finding.grade == "wrong" for finding in found) else 0


def engine(_config: Config) -> Iterator[Diagnosis]:
    """The SQLite we carry."""
    number = sqlite_version()
    version = f"SQLite {number // 1_000_000}.{number // 1000 % 1000}.{number % 1000}"
    if number < OLDEST_SQLITE:
        yield Diagnosis(
            "wrong", "engine", f"{version} can lose pages while checkpointing", "install apsw 3.54.1 or newer"
        )
    else:
        yield Diagnosis("ok", "engine", version)


def folder(config: Config) -> Iterator[Diagnosis]:
    """The data directory: there, writable, on a disk of this machine, and nobody else's to read."""
    data = config.data.absolute()
    there = _nearest(data)
    try:
        with tempfile.TemporaryFile(dir=there):
            pass
    except OSError as error:
        remedy = "give it to this user, or choose another with --data or QUIPU_DATA"
        yield Diagnosis("wrong", "data directory", f"{there} cannot be written to: {error.strerror}", remedy)
        return
    told = str(data) if there == data else f"{data} will be made at the first start"
    yield Diagnosis("ok", "data directory", told)
    kind = _file_system(there)
    if kind in _SHARED:
        remedy = "choose a local one with --data or QUIPU_DATA"
        yield Diagnosis(
            "wrong", "data directory", f"it lies on {kind}, where SQLite's log can lose what was written", remedy
        )
    open_ = [path for path in (data, *data.glob("*.db*"), *data.glob("*.json")) if _seen_by_others(path)]
    if open_:
        yield Diagnosis("hint", "data directory", f"others may look into {open_[0]}", f"chmod -R go= {data}")


def settings(config: Config) -> Iterator[Diagnosis]:
    """The settings of the dialects."""
    found = catch_faults(app.context_of, config._replace(model=None))
    if isinstance(found, Fault):
        yield Diagnosis("wrong", "settings", found.message, "correct what it names")


def database(config: Config) -> Iterator[Diagnosis]:
    """Each database file: ours, of a version we know, sound, and with a vector for each document."""
    names = [config.tenant, *(data_dir.other_tenants(config.data) if config.tenant == MAIN else [])]
    shared = catch_faults(app.context_of, config)
    for name in names:
        about = "database" if name == MAIN else f"database of {name}"
        yield _database(
            about, config._replace(tenant=name).file, app.base_context(None) if isinstance(shared, Fault) else shared
        )


def _database(about: str, file: Path, shared: StoreContext) -> Diagnosis:
    if not file.is_file():
        return Diagnosis("ok", about, "none yet; it is made at the first start")
    bare = catch_faults(_examined, file, shared)
    if isinstance(bare, Fault):
        return Diagnosis("wrong", about, bare.message, "put a backup in its place, or choose another data directory")
    if bare:
        told = f"{bare} documents have no vector of this model yet, and are found by words alone"
        return Diagnosis("hint", about, told, "a running server makes them, and so does `quipu reindex`")
    return Diagnosis("ok", about, f"{file.stat().st_size / _MIB:.1f} MiB, sound")


def _examined(file: Path, shared: StoreContext) -> int:
    """The number of documents without a vector; raises Fault for a file that cannot be used."""
    try:
        db = Connection(file, shared, readonly=True)
    except DAMAGED as error:
        raise Fault("storage", f"The file is damaged: {error}") from None
    try:
        damage = db.integrity_errors(quick=True)
        if damage:
            raise Fault("storage", f"The file is damaged: {damage[0]}")
        return 0 if pending_migrations(db) else db.read(CallContext(), _bare)
    finally:
        db.close()


def _bare(tx: Tx) -> int:
    return (
        (tx.one("kernel.consistency.count_pending", int, model=index.model_id(tx)) or 0) if index.has_model(tx) else 0
    )


def model(config: Config) -> Iterator[Diagnosis]:
    """The embedding model: readable, and able to embed."""
    if config.model is None:
        yield Diagnosis(
            "hint", "model", "none is configured: search goes by words alone", "leave QUIPU_MODEL out for ours"
        )
        return
    made, reason = _made(config.model)
    if made is None:
        remedy = "install Quipu again" if config.model == MODEL else "correct QUIPU_MODEL or --model"
        yield Diagnosis("wrong", "model", f"{config.model} cannot be used: {reason}", remedy)
    else:
        yield Diagnosis("ok", "model", f"{config.model.name}, {len(made.vector)} dimensions")


def _made(folder: Path) -> tuple[Embedding | None, str]:
    try:
        (made,) = Embedder(folder).embed(["memory"])
    except (OSError, ValueError) as error:
        return None, str(error)
    return (made, "") if made.tokens else (None, "it knows no word of English")


def room(config: Config) -> Iterator[Diagnosis]:
    """What is free on the disk of the data directory."""
    free = shutil.disk_usage(_nearest(config.data.absolute())).free
    size = config.file.stat().st_size if config.file.is_file() else 0
    told = f"{free / _MIB:,.0f} MiB are free"
    if free < _LEAST_BYTES:
        yield Diagnosis("wrong", "disk", told, f"make room: below {_LEAST_BYTES // _MIB} MiB writes begin to fail")
    elif free < 2 * size:
        yield Diagnosis("hint", "disk", f"{told}, too little for a copy of the database", "make room for backups")
    else:
        yield Diagnosis("ok", "disk", told)


def server(config: Config) -> Iterator[Diagnosis]:
    """Who listens where a server of this configuration would."""
    host = _ANYWHERE.get(config.host, config.host)
    where = f"{host}:{config.port}"
    try:
        answered = probe.greet(host, config.port)
    except OSError:
        answered = probe.Answered(0)
    if answered is None:
        remedy = "`quipu serve` starts one; clients that start their own need none"
        yield Diagnosis("hint", "server", f"nobody listens on {where}", remedy)
    elif answered.status == 401:
        yield Diagnosis("ok", "server", f"one that asks for a key listens on {where}")
    elif answered.name != client_entries.NAME:
        who = probe.holder(config.port) or "a program of somebody"
        remedy = "stop it, or give Quipu another port with --port or PORT"
        yield Diagnosis("wrong", "server", f"{who} listens on {where}, and is no Quipu", remedy)
    elif answered.version != VERSION:
        told = f"Quipu {answered.version} listens on {where}, this is {VERSION}"
        yield Diagnosis("hint", "server", told, "start it again with this program")
    else:
        yield Diagnosis("ok", "server", f"Quipu {answered.version} listens on {where}")


def doors(config: Config) -> Iterator[Diagnosis]:
    """Whether everybody comes in who should, and nobody else."""
    known = catch_faults(api_keys.read, config.data)
    if isinstance(known, Fault):
        yield Diagnosis(
            "wrong", "keys", known.message, f"restore {config.data / api_keys.FILE} from a copy, or make new keys"
        )
    elif known and not any(key.state(utc_now()) == "active" for key in known):
        yield Diagnosis("wrong", "keys", "all have ended or were taken back: nobody comes in", "`quipu key create`")
    elif on_loopback(config.host) or known or config.oauth:
        yield Diagnosis("ok", "keys", f"{len(known)} made" if known else "none made: this machine comes in without")
    elif config.open:
        yield Diagnosis("hint", "keys", f"whoever reaches {config.host} reads and writes", "leave QUIPU_OPEN out")
    else:
        yield Diagnosis("wrong", "keys", f"a server on {config.host} starts with keys only", "`quipu key create`")


def clients(config: Config, platform: str) -> Iterator[Diagnosis]:
    """What the configurations of known clients say of us."""
    none = True
    for client in CLIENTS:
        file = file_of(client, config.environment, platform)
        if not file.is_file():
            continue
        try:
            entry = client_entries.find(client, file, client_entries.NAME)
        except Fault as fault:
            yield Diagnosis("hint", client.title, f"{file} cannot be read: {fault.message}", "correct it by hand")
            continue
        if entry is not None:
            none = False
            yield _pointed(client, file, entry, config)
    if none:
        yield Diagnosis("hint", "clients", "none that is known points to Quipu", "`quipu setup --client NAME`")


def _pointed(client: Client, file: Path, entry: Entry, config: Config) -> Diagnosis:
    to, words = client_entries.points_to(entry), client_entries.command(entry)
    again = f"`quipu setup --client {client.name}` points it here"
    if not words:
        return _over_http(client, file, entry, again, config)
    if shutil.which(words[0]) is None:
        return Diagnosis("wrong", client.title, f"{file} starts {words[0]}, which is no program here", again)
    data = next((value for option, value in pairwise(words) if option == "--data"), "")
    if data and Path(data) != config.data.absolute():
        return Diagnosis("hint", client.title, f"its memories are in {data}, not in {config.data.absolute()}", again)
    return Diagnosis("ok", client.title, f"starts {to}")


def _over_http(client: Client, file: Path, entry: Entry, again: str, config: Config) -> Diagnosis:
    to = client_entries.address(entry)
    try:
        host, port = urlsplit(to).hostname, urlsplit(to).port
    except ValueError:
        host, port = None, None
    if not on_loopback(host or "") or port != config.port:
        return Diagnosis("hint", client.title, f"points to {to}, not to port {config.port} of this machine", again)
    trouble = _key(client, entry, config)
    if trouble:
        return trouble
    if _bearer(entry) and _seen_by_others(file):
        return Diagnosis("hint", client.title, f"others may read the key in {file}", f"chmod go= {file}")
    return Diagnosis("ok", client.title, f"points to {to}")


def _key(client: Client, entry: Entry, config: Config) -> Diagnosis | None:
    known: list[api_keys.Key] | Fault = catch_faults(api_keys.read, config.data)
    if isinstance(known, Fault) or not known or config.open:
        return None
    bearer = _bearer(entry)
    again = f"make one with `quipu key create` and give it with `quipu setup --client {client.name} --key -`"
    if not bearer:
        return Diagnosis("wrong", client.title, "its entry has no key, and the server asks for one", again)
    key = next((key for key in known if key.id == api_keys.parse(bearer)), None)
    if not config.oauth and not (api_keys.matches(bearer, key) and key and key.state(utc_now()) == "active"):
        return Diagnosis("wrong", client.title, "its key has ended, was taken back, or is none of ours", again)
    return None


def _bearer(entry: Entry) -> str:
    headers: Any = entry.get("headers") or entry.get("http_headers") or {}
    given = cast("Entry", headers).get("Authorization", "") if isinstance(headers, dict) else ""
    return str(given).partition("Bearer ")[2]


def _nearest(path: Path) -> Path:
    """The folder itself, or the first above it that exists."""
    return next((part for part in (path, *path.parents) if part.exists()), Path("/"))


def _seen_by_others(path: Path) -> bool:
    return os.name == "posix" and path.exists() and bool(path.stat().st_mode & _OTHERS)


def _file_system(path: Path) -> str:
    """The kind of file system, empty where the system does not say."""
    try:
        mounts = [line.split() for line in Path("/proc/mounts").read_text(encoding="utf-8").splitlines()]
    except OSError:
        return ""
    place = path.resolve()
    found = [(len(mount[1]), mount[2]) for mount in mounts if place.is_relative_to(mount[1].replace("\\040", " "))]
    return max(found, default=(0, ""))[1]
