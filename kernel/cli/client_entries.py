"""Read and write the entry of this server in the configuration file of an MCP client."""

import glob
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable, Collection, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple, cast
from urllib.parse import SplitResult, urlsplit

import msgspec

from kernel.cli import config_files
from kernel.cli.clients import Client, Entry, Syntax, Target
from kernel.core.config import MODEL, Config, default_data, on_loopback
from kernel.core.data_dir import MAIN, fsync, replace
from kernel.core.errors import Fault
from kernel.core.lazy_regex import regex
from kernel.core.ordinary_files import read_bytes
from kernel.operations.backup import backup_time
from kernel.server.app import SETTING_PREFIXES

NAME = "quipu"
_PACKAGE, _WHEEL_PACKAGE = "quipu-memory", "quipu_memory"
_SAFE_PATH = "-P"  # clients start it in the folder of a project, whose modules are not to be imported
_NAME = regex(r"[A-Za-z0-9_-]{1,64}")
_KEY = regex(r"[\x21-\x7e]{1,1024}")
# Passed as command line options instead, or meaningless for a server on standard input and output.
_NOT_PASSED_ON = tuple(
    "QUIPU_DATA QUIPU_MODEL QUIPU_DIALECTS QUIPU_TENANT QUIPU_PROGRAM QUIPU_ALLOWED_ QUIPU_IDLE_EXIT QUIPU_OAUTH_ "
    "QUIPU_OPEN QUIPU_PUBLIC_URL".split()
)
# The variables that decide the data directory, and that clients and the SDKs of MCP let a server inherit.
_PASSED_ON_BY_CLIENTS = ("HOME", "USERPROFILE", "APPDATA", "LOCALAPPDATA")
# Folders below uv's cache that hold the environments of `uvx`; `uv cache prune` removes them.
_UVX_FOLDERS = {"archive-v0", "environments-v2"}
_READERS: Mapping[Syntax, Callable[[str], Any]] = {
    "json": config_files.read_strict_json,
    "jsonc": config_files.read_json,
    "toml": config_files.read_toml,
}
_PATH_ENDS = str.maketrans("\\@:", "///")  # between the folders of Windows, and before versions and tags
_KEPT_BACKUPS = 3  # the first, which has no entry of this program, and the newest
_NEW_FILE_MODE = 0o600  # an entry can contain an API key


class LaunchCommand(NamedTuple):
    """The command that starts this program again, and the environment variables it needs."""

    words: tuple[str, ...]
    env: Mapping[str, str] = {}


class ApplyResult(NamedTuple):
    """The outcome of `apply_entry`: whether the file changed, and the copy of its previous content if it had any."""

    changed: bool
    backup: Path | None = None


def this_program(config: Config) -> LaunchCommand:
    return launch_command(sys.argv[0], sys.executable, config.environment, frozen=hasattr(sys, "frozen"))


def launch_command(script: str, executable: str, values: Mapping[str, str], *, frozen: bool) -> LaunchCommand:
    """Derive from `sys.argv[0]` and `sys.executable` a command that starts this program from any working directory."""
    if frozen:
        return LaunchCommand((values.get("QUIPU_PROGRAM") or executable,))
    path = Path(script).absolute()
    if _UVX_FOLDERS & {*path.parts, *Path(executable).parts}:
        source = _source()
        return LaunchCommand((shutil.which("uvx") or "uvx", *(("--from", source) if source else ()), _PACKAGE))
    if path.stem in (NAME, _PACKAGE):
        return LaunchCommand((shutil.which(str(path)) or str(path),))
    if path.parent.name == _WHEEL_PACKAGE:
        return LaunchCommand((executable, _SAFE_PATH, "-m", _WHEEL_PACKAGE))
    package = Path(__file__).resolve().parents[1]
    return LaunchCommand((executable, _SAFE_PATH, "-m", package.name), {"PYTHONPATH": str(package.parent)})


def _source() -> str:
    """Return the address of the file that this package was installed from; empty if it came from an index."""
    try:
        recorded = metadata.distribution(_PACKAGE).read_text("direct_url.json")
    except metadata.PackageNotFoundError:
        return ""
    return str(msgspec.json.decode(recorded)["url"]) if recorded else ""


def http_target(url: str, key: str, dialects: tuple[str, ...]) -> Target:
    """Return the target for a running server at `url`, or only these dialects of it; raises Fault("invalid")."""
    parts, key = parse_url(url), checked_key(key)
    path = "/".join((parts.path.rstrip("/"), *([",".join(dialects)] if dialects else [])))
    return Target(url=parts._replace(path=path).geturl(), key=key)


def checked_key(key: str) -> str:
    """Return a key as it is; raises Fault("invalid") for a text that cannot be a key."""
    if key and not _KEY.fullmatch(key):
        raise Fault("invalid", "A key is printable ASCII without spaces")
    return key


def typed_key(option: str) -> str:
    """Return the key of an option; - reads it from standard input. Raises Fault("invalid") if it cannot be a key."""
    if option != "-":
        return checked_key(option)
    if not (key := sys.stdin.readline().strip()):
        raise Fault("invalid", "There is no key on standard input")
    return checked_key(key)


def parse_url(url: str) -> SplitResult:
    """Return the parts of the URL of a server; raises Fault("invalid") if it is none."""
    try:
        parts = urlsplit(url)
        fits = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        fits, parts = False, urlsplit("")
    if not fits or not url.isprintable() or " " in url:
        raise Fault("invalid", f"{url} is not a server URL such as http://127.0.0.1:7847/mcp")
    return parts


def stdio_target(config: Config, program: LaunchCommand, platform: str, dialects: tuple[str, ...]) -> Target:
    words = [*program.words, "stdio", *data_option(config, platform)]
    if config.model != MODEL:
        words += ["--model", str(config.model.absolute()) if config.model else "none"]
    if config.tenant != MAIN:
        words += ["--tenant", config.tenant]
    for dialect in dialects or config.dialects:
        words += ["--dialect", dialect]
    return Target(command=tuple(words), env={**program.env, **settings_without(config, _NOT_PASSED_ON)})


def settings_without(config: Config, prefixes: tuple[str, ...]) -> dict[str, str]:
    return {
        name: value
        for name, value in sorted(config.environment.items())
        if value and name.startswith(SETTING_PREFIXES) and not name.startswith(prefixes)
    }


def data_option(config: Config, platform: str) -> list[str]:
    """Return the option for the data directory, if a program that a client starts would take another directory."""
    variables = {name: value for name, value in config.environment.items() if name in _PASSED_ON_BY_CLIENTS}
    return [] if config.data == default_data(variables, platform) else ["--data", str(config.data.absolute())]


def snippet(client: Client, name: str, entry: Entry) -> str:
    return _with_entry(client, "", name, entry)


def url_of(entry: Entry) -> str:
    return next((str(entry[key]) for key in ("url", "serverUrl", "httpUrl") if key in entry), "")


def server_of(url: str) -> str:
    """Return the host and port of an address, or all of a text that is none."""
    try:
        return urlsplit(url).netloc or url
    except ValueError:
        return url


def is_local(url: str, port: int | None = None) -> bool:
    try:
        parts = urlsplit(url)
        return on_loopback(parts.hostname or "") and port in (None, parts.port)
    except ValueError:
        return False


def is_same_server(url: str, other: str) -> bool:
    """Return whether two addresses lead to one server, which may be sent the same key."""
    try:
        parts, others = urlsplit(url), urlsplit(other)
        local = is_local(url) and is_local(other)
        names = ("", "") if local else (parts.hostname, others.hostname)
        return (parts.scheme, names[0], parts.port) == (others.scheme, names[1], others.port) and bool(parts.hostname)
    except ValueError:
        return False


def bearer_of(entry: Entry) -> str:
    headers: Any = entry.get("headers") or entry.get("http_headers") or {}
    authorization = cast("Entry", headers).get("Authorization", "") if isinstance(headers, dict) else ""
    return str(authorization).partition("Bearer ")[2]


def argv_of(entry: Entry) -> list[str]:
    command: Any = entry.get("command", [])
    words = cast("list[Any]", command if isinstance(command, list) else [command, *entry.get("args", [])])
    return [str(word) for word in words]


def describe_target(entry: Entry) -> str:
    return url_of(entry) or shlex.join(argv_of(entry))


def find_entry(client: Client, file: Path, name: str) -> Entry | None:
    """Return the entry called `name` in a client's file, or None; raises Fault if the file cannot be read or parsed."""
    document = _read(client, text_of(file))
    return _table(_value_at(document, (*_keys(client, document), name)))


def name_of_entry_starting(client: Client, file: Path, programs: Collection[str]) -> str | None:
    """Return the name of the first entry whose command names any of these programs; raises Fault as `find_entry`."""
    document = _read(client, text_of(file))
    entries = _table(_value_at(document, _keys(client, document))) or {}
    for name, entry in entries.items():
        words = [f"/{word.translate(_PATH_ENDS)}/" for word in argv_of(_table(entry) or {})]
        if any(f"/{program}/" in word for word in words for program in programs):
            return name
    return None


def text_of(file: Path) -> str:
    """Return the content of a client's file, empty without one; raises Fault if it cannot be read."""
    return _decoded(file, _bytes(file))


def replace_content(file: Path, before: bytes, after: bytes) -> Path | None:
    """Replace a client's file, unless it has changed since it was read; return the copy of its old content."""
    try:
        return _replace(Path(os.path.realpath(file)), before, after)
    except OSError as error:
        raise Fault("storage", f"Cannot write {file}: {error.strerror}") from None


def apply_entry(client: Client, file: Path, name: str, entry: Entry) -> ApplyResult:
    """Write an entry into a client's file; raises Fault and leaves the file unchanged if it cannot be edited safely.

    Members of an existing entry that Quipu does not set, such as `disabled`, are kept.
    """
    if not _NAME.fullmatch(name):
        raise Fault("invalid", "A name is 1 to 64 letters, digits, underscores and hyphens")
    return _edit(file, lambda text: _with_entry(client, text, name, entry))


def remove_entry(client: Client, file: Path, name: str) -> ApplyResult:
    """Remove an entry from a client's file; raises Fault, with the file unchanged, if it cannot be edited safely."""
    remove = config_files.remove_toml if client.syntax == "toml" else config_files.remove_json
    return _edit(file, lambda text: remove(text, (*_keys(client, _read(client, text)), name)))


def _edit(file: Path, change: Callable[[str], str]) -> ApplyResult:
    file = Path(os.path.realpath(file))  # links stay; links in a circle are refused when the file is read
    before = _bytes(file)
    text = _decoded(file, before)
    try:
        after = change(text).encode()
    except Fault as fault:
        raise Fault(
            "invalid", f"{file} was not changed: {fault.message}. Use --print to see the entry to add"
        ) from None
    if after == before:
        return ApplyResult(changed=False)
    return ApplyResult(changed=True, backup=replace_content(file, before, after))


def _with_entry(client: Client, text: str, name: str, entry: Entry) -> str:
    document = _read(client, text)
    keys = (*_keys(client, document), name)
    edit = config_files.set_toml if client.syntax == "toml" else config_files.set_json
    return edit(text, keys, _merged(client, _table(_value_at(document, keys)) or {}, entry))


def _merged(client: Client, old: Entry, new: Entry) -> Entry:
    shape = {**(client.http or {}), **client.stdio}
    unset = {key: value for key, value in old.items() if key not in shape}
    is_command, is_server = "command" in old and "command" in new, is_same_server(url_of(old), url_of(new))
    # Variables that the user added by hand are kept, and the key and other headers of the same server.
    stays = {
        key for key, value in shape.items() if (value == "{env}" and is_command) or (value == "{headers}" and is_server)
    }
    kept = {key: {**before, **new.get(key, {})} for key in stays if (before := _table(old.get(key)))}
    return {**unset, **new, **kept}


def _read(client: Client, text: str) -> Entry:
    return _table(_READERS[client.syntax](text)) or {}


def _keys(client: Client, document: Entry) -> tuple[str, ...]:
    return next(
        (keys for keys in client.alternative_keys if _table(_value_at(document, keys)) is not None), client.keys
    )


def _value_at(document: Any, keys: tuple[str, ...]) -> Any:
    for key in keys:
        document = (_table(document) or {}).get(key)
    return document


def _table(value: Any) -> Entry | None:
    return cast("Entry", value) if isinstance(value, dict) else None


def _bytes(file: Path) -> bytes:
    try:
        return read_bytes(file)
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise Fault("storage", f"Cannot read {file}: {error.strerror}") from None


def _decoded(file: Path, content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise Fault("invalid", f"{file} was not changed: it is not UTF-8") from None


def _replace(file: Path, before: bytes, after: bytes) -> Path | None:
    """Replace the file atomically; return the backup of its old content, which keeps the mode, if there was any."""
    file.parent.mkdir(parents=True, exist_ok=True)
    backup: Path | None = None
    if before:
        backup = file.with_name(f"{file.name}.{backup_time()}.bak")
        shutil.copy2(file, backup)
    descriptor, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    try:
        with os.fdopen(descriptor, "wb") as target:
            target.write(after)
            target.flush()
            fsync(target.fileno())
        Path(name).chmod(file.stat().st_mode & 0o7777 if file.exists() else _NEW_FILE_MODE)
        # Clients rewrite their own files: changes since the file was read must not be overwritten.
        if _bytes(file) != before:
            raise Fault("conflict", f"{file} was changed by another program meanwhile: try again")
        replace(Path(name), file)
    finally:
        Path(name).unlink(missing_ok=True)
    for old in sorted(file.parent.glob(f"{glob.escape(file.name)}.2???-??-??T*Z.bak"))[1 : 1 - _KEPT_BACKUPS]:
        old.unlink(missing_ok=True)
    return backup
