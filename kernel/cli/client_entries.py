"""One entry in the configuration of an MCP client: what it says, and how it gets there without touching the rest."""

import os
import shlex
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, cast
from urllib.parse import SplitResult, urlsplit

from kernel.cli import config_files
from kernel.cli.clients import Client, Entry, Target
from kernel.config import MODEL, Config, default_data
from kernel.data_dir import MAIN
from kernel.errors import Fault
from kernel.lazy_regex import regex
from kernel.maintenance.consistency import backup_time

NAME = "quipu"
_INSTALLED = "quipu_memory"
_NAME = regex(r"[A-Za-z0-9_-]{1,64}")
_KEY = regex(r"[\x21-\x7e]{1,1024}")
_OURS = ("QUIPU_", "CODE_MEMORY_")
# What becomes an option, or is for a server on the network alone.
_LEFT_OUT = (
    "QUIPU_DATA",
    "QUIPU_MODEL",
    "QUIPU_DIALECTS",
    "QUIPU_TENANT",
    "QUIPU_PROGRAM",
    "QUIPU_ALLOWED_",
    "QUIPU_IDLE_EXIT",
    "QUIPU_OAUTH_",
    "QUIPU_OPEN",
    "QUIPU_PUBLIC_URL",
)
_PRIVATE = 0o600


class Program(NamedTuple):
    """What starts this program again, and which variables it needs for that."""

    words: tuple[str, ...]
    env: Mapping[str, str] = {}


class Done(NamedTuple):
    """What `apply` did to a file: whether it changed, and where what was there before is, if there was anything."""

    changed: bool
    backup: Path | None = None


def program(script: str, executable: str, values: Mapping[str, str], *, frozen: bool) -> Program:
    """How this program was started, from `sys.argv[0]` and `sys.executable`, in words that work from any folder."""
    if frozen:
        return Program((values.get("QUIPU_PROGRAM") or executable,))
    path = Path(script).absolute()
    if path.stem in (NAME, "quipu-memory"):
        return Program((shutil.which(str(path)) or str(path),))
    if path.parent.name == _INSTALLED:
        return Program((executable, "-m", _INSTALLED))
    package = Path(__file__).resolve().parents[1]
    return Program((executable, "-m", package.name), {"PYTHONPATH": str(package.parent)})


def over_http(url: str, key: str, dialects: tuple[str, ...]) -> Target:
    """A server at `url`, cut down to one dialect; raises Fault("invalid") for what no client could use."""
    parts = _address(url)
    if key and not _KEY.fullmatch(key):
        raise Fault("invalid", "A key is printable ASCII without blanks")
    if len(dialects) > 1:
        raise Fault("invalid", "An address has one dialect or all: give each an entry of its own with --name")
    path = "/".join((parts.path.rstrip("/"), *dialects))
    return Target(url=parts._replace(path=path).geturl(), key=key)


def _address(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        fits = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        fits, parts = False, urlsplit("")
    if not fits or not url.isprintable() or " " in url:
        raise Fault("invalid", f"{url} is no address of a server: give one such as http://127.0.0.1:7847/mcp")
    return parts


def over_stdio(config: Config, started: Program, platform: str, dialects: tuple[str, ...]) -> Target:
    """A server that the client starts, with the settings that this process was started with."""
    words = [*started.words, "stdio"]
    if config.data != default_data(config.environment, platform):
        words += ["--data", str(config.data.absolute())]
    if config.model != MODEL:
        words += ["--model", str(config.model.absolute()) if config.model else "none"]
    if config.tenant != MAIN:
        words += ["--tenant", config.tenant]
    for dialect in dialects or config.dialects:
        words += ["--dialect", dialect]
    settings = {
        name: value
        for name, value in sorted(config.environment.items())
        if value and name.startswith(_OURS) and not name.startswith(_LEFT_OUT)
    }
    return Target(command=tuple(words), env={**started.env, **settings})


def snippet(client: Client, name: str, entry: Entry) -> str:
    """The entry as it stands in a file of its own."""
    return _put(client, "", name, entry)


def address(entry: Entry) -> str:
    """The address of the server that an entry points to, empty where the client starts it."""
    return next((str(entry[key]) for key in ("url", "serverUrl", "httpUrl") if key in entry), "")


def command(entry: Entry) -> list[str]:
    """The command line of the server that a client starts, empty where it does not."""
    said: Any = entry.get("command", [])
    words = cast("list[Any]", said if isinstance(said, list) else [said, *entry.get("args", [])])
    return [str(word) for word in words]


def points_to(entry: Entry) -> str:
    """The address or the command line of an entry, for people."""
    return address(entry) or shlex.join(command(entry))


def find(client: Client, file: Path, name: str) -> Entry | None:
    """The entry of this name in a client's file, None where there is none; raises Fault for what cannot be read."""
    document = _read(client, _decoded(file, _bytes(file)))
    return _table(_at(document, (*_keys(client, document), name)))


def apply(client: Client, file: Path, name: str, entry: Entry) -> Done:
    """Brings a client's file up to date; raises Fault, and leaves the file alone, where it cannot be understood.

    What others wrote into the entry stays there as long as it points to a server of the same kind.
    """
    if not _NAME.fullmatch(name):
        raise Fault("invalid", "A name is 1 to 64 letters, digits, underscores and hyphens")
    file = file.resolve()
    before = _bytes(file)
    text = _decoded(file, before)
    try:
        changed = _put(client, text, name, entry).encode()
    except Fault as fault:
        raise Fault("invalid", f"{file} was left as it is: {fault.message}. See --print for what to add") from None
    if changed == before:
        return Done(changed=False)
    try:
        return Done(changed=True, backup=_replace(file, before, changed))
    except OSError as error:
        raise Fault("storage", f"Cannot write {file}: {error.strerror}") from None


def _put(client: Client, text: str, name: str, entry: Entry) -> str:
    document = _read(client, text)
    keys = (*_keys(client, document), name)
    edit = config_files.set_toml if client.toml else config_files.set_json
    return edit(text, keys, _merged(client, _table(_at(document, keys)) or {}, entry))


def _merged(client: Client, old: Entry, new: Entry) -> Entry:
    if ("command" in old) is not ("command" in new):
        return new
    shape = {**(client.http or {}), **client.stdio}
    kept = {key: value for key, value in old.items() if key not in shape}
    variables = next((key for key, value in client.stdio.items() if value == "{env}"), "")
    env = {**(_table(old.get(variables)) or {}), **new.get(variables, {})} if "command" in new else {}
    return {**kept, **new, **({variables: env} if env else {})}


def _read(client: Client, text: str) -> Entry:
    return _table(config_files.read_toml(text) if client.toml else config_files.read_json(text)) or {}


def _keys(client: Client, document: Entry) -> tuple[str, ...]:
    return next((keys for keys in client.elsewhere if _table(_at(document, keys)) is not None), client.keys)


def _at(document: Any, keys: tuple[str, ...]) -> Any:
    for key in keys:
        document = (_table(document) or {}).get(key)
    return document


def _table(value: Any) -> Entry | None:
    return cast("Entry", value) if isinstance(value, dict) else None


def _bytes(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise Fault("storage", f"Cannot read {file}: {error.strerror}") from None


def _decoded(file: Path, content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise Fault("invalid", f"{file} was left as it is: it is no UTF-8") from None


def _replace(file: Path, before: bytes, after: bytes) -> Path | None:
    """Puts `after` in the place of the file in one step; the copy of what was there, with the same mode."""
    file.parent.mkdir(parents=True, exist_ok=True)
    backup: Path | None = None
    if before:
        backup = file.with_name(f"{file.name}.{backup_time()}.bak")
        shutil.copy2(file, backup)
    descriptor, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    try:
        with os.fdopen(descriptor, "wb") as written:
            written.write(after)
            written.flush()
            os.fsync(written.fileno())
        Path(name).chmod(file.stat().st_mode & 0o7777 if file.exists() else _PRIVATE)
        if _bytes(file) != before:
            raise Fault("conflict", f"{file} was changed by somebody else just now: try again")
        Path(name).replace(file)
    finally:
        Path(name).unlink(missing_ok=True)
    return backup
