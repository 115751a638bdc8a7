"""API keys: 256 random bits, shown once, stored as SHA-256 in a file that only its owner can read."""

import hashlib
import hmac
import os
import secrets
from collections.abc import Callable, Container, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from kernel.core.data_dir import MAIN, file_lock, fsync, fsync_folder, give, make_private, replace
from kernel.core.errors import Fault
from kernel.core.lazy_regex import regex
from kernel.core.ordinary_files import read_bytes
from kernel.core.times import later, span, utc_time

FILE = "keys.json"
PREFIX = "quipu_"
_NEW = "keys.json.new"
_LOCK = "keys.json.lock"
_LOCK_WAIT_SECONDS = 5.0
_UNKNOWN_ID = "There is no key of this id; `quipu key list` shows them."
_ID_LETTERS = "0123456789abcdefghjkmnpqrstvwxyz"  # without i, l, o and u
_ID_LENGTH = 8
_SECRET_BYTES = 32
_KEY = regex(r"quipu_([0-9a-z]{8})_[A-Za-z0-9_-]{43}")
_NO_HASH = "0" * 64  # equals no SHA-256 that occurs


class Login(msgspec.Struct, frozen=True, omit_defaults=True):
    """The OAuth client that a key was granted to, and the digests of its code and tokens (see `sign_in.py`).

    `until` is the end of the code, `fresh` that of the access token; `redeemed` are codes and refresh tokens of before.
    `by` is the id of the key that consented, `dialects` are those of the resource, none for all.
    """

    client: str
    client_id: str
    redirect: str
    challenge: str = ""
    code: str = ""
    until: str = ""
    fresh: str = ""
    refresh: str = ""
    redeemed: tuple[str, ...] = ()
    by: str = ""
    dialects: tuple[str, ...] = ()


class Key(msgspec.Struct, frozen=True, omit_defaults=True):
    """One stored key: `hash` is the SHA-256 of the whole key in hex, empty once it is revoked; times are ISO UTC.

    Without `dialects` it allows all of them. `read` and `write` are the places that it is held to, if any; with `login`
    it is the grant of an OAuth client.
    """

    id: str
    scope: Literal["read", "write", "admin", "operator"]
    created: str
    hash: str = ""
    tenant: str = MAIN
    name: str = ""
    dialects: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    login: Login | None = None
    expires: str = ""
    revoked: str = ""

    def state(self, now: str) -> str:
        return "revoked" if self.revoked else "expired" if self.expires and self.expires <= now else "active"


def read(data: Path) -> list[Key]:
    """Return every key of the data directory, oldest first; raises Fault("storage") if the file cannot be read."""
    try:
        return msgspec.json.decode(read_bytes(data / FILE), type=list[Key])
    except FileNotFoundError:
        return []
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise Fault("storage", f"{FILE} cannot be read, so no caller can be authenticated.") from None


def opens(data: Path, tenant: str) -> bool:
    """Return whether a key was created for the tenant; raises Fault("storage") if the file cannot be read."""
    return any(key.tenant == tenant for key in read(data))


def create(data: Path, made: Key) -> tuple[Key, str]:
    """Stores a new key; returns the stored key and the secret for its owner."""
    return create_all(data, [made])[0]


def create_all(data: Path, drafts: Sequence[Key]) -> list[tuple[Key, str]]:
    """Stores new keys, whose `id` and `hash` are set here, by one change; returns each with its secret."""
    made: list[tuple[Key, str]] = []

    def add(keys: list[Key]) -> list[Key]:
        ids = {key.id for key in keys}
        for draft in drafts:
            id_ = fresh_id(ids)
            ids.add(id_)
            secret = secret_of(id_)
            made.append((msgspec.structs.replace(draft, id=id_, hash=digest(secret)), secret))
        return [*keys, *(key for key, _ in made)]

    change(data, add)
    return made


def revoke(data: Path, id_: str, now: str) -> Key:
    """Revokes a key and the grants that it made, which stay listed as revoked; raises Fault("not_found")."""

    def take(keys: list[Key]) -> list[Key]:
        if id_ not in {key.id for key in keys}:
            raise Fault("not_found", _UNKNOWN_ID)
        return [revoked(key, now) if _is_of(key, id_) and not key.revoked else key for key in keys]

    return next(key for key in change(data, take) if key.id == id_)


def delete(data: Path, id_: str) -> Key:
    """Deletes a key and the grants that it made; raises Fault("conflict") for the last one, without which no caller
    needs a key.
    """
    deleted: list[Key] = []

    def take(keys: list[Key]) -> list[Key]:
        deleted[:] = [key for key in keys if key.id == id_]
        if not deleted:
            raise Fault("not_found", _UNKNOWN_ID)
        left = [key for key in keys if not _is_of(key, id_)]
        if not left:
            raise Fault(
                "conflict", "This is the last key: `quipu key reset` deletes it and lets every local client in."
            )
        return left

    change(data, take)
    return deleted[0]


def forget_tenant(data: Path, tenant: str) -> int:
    """Deletes the keys of a tenant; returns how many. Raises Fault("conflict") if no key would be left, without which
    no caller needs a key.
    """
    keys = read(data)
    if not any(key.tenant == tenant for key in keys):
        return 0

    def take(keys: list[Key]) -> list[Key]:
        left = [key for key in keys if key.tenant != tenant]
        if not left:
            raise Fault("conflict", "These are the last keys, without which no caller needs one: make another first.")
        return left

    return len(keys) - len(change(data, take))


def clear(data: Path) -> None:
    """Deletes every key, of an unreadable file too; the file stays, so that it is known that there shall be none."""
    _write(data, list)


def needed(data: Path) -> bool:
    """Return whether there are keys, or a file that cannot be read."""
    try:
        return bool(read(data))
    except Fault:
        return True


def fresh_id(ids: Container[str]) -> str:
    return next(candidate for candidate in iter(_random_id, "") if candidate not in ids)


def secret_of(id_: str) -> str:
    return f"{PREFIX}{id_}_{secrets.token_urlsafe(_SECRET_BYTES)}"


def digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def parse(secret: str) -> str:
    """Return the id in a secret, empty for a text that is no key."""
    match = _KEY.fullmatch(secret)
    return match[1] if match else ""


def matches(secret: str, key: Key | None) -> bool:
    """Return whether this is the secret of `key`, in constant time, for an unknown key too."""
    same = hmac.compare_digest(digest(secret), key.hash if key and key.hash else _NO_HASH)
    return same and key is not None and not key.revoked


def expiry(value: str, now: str) -> str:
    """Return when a key ends, from `90d`, `12h`, `30m` or an ISO 8601 time in the future; raises Fault("invalid")."""
    age = span(value)
    try:
        expires = utc_time(value) if age is None else later(now, age)
    except OverflowError:
        expires = None
    if expires is None:
        raise Fault("invalid", "A key ends after a time such as 90d, 12h or 30m, or at one such as 2027-01-31.")
    if expires <= now:
        raise Fault("invalid", "A key must end in the future.")
    return expires


def revoked(key: Key, now: str) -> Key:
    """Return the key without its hash, as it stays listed."""
    return msgspec.structs.replace(key, hash="", revoked=now)


def _is_of(key: Key, id_: str) -> bool:
    return key.id == id_ or (key.login is not None and key.login.by == id_)


def _random_id() -> str:
    return "".join(secrets.choice(_ID_LETTERS) for _ in range(_ID_LENGTH))


def change(data: Path, change: Callable[[list[Key]], list[Key]]) -> Sequence[Key]:
    """Replaces the file atomically, one change at a time."""
    return _write(data, lambda: change(read(data)))


def _write(data: Path, keys_of: Callable[[], list[Key]]) -> Sequence[Key]:
    make_private(data)
    new = data / _NEW
    with file_lock(data / _LOCK, _LOCK_WAIT_SECONDS):
        try:
            with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
                keys = keys_of()
                file.write(msgspec.json.format(msgspec.json.encode(keys)) + b"\n")
                file.flush()
                give(file.fileno(), data)  # before a server that runs as another user reads it
                fsync(file.fileno())
            replace(new, data / FILE)
        except OSError as error:
            raise Fault("storage", f"Cannot write {FILE}: {error.strerror}") from None
        finally:
            new.unlink(missing_ok=True)
    fsync_folder(data)
    return keys
