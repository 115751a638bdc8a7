"""`quipu doctor`: one line per check of the installation, with a remedy for each problem."""

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Literal, NamedTuple

from kernel.calls.dispatch import catch_faults
from kernel.cli import client_entries, output, probe
from kernel.cli.backup_commands import describe_backups
from kernel.cli.clients import CLIENTS, Client, Entry, config_file
from kernel.cli.environment import unknown_variables
from kernel.core import data_dir
from kernel.core.config import MODEL, VERSION, Config, on_loopback
from kernel.core.data_dir import MAIN
from kernel.core.errors import Fault
from kernel.core.ids import utc_now
from kernel.embed.model import Embedder, Embedding
from kernel.engines.migrations import pending_migrations
from kernel.engines.sqlite.connection import Connection
from kernel.engines.sqlite.errors import OLDEST_SQLITE, sqlite_version
from kernel.engines.sqlite.log_file import check_log
from kernel.engines.sqlite.vector_functions import sqlite_vec
from kernel.operations import restore
from kernel.operations.file_check import damage_of
from kernel.search import index
from kernel.security import api_keys
from kernel.security.local_access import connectable
from kernel.server import app
from kernel.store.context import CallContext, StoreContext
from kernel.store.transaction import Tx

_MIN_FREE_BYTES = 64 << 20
_MIB = 1 << 20

Grade = Literal["ok", "hint", "wrong"]
_COLOURS: Mapping[Grade, output.Colour] = {"ok": "green", "hint": "yellow", "wrong": "red"}


class Diagnosis(NamedTuple):
    """The result of one check; `remedy` is empty if there is nothing to do."""

    grade: Grade
    subject: str
    detail: str
    remedy: str = ""

    def line(self, environment: Mapping[str, str]) -> str:
        """Return the check as a line of text, its grade coloured if the terminal allows it."""
        grade = output.paint(f"{self.grade:5}", _COLOURS[self.grade], sys.stdout, environment)
        return f"{grade}  {self.subject}: {self.detail}" + (f"; {self.remedy}" if self.remedy else "")


def run(arguments: argparse.Namespace, config: Config, platform: str = sys.platform) -> int:
    """Print the result of every check; return 1 if any is `wrong`, else 0."""
    grades: list[Diagnosis] = []
    for look in (
        sqlite,
        folder,
        settings,
        database,
        model,
        disk,
        backups,
        server,
        access,
        partial(clients, platform=platform),
    ):
        for finding in look(config):
            output.show(finding._asdict(), finding.line(config.environment), as_json=arguments.json)
            grades.append(finding)
    return 1 if any(finding.grade == "wrong" for finding in grades) else 0


def sqlite(_config: Config) -> Iterator[Diagnosis]:
    """Yield the version of the bundled SQLite."""
    number = sqlite_version()
    version = f"SQLite {number // 1_000_000}.{number // 1000 % 1000}.{number % 1000}"
    if number < OLDEST_SQLITE:
        yield Diagnosis(
            "wrong", "engine", f"{version} can lose pages while checkpointing", "install apsw 3.54.1 or newer"
        )
    else:
        yield Diagnosis("ok", "engine", f"{version}, cosines by {'sqlite-vec' if sqlite_vec() else 'simsimd'}")


def folder(config: Config) -> Iterator[Diagnosis]:
    """Yield the data directory: writable, on a local file system and private to its user."""
    data = config.data.absolute()
    there = existing_parent(data)
    try:
        with tempfile.TemporaryFile(dir=there):
            pass
    except OSError as error:
        remedy = "change its owner, or choose another with --data or QUIPU_DATA"
        yield Diagnosis("wrong", "data directory", f"{there} cannot be written to: {error.strerror}", remedy)
        return
    detail = str(data) if there == data else f"{data} is created at the first start"
    yield Diagnosis("ok", "data directory", detail)
    kind = kind_of(there)
    if kind in NETWORK:
        remedy = "choose a local one with --data or QUIPU_DATA"
        yield Diagnosis(
            "wrong", "data directory", f"it is on {kind}, where SQLite's write-ahead log can lose writes", remedy
        )
    if synchronized_part := synchronized_folder(data):
        detail = f"{synchronized_part} is synchronized: a copy taken while the database changes is damaged"
        yield Diagnosis("hint", "data directory", detail, "choose another folder with --data or QUIPU_DATA")
    readable_paths = [path for path in (data, *data.glob("*.db*"), *data.glob("*.json")) if readable_by_others(path)]
    if readable_paths:
        yield Diagnosis("hint", "data directory", f"other users can access {readable_paths[0]}", f"chmod -R go= {data}")


def settings(config: Config) -> Iterator[Diagnosis]:
    """Yield the settings of the dialects parse."""
    context = catch_faults(app.context_of, config._replace(model=None))
    if isinstance(context, Fault):
        yield Diagnosis("wrong", "settings", context.message, "correct this setting")
    for remark in unknown_variables(config):
        yield Diagnosis("hint", "settings", remark, "it has no effect")


def database(config: Config) -> Iterator[Diagnosis]:
    """Yield each database file: readable, of a supported version, intact, with a vector for each document."""
    if config.store:
        state = catch_faults(app.prepare_shared, config)
        if isinstance(state, Fault):
            yield Diagnosis("wrong", "database", state.message.removesuffix("."), "see QUIPU_STORE in docs/scaling.md")
        else:
            yield Diagnosis("ok", "database", f"PostgreSQL, with schema {state.schema}")
        return
    if restore.is_interrupted(config.data):
        yield Diagnosis("hint", "database", "a restore was interrupted", "the next start finishes it")
        return
    names = [config.tenant, *(data_dir.other_tenants(config.data) if config.tenant == MAIN else [])]
    state = catch_faults(app.context_of, config)
    usable_context = app.base_context(None) if isinstance(state, Fault) else state
    for name in names:
        subject = "database" if name == MAIN else f"database of {name}"
        yield _database(subject, config._replace(tenant=name), usable_context)


def _database(subject: str, config: Config, context: StoreContext) -> Diagnosis:
    missing = catch_faults(_documents_without_vector, config, context)
    if isinstance(missing, Fault):
        remedy = "`quipu restore` a backup, or choose another data directory"
        if "fts5" in missing.message.lower():
            remedy = "`quipu check --repair` makes the full-text index anew"
        return Diagnosis("wrong", subject, missing.message, "" if "quipu restore" in missing.message else remedy)
    if not config.file.is_file():
        return Diagnosis("ok", subject, "none yet; created at the first start")
    if missing:
        detail = f"{missing} documents have no vector of this model yet; only full-text search finds them"
        return Diagnosis("hint", subject, detail, "a running server or `quipu reindex` embeds them")
    size = f"{config.file.stat().st_size / _MIB:.1f} MiB"
    return Diagnosis("ok", subject, f"{size}, SQLite's integrity check passed")


def _documents_without_vector(config: Config, context: StoreContext) -> int:
    """Return the number of documents without a vector; raises Fault for a file that cannot be used."""
    file = config.file
    check_log(file)
    if not file.is_file():
        return 0
    if damage := damage_of(file, context):
        raise Fault("storage", f"The file is damaged: {damage}")
    with closing(Connection(file, context, readonly=True)) as db:
        # The tables of an older release get their vectors after its migrations.
        return 0 if pending_migrations(db) else db.read(CallContext(), _count_without_vector)


def _count_without_vector(tx: Tx) -> int:
    return (
        (tx.one("kernel.consistency.count_pending", int, model=index.model_id(tx)) or 0) if index.has_model(tx) else 0
    )


def model(config: Config) -> Iterator[Diagnosis]:
    """Check that the embedding model loads and embeds a word."""
    if config.model is None:
        remedy = "unset QUIPU_MODEL for the bundled model"
        yield Diagnosis("hint", "model", "none is configured: search uses full text alone", remedy)
        return
    embedding, reason = _try_model(config.model)
    if embedding is None:
        remedy = "reinstall Quipu" if config.model == MODEL else "correct QUIPU_MODEL or --model"
        yield Diagnosis("wrong", "model", f"{config.model} cannot be used: {reason}", remedy)
    else:
        yield Diagnosis("ok", "model", f"{config.model.name}, {len(embedding.vector)} dimensions")


def _try_model(folder: Path) -> tuple[Embedding | None, str]:
    try:
        (embedding,) = Embedder(folder).embed(["memory"])
    except (OSError, ValueError) as error:
        return None, str(error)
    return (embedding, "") if embedding.tokens else (None, "its vocabulary has no English words")


def disk(config: Config) -> Iterator[Diagnosis]:
    """Free space on the disk of the data directory."""
    free = shutil.disk_usage(existing_parent(config.data.absolute())).free
    size = config.file.stat().st_size if config.file.is_file() else 0
    detail = f"{free / _MIB:,.0f} MiB free"
    if free < _MIN_FREE_BYTES:
        yield Diagnosis(
            "wrong", "disk", detail, f"free some space: below {_MIN_FREE_BYTES // _MIB} MiB writes begin to fail"
        )
    elif free < 2 * size:
        yield Diagnosis(
            "hint", "disk", f"{detail}, too little for a copy of the database", "free some space for backups"
        )
    else:
        yield Diagnosis("ok", "disk", detail)


def backups(config: Config) -> Iterator[Diagnosis]:
    """Check that the scheduled backups are made."""
    yield from (Diagnosis(*finding) for finding in describe_backups(config))


def server(config: Config) -> Iterator[Diagnosis]:
    """Yield the program that listens on the configured address."""
    host = connectable(config.host)
    where = f"{host}:{config.port}"
    try:
        response = probe.handshake(f"http://{f'[{host}]' if ':' in host else host}:{config.port}/mcp")
    except OSError:
        response = probe.Handshake(0)
    if response is None:
        remedy = "`quipu serve` starts it; clients that start their own server do not need it"
        yield Diagnosis("hint", "server", f"nothing listens on {where}", remedy)
    elif response.status == 401:
        yield Diagnosis("ok", "server", f"a server that requires a key listens on {where}")
    elif response.name != client_entries.NAME:
        program = probe.listening_process(config.port) or "another program"
        remedy = "stop it, or give Quipu another port with --port or PORT"
        yield Diagnosis("wrong", "server", f"{program} listens on {where} and is not Quipu", remedy)
    elif response.version != VERSION:
        detail = f"Quipu {response.version} listens on {where}, this is {VERSION}"
        yield Diagnosis("hint", "server", detail, "restart it with this version")
    else:
        yield Diagnosis("ok", "server", f"Quipu {response.version} listens on {where}")


def access(config: Config) -> Iterator[Diagnosis]:
    """Yield the keys admit authorized clients and no others."""
    keys = catch_faults(api_keys.read, config.data)
    if isinstance(keys, Fault):
        yield Diagnosis(
            "wrong", "keys", keys.message, f"restore {config.data / api_keys.FILE} from a backup, or create new keys"
        )
    elif not (config.data / api_keys.FILE).exists() and catch_faults(app.had_keys, config) is True:
        remedy = (
            "restore it from a backup; `quipu key create` makes new keys, `quipu key reset` says that there are none"
        )
        yield Diagnosis("wrong", "keys", f"{api_keys.FILE} is lost: no request is accepted", remedy)
    elif keys and not any(key.state(utc_now()) == "active" for key in keys):
        yield Diagnosis("wrong", "keys", "all are expired or revoked: no request is accepted", "`quipu key create`")
    elif on_loopback(config.host) or keys or config.oauth:
        yield Diagnosis("ok", "keys", f"{len(keys)} created" if keys else "none created: this machine needs none")
    elif config.open:
        yield Diagnosis("hint", "keys", f"anyone who can reach {config.host} can read and write", "unset QUIPU_OPEN")
    else:
        yield Diagnosis("wrong", "keys", f"a server on {config.host} needs keys to start", "`quipu key create`")


def clients(config: Config, platform: str) -> Iterator[Diagnosis]:
    """Yield the entries for Quipu in the configuration files of supported clients."""
    any_entry = False
    for client in CLIENTS:
        file = config_file(client, config.environment, platform)
        if not file.is_file():
            continue
        try:
            entry = client_entries.find_entry(client, file, client_entries.NAME)
        except Fault as fault:
            yield Diagnosis("hint", client.title, f"{file} cannot be read: {fault.message}", "correct it by hand")
            continue
        if entry is not None:
            any_entry = True
            yield _client_entry(client, file, entry, config)
    if not any_entry:
        yield Diagnosis("hint", "clients", "no supported client is configured for Quipu", "`quipu setup --client NAME`")


def _client_entry(client: Client, file: Path, entry: Entry, config: Config) -> Diagnosis:
    target, argv = client_entries.describe_target(entry), client_entries.argv_of(entry)
    remedy = f"`quipu setup --client {client.name}` configures it for this server"
    if not argv:
        return _http_entry(client, file, entry, remedy, config)
    if shutil.which(argv[0]) is None:
        return Diagnosis("wrong", client.title, f"{file} starts {argv[0]}, which is not installed", remedy)
    data = next((value for option, value in pairwise(argv) if option == "--data"), "")
    if data and Path(data) != config.data.absolute():
        return Diagnosis("hint", client.title, f"its data directory is {data}, not {config.data.absolute()}", remedy)
    return Diagnosis("ok", client.title, f"starts {target}")


def _http_entry(client: Client, file: Path, entry: Entry, remedy: str, config: Config) -> Diagnosis:
    url = client_entries.url_of(entry)
    if not client_entries.is_local(url, config.port):
        return Diagnosis("hint", client.title, f"points to {url}, not to port {config.port} of this machine", remedy)
    problem = _key_problem(client, entry, config)
    if problem:
        return problem
    if client_entries.bearer_of(entry) and readable_by_others(file):
        return Diagnosis("hint", client.title, f"other users can read the key in {file}", f"chmod go= {file}")
    return Diagnosis("ok", client.title, f"points to {url}")


def _key_problem(client: Client, entry: Entry, config: Config) -> Diagnosis | None:
    keys: list[api_keys.Key] | Fault = catch_faults(api_keys.read, config.data)
    if isinstance(keys, Fault) or not keys or config.open:
        return None
    bearer = client_entries.bearer_of(entry)
    remedy = f"create one with `quipu key create` and pass it to `quipu setup --client {client.name} --key -`"
    if not bearer:
        return Diagnosis("wrong", client.title, "its entry has no key, but the server requires one", remedy)
    key = next((key for key in keys if key.id == api_keys.parse(bearer)), None)
    if not config.oauth and not (api_keys.matches(bearer, key) and key and key.state(utc_now()) == "active"):
        return Diagnosis("wrong", client.title, "its key is expired, revoked or unknown", remedy)
    return None


_GROUP_AND_OTHERS = 0o077
# Write-ahead logging needs memory shared by all processes of one host: https://sqlite.org/wal.html.
NETWORK = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "fuse.sshfs", "fuse.s3fs", "virtiofs"}
)
# What the folders of programs that copy files elsewhere while they change are called.
_SYNCHRONIZED = ("onedrive", "dropbox", "google drive", "googledrive", "icloud", "mobile documents")


def existing_parent(path: Path) -> Path:
    """Return the path itself, or its nearest ancestor that exists."""
    return next((part for part in (path, *path.parents) if part.exists()), Path("/"))


def readable_by_others(path: Path) -> bool:
    """Return whether other users of this machine can reach it; on Windows the user's folder keeps them out."""
    return os.name == "posix" and path.exists() and bool(path.stat().st_mode & _GROUP_AND_OTHERS)


def synchronized_folder(path: Path) -> str:
    """Return the folder above a path, or the path itself, that a program copies elsewhere; empty if there is none."""
    return next((part for part in path.parts if part.lower().startswith(_SYNCHRONIZED)), "")


def kind_of(path: Path) -> str:
    """Return the type of the file system; empty if the system does not expose it."""
    if path.drive.startswith("\\\\"):  # a share on Windows
        return "smbfs"
    try:
        mounts = [line.split() for line in Path("/proc/mounts").read_text(encoding="utf-8").splitlines()]
    except OSError:
        return ""
    place = path.resolve()
    points = [(len(mount[1]), mount[2]) for mount in mounts if place.is_relative_to(mount[1].replace("\\040", " "))]
    return max(points, default=(0, ""))[1]
