"""`quipu doctor`: one line per check of the installation, with a remedy for each problem."""

import argparse
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, suppress
from datetime import datetime
from functools import partial
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from handlers.console.guide import Finding
from kernel.calls.dispatch import catch_faults
from kernel.cli import client_entries, output, probe, service
from kernel.cli.clients import CLIENTS, Client, Entry, config_file
from kernel.cli.environment import unknown_variables
from kernel.core import data_dir, file_access
from kernel.core.config import DEFAULT_PORT, FIRST_DIALECTS, MODEL, VERSION, Config, on_loopback
from kernel.core.data_dir import MAIN
from kernel.core.errors import Fault
from kernel.core.ids import utc_now
from kernel.embed.model import Embedder
from kernel.engines.migrations import pending_migrations
from kernel.engines.sqlite.connection import Connection
from kernel.engines.sqlite.database_file import check_log, log_of, size_of
from kernel.engines.sqlite.errors import OLDEST_SQLITE, sqlite_version
from kernel.engines.sqlite.vector_functions import sqlite_vec
from kernel.operations import restore
from kernel.operations.backup import backups_in, time_of_newest
from kernel.operations.file_check import damage_of
from kernel.operations.shared_store import prepare_tenant
from kernel.search import index
from kernel.security import api_keys
from kernel.security.local_access import connectable
from kernel.server import app
from kernel.store.context import CallContext, StoreContext
from kernel.store.transaction import Tx

_APSW = "apsw>=3.54.1"
_MIN_FREE_BYTES = 64 << 20
_MIB = 1 << 20

_GROUP_AND_OTHERS = 0o077
# Write-ahead logging needs memory shared by all processes of one host: https://sqlite.org/wal.html.
NETWORK = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "fuse.sshfs", "fuse.s3fs", "virtiofs"}
)
# The beginnings of the names of folders that programs copy elsewhere while they change.
_SYNCHRONIZED = ("onedrive", "dropbox", "google drive", "googledrive", "icloud", "mobile documents")
Check = Callable[[Config], Iterator[Finding]]
_COLOURS: Mapping[str, output.Colour] = {"ok": "green", "hint": "yellow", "wrong": "red"}
_ok, _hint, _wrong = partial(Finding, "ok", remedy=""), partial(Finding, "hint"), partial(Finding, "wrong")


def run(arguments: argparse.Namespace, config: Config, platform: str = sys.platform) -> int:
    """Print the result of every check; return 1 if any is `wrong`, else 0."""
    checks = (sqlite, folder, settings, database, model, disk, backups, server, access, address)
    status = 0
    for finding in findings(config, (*checks, partial(clients, platform=platform))):
        grade, subject, detail, remedy = msgspec.structs.astuple(finding)
        row = {"grade": grade, "subject": subject, "detail": detail, "remedy": remedy}
        colour = output.paint(f"{grade:5}", _COLOURS[grade], sys.stdout, config.environment)
        line = f"{colour}  {subject}: {detail}" + (f"; {remedy}" if remedy else "")
        output.show(row, line, as_json=arguments.json)
        status = 1 if grade == "wrong" else status
    return status


def findings(config: Config, checks: Iterable[Check]) -> Iterator[Finding]:
    """Yield the findings of checks; one that the system keeps from its files is `wrong`, and the next is made."""
    for check in checks:
        try:
            yield from check(config)
        except OSError as error:
            subject = getattr(check, "__name__", "clients")
            path = Path(os.fsdecode(error.filename)) if isinstance(error.filename, str | bytes) else None
            denied = path and file_access.denial(config.data.absolute(), path.absolute(), os.R_OK)
            detail = f"{error.strerror}: {error.filename}" if path else str(error)
            yield _wrong(subject, *((str(denied), denied.remedy) if denied else (detail, "")))


def _command(config: Config, *words: str) -> str:
    """Return a command that reaches this data directory from any terminal."""
    return f"`{shlex.join(['quipu', *words, *client_entries.data_option(config, sys.platform)])}`"


def sqlite(_config: Config) -> Iterator[Finding]:
    number = sqlite_version()
    version = f"SQLite {number // 1_000_000}.{number // 1000 % 1000}.{number % 1000}"
    if number < OLDEST_SQLITE:
        installer = [sys.executable, "-m", "pip", "install"]
        if find_spec("pip") is None:
            installer = ["uv", "pip", "install", "--python", sys.executable]
        remedy = f"`{shlex.join([*installer, _APSW])}` installs a newer one"
        yield _wrong("engine", f"{version} can lose pages while checkpointing", remedy)
    else:
        yield _ok("engine", f"{version}, cosines by {'sqlite-vec' if sqlite_vec() else 'simsimd'}")


def folder(config: Config) -> Iterator[Finding]:
    """Yield the data directory: writable, on a local file system and private to its user."""
    data = config.data.absolute()
    there = existing_parent(data)
    try:
        with tempfile.TemporaryFile(dir=there):
            pass
    except OSError as error:
        denied = file_access.denial(data, there)
        remedy = denied.remedy if denied else "choose another with --data or QUIPU_DATA"
        reason = denied.reason if denied else error.strerror
        yield _wrong("data directory", f"{there} cannot be written to: {reason}", remedy)
        return
    detail = str(data) if there == data else f"{data} is created at the first start"
    yield _ok("data directory", detail)
    kind = kind_of(there)
    if kind in NETWORK:
        remedy = _to_another_folder(config, "a local one")
        yield _wrong("data directory", f"it is on {kind}, where SQLite's write-ahead log can lose writes", remedy)
    synchronized_part = next((part for part in data.parts if part.lower().startswith(_SYNCHRONIZED)), "")
    if synchronized_part:
        detail = f"{synchronized_part} is synchronized: a copy taken while the database changes is damaged"
        yield _hint("data directory", detail, _to_another_folder(config, "another"))
    readable_paths = [path for path in (data, *data.glob("*.db*"), *data.glob("*.json")) if readable_by_others(path)]
    if readable_paths:
        yield _hint("data directory", f"other users can access {readable_paths[0]}", f"chmod -R go= {data}")


def _to_another_folder(config: Config, kind: str) -> str:
    """Return how the memories get into another folder; a setting alone would leave them behind."""
    choice = f"choose {kind} with --data or QUIPU_DATA"
    if not config.file.is_file():
        return choice
    return f"{choice}: {_command(config, 'backup', '--all', 'COPY')}, then `quipu restore COPY --data FOLDER` fills it"


def settings(config: Config) -> Iterator[Finding]:
    # The name of a dialect is looked up where the store is opened, the other settings where they are read.
    for state in (
        catch_faults(app.context_of, config._replace(model=None)),
        catch_faults(app.select_dialects, config.dialects),
    ):
        if isinstance(state, Fault):
            yield _wrong("settings", state.message, "correct this setting")
    for remark in unknown_variables(config):
        yield _hint("settings", remark, "it has no effect: correct its name, or unset it")


def database(config: Config) -> Iterator[Finding]:
    """Yield each database file: readable, of a supported version, intact, with a vector for each document."""
    if config.store:
        state = catch_faults(lambda: prepare_tenant(config, app.context_of(config)))
        if isinstance(state, Fault):
            yield _wrong("database", state.message.removesuffix("."), "see QUIPU_STORE in docs/scaling.md")
        else:
            yield _ok("database", f"PostgreSQL, with schema {state.schema}")
        return
    if sqlite_version() < OLDEST_SQLITE:
        return  # no file is at fault, and a restore would be no remedy
    if denied := file_access.denial(config.data.absolute(), config.data.absolute()):
        yield _wrong("database", str(denied), denied.remedy)
        return
    if restore.is_interrupted(config.data):
        yield _hint("database", "a restore was interrupted", "the next start finishes it")
        return
    names = [config.tenant, *(data_dir.other_tenants(config.data) if config.tenant == MAIN else [])]
    state = catch_faults(app.context_of, config)
    usable_context = app.base_context(None) if isinstance(state, Fault) else state
    for name in names:
        subject = "database" if name == MAIN else f"database of {name}"
        yield _database(subject, config._replace(tenant=name), usable_context)


def _database(subject: str, config: Config, context: StoreContext) -> Finding:
    if denied := _denial_of_database(config):
        return _wrong(subject, str(denied), denied.remedy)
    missing = catch_faults(_documents_without_vector, config, context)
    if isinstance(missing, Fault):
        if "quipu restore" in missing.message:
            return _wrong(subject, missing.message, "")
        remedy = f"{_command(config, 'restore', 'BACKUP')} puts a backup in place, or choose another data directory"
        if "fts5" in missing.message.lower():
            remedy = f"{_command(config, 'check', '--repair')} makes the full-text index anew"
        elif "newer than this program" in missing.message:
            remedy = f"install that newer Quipu; {remedy}"
        return _wrong(subject, missing.message.removesuffix("."), remedy)
    if not config.file.is_file():
        return _ok(subject, "none yet; created at the first start")
    if missing:
        documents = "1 document has" if missing == 1 else f"{missing} documents have"
        detail = f"{documents} no vector of this model yet; only full-text search finds them"
        return _hint(subject, detail, f"a running server or {_command(config, 'reindex')} embeds them")
    size = f"{config.file.stat().st_size / _MIB:.1f} MiB"
    return _ok(subject, f"{size}, SQLite's integrity check passed")


def _denial_of_database(config: Config) -> file_access.Denial | None:
    file, data = config.file.absolute(), config.data.absolute()
    denials = (file_access.denial(data, path) for path in (file, log_of(file), file.with_name(f"{file.name}-shm")))
    return next(filter(None, denials), None)


def _documents_without_vector(config: Config, context: StoreContext) -> int:
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


def model(config: Config) -> Iterator[Finding]:
    if config.model is None:
        remedy = "unset QUIPU_MODEL for the bundled model"
        yield _hint("model", "none is configured: search uses full text alone", remedy)
        return
    try:
        (embedding,) = Embedder(config.model).embed(["memory"])
        if not embedding.tokens:
            raise ValueError("its vocabulary has no English words")
    except (OSError, ValueError) as error:
        remedy = "reinstall Quipu" if config.model == MODEL else "correct QUIPU_MODEL or --model"
        yield _wrong("model", f"{config.model} cannot be used: {error}", remedy)
    else:
        yield _ok("model", f"{config.model.name}, {len(embedding.vector)} dimensions")


def disk(config: Config) -> Iterator[Finding]:
    free = shutil.disk_usage(existing_parent(config.data.absolute())).free
    size = size_of(config.file)
    detail = f"{free / _MIB:,.0f} MiB free"
    if free < _MIN_FREE_BYTES:
        yield _wrong("disk", detail, f"free some space: below {_MIN_FREE_BYTES // _MIB} MiB writes begin to fail")
    elif free < 2 * size:
        yield _hint("disk", f"{detail}, too little for a copy of the database", "free some space for backups")
    else:
        yield _ok("disk", detail)


def backups(config: Config) -> Iterator[Finding]:
    folder = config.backup_to
    if folder is None:
        return
    count, age = len(backups_in(folder)), datetime.fromisoformat(utc_now()).timestamp() - time_of_newest(folder)
    detail = f"{count} in {folder}, the newest {age / 3600:.1f} h old" if count else f"none yet in {folder}"
    # A backup is overdue by as long as two should take.
    if age > 3 * config.backup_every if count else config.file.exists() and not folder.is_dir():
        now = _command(config, "backup", "--to", str(folder))
        yield _wrong("backups", detail, f"a running server makes them, and its log says why not; {now} makes one now")
    else:
        yield _ok("backups", detail)


def server(config: Config) -> Iterator[Finding]:
    where = f"{connectable(config.host)}:{config.port}"
    try:
        response = probe.handshake(f"http://{probe.authority_of(config)}/mcp")
    except OSError:
        response = probe.Handshake(0)
    if response is None:
        remedy = f"{_listening(config, 'serve')} starts it; clients that start their own server do not need it"
        yield _hint("server", f"nothing listens on {where}", remedy)
    elif response.status == 401:
        yield _ok("server", f"a server that requires a key listens on {where}")
    elif response.name != client_entries.NAME:
        program = probe.listening_process(config.port) or "another program"
        remedy = "stop it, or give Quipu another port with --port or PORT"
        yield _wrong("server", f"{program} listens on {where} and is not Quipu", remedy)
    elif response.version != VERSION:
        detail = f"Quipu {response.version} listens on {where}, this is {VERSION}"
        yield _hint("server", detail, _restart(config))
    else:
        yield _ok("server", f"Quipu {response.version} listens on {where}")


def _listening(config: Config, *words: str) -> str:
    return _command(config, *words, *(() if config.port == DEFAULT_PORT else ("--port", str(config.port))))


def _restart(config: Config) -> str:
    """Return how this version gets into the place of the server that runs."""
    with suppress(Fault):  # of a system without a service manager
        unit = service.define(config, client_entries.this_program(config), sys.platform).file
        if unit.exists():
            return f"`quipu service remove`, then {_listening(config, 'service', 'install')} starts this version"
    program = probe.listening_process(config.port)
    return f"stop {program or 'it'}; {_listening(config, 'serve')} then starts this version"


def access(config: Config) -> Iterator[Finding]:
    """Check that the keys admit authorized clients and no others."""
    keys = catch_faults(api_keys.read, config.data)
    file = config.data.absolute() / api_keys.FILE
    if isinstance(keys, Fault) and (denied := file_access.denial(config.data.absolute(), file, os.R_OK)):
        yield _wrong("keys", f"no request is accepted: {denied}", denied.remedy)
    elif isinstance(keys, Fault) and existing_parent(file).is_file() and not file.exists():
        yield _wrong("keys", f"{config.data} is not a folder", "choose another with --data or QUIPU_DATA")
    elif isinstance(keys, Fault):
        remedy = (
            f"restore {config.data / api_keys.FILE} from a backup; {_command(config, 'key', 'reset')} deletes all keys"
        )
        yield _wrong("keys", keys.message.removesuffix("."), remedy)
    elif not (config.data / api_keys.FILE).exists() and catch_faults(app.had_keys, config) is True:
        remedy = (
            f"restore it from a backup; {_first_key(config)} makes a new key, {_command(config, 'key', 'reset')} says "
            "that there are none"
        )
        yield _wrong("keys", f"{api_keys.FILE} is lost: no request is accepted", remedy)
    elif keys and not any(key.state(utc_now()) == "active" for key in keys):
        yield _wrong("keys", "all are expired or revoked: no request is accepted", _first_key(config))
    elif on_loopback(config.host) or keys or config.oauth:
        yield _ok("keys", f"{len(keys)} created" if keys else "none created: this machine needs none")
    elif config.open:
        yield _hint("keys", f"anyone who can reach {config.host} can read and write", "unset QUIPU_OPEN")
    else:
        yield _wrong("keys", f"a server on {config.host} needs keys to start", _first_key(config))


def _first_key(config: Config) -> str:
    """Return the command of the key that can manage all others."""
    return _command(config, "key", "create", "--scope", "admin")


def address(config: Config) -> Iterator[Finding]:
    """Check the public address, if there is one: the name, TLS, keys, the proxy, and the server that runs."""
    if not config.public:
        return
    parts = urlsplit(config.public)
    name, problems = parts.hostname or "", list[Finding]()
    wrong, hint = partial(_wrong, "public address"), partial(_hint, "public address")
    if not {name, "*"} & {host.lower() for host in config.allowed_hosts} and not on_loopback(name):
        problems.append(wrong(f"requests for {name} are refused", _command(config, "expose", "--host", name)))
    keys: list[api_keys.Key] | Fault = catch_faults(api_keys.read, config.data)
    if not keys and not config.oauth:
        problems.append(wrong("behind a proxy everybody is local, and no key is needed", _first_key(config)))
    if parts.scheme == "http" and not on_loopback(name):
        remedy = "put TLS before it, and https into QUIPU_PUBLIC_URL"
        problems.append(hint(f"{config.public} has no TLS: keys cross the network as they are", remedy))
    if not config.proxies and not on_loopback(name):
        problems.append(hint("all clients share the limits of the proxy", "name it in QUIPU_PROXIES"))
    if _refuses(config, name):
        problems.append(wrong(f"the server that runs does not know the name {name}", "start it again"))
    yield from problems or [_ok("public address", f"{config.public}, where clients log in at /mcp")]


def _refuses(config: Config, name: str) -> bool:
    try:
        response = probe.handshake(f"http://{probe.authority_of(config)}/mcp", host=name)
    except OSError:
        return False
    return response is not None and response.status == 421


def clients(config: Config, platform: str) -> Iterator[Finding]:
    any_entry = False
    for client in CLIENTS:
        file = config_file(client, config.environment, platform)
        if not file.is_file():
            continue
        try:
            entry = client_entries.find_entry(client, file, client_entries.NAME)
        except Fault as fault:
            yield _hint(client.title, f"{file} cannot be read: {fault.message}", "correct it by hand")
            continue
        if entry is not None:
            any_entry = True
            yield _client_entry(client, file, entry, config)
    if not any_entry:
        yield _hint("clients", "no supported client is configured for Quipu", "`quipu setup --client NAME`")


def _client_entry(client: Client, file: Path, entry: Entry, config: Config) -> Finding:
    target, argv = client_entries.describe_target(entry), client_entries.argv_of(entry)
    if not argv:
        return _http_entry(client, file, entry, config)
    remedy = f"{_command(config, 'setup', '--client', client.name, '--stdio')} configures it for this data directory"
    if shutil.which(argv[0]) is None:
        return _wrong(client.title, f"{file} starts {argv[0]}, which is not installed", remedy)
    data = next((value for option, value in pairwise(argv) if option == "--data"), "")
    if data and Path(data) != config.data.absolute():
        return _hint(client.title, f"its data directory is {data}, not {config.data.absolute()}", remedy)
    return _ok(client.title, f"starts {target}")


def _http_entry(client: Client, file: Path, entry: Entry, config: Config) -> Finding:
    url, words = client_entries.url_of(entry), _setup_words(client, config)
    remedy = f"`{words}` configures it for this server"
    by_name = bool(config.public) and client_entries.is_same_server(url, config.public)
    if not (by_name or client_entries.is_local(url, config.port)):
        return _hint(client.title, f"points to {url}, not to port {config.port} of this machine", remedy)
    bearer = client_entries.bearer_of(entry)
    if by_name and not bearer:
        return _ok(client.title, f"points to {url}, where it logs in")
    keys: list[api_keys.Key] | Fault = catch_faults(api_keys.read, config.data)
    if not isinstance(keys, Fault) and keys and not config.open:
        remedy = (
            f"create one with {_command(config, 'key', 'create', '--scope', 'write')} and pass it to `{words} --key -`"
        )
        if not bearer:
            return _wrong(client.title, "its entry has no key, but the server requires one", remedy)
        key = next((key for key in keys if key.id == api_keys.parse(bearer)), None)
        if not config.oauth and not (api_keys.matches(bearer, key) and key and key.state(utc_now()) == "active"):
            return _wrong(client.title, "its key is expired, revoked or unknown", remedy)
    if bearer and readable_by_others(file):
        return _hint(client.title, f"other users can read the key in {file}", f"chmod go= {file}")
    return _ok(client.title, f"points to {url}")


def _setup_words(client: Client, config: Config) -> str:
    """Return the command that configures a client for this server, in a terminal that knows nothing of its port."""
    words = ["quipu", "setup", "--client", client.name]
    if config.public or config.port != DEFAULT_PORT:
        base = config.public or f"http://127.0.0.1:{config.port}"
        words += ["--url", f"{base}/mcp" + ("" if config.dialects else f"/{','.join(FIRST_DIALECTS)}")]
    return shlex.join(words)


def existing_parent(path: Path) -> Path:
    return next((part for part in (path, *path.parents) if part.exists()), Path("/"))


def readable_by_others(path: Path) -> bool:
    """Return whether other users of this machine can reach it; on Windows the user's folder keeps them out."""
    return os.name == "posix" and path.exists() and bool(path.stat().st_mode & _GROUP_AND_OTHERS)


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
