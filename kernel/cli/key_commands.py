"""The commands that create, list, revoke and delete API keys."""

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec

from handlers.console.guide import FIRST_KEY, NOT_ADMIN
from kernel.cli.clients import CLIENTS
from kernel.cli.hook_files import rekey_command
from kernel.cli.output import local_time, note, show
from kernel.core import data_dir
from kernel.core.config import Config
from kernel.core.errors import Fault
from kernel.core.ids import utc_now
from kernel.security import api_keys
from kernel.security.permissions import Permission
from kernel.server import app

_MAX_NAME_CHARS = 64  # of a key
_FIRST_KEY = f"{FIRST_KEY} (`quipu setup --client NAME --key -`). `quipu key reset` deletes all keys."
_NONE_ACTIVE = (
    "No key is active: every client is refused. `quipu key create --scope admin` makes one, `quipu key reset` deletes "
    "all keys and lets every client on this machine in."
)


def create_key(arguments: argparse.Namespace, config: Config) -> int:
    """Create a key; print the secret on standard output and its properties on standard error."""
    draft = _draft(arguments, config)
    first = not api_keys.read(config.data)
    if arguments.tenants is not None:
        _create_batch(arguments, config, draft)
        if first:
            note(_FIRST_KEY)
        return 0
    key, secret = api_keys.create(config.data, draft)
    if first:
        note(_FIRST_KEY)
    note(f"It opens the store of the tenant {key.tenant}, {_place(config, key.tenant)}.")
    if key.tenant != data_dir.MAIN and first:
        note(f"What was stored without a key is in the tenant {data_dir.MAIN}: leave --tenant out to reach it.")
    if first:
        _tell_of_clients(config)
        if Permission[key.scope] < Permission.admin or key.dialects:
            note(NOT_ADMIN)
    note(f"{_key_line(key, key.created)}\nThe secret is shown only once:")
    show({"secret": secret, **_key_fields(key, key.created)}, secret, as_json=arguments.json)
    return 0


def _draft(arguments: argparse.Namespace, config: Config) -> api_keys.Key:
    """Return the key that the options describe, without an id; raises Fault("invalid")."""
    for name in arguments.dialect:
        if name in app.READING_ALL:
            raise Fault("invalid", f"{name} reads every dialect: create its key without --dialect")
    app.select_dialects(tuple(arguments.dialect))
    read, write, dialects = _places(arguments, config.environment)
    now = utc_now()
    end = api_keys.expiry(arguments.expires, now) if arguments.expires else ""
    return api_keys.Key(
        "",
        arguments.scope or ("write" if arguments.write else "read"),
        now,
        tenant=data_dir.tenant_name(arguments.tenant),
        name=_key_name(arguments.name),
        dialects=dialects,
        read=read,
        write=write,
        expires=end,
    )


def _places(arguments: argparse.Namespace, environment: Mapping[str, str]) -> app.Places:
    if not (arguments.read or arguments.write):
        if arguments.scope is None:
            raise Fault("invalid", "A key needs --scope, or the places that it may --read or --write.")
        return app.Places((), (), tuple(sorted(set(arguments.dialect))))
    if arguments.scope is not None or arguments.dialect:
        raise Fault("invalid", "--read and --write are instead of --scope and --dialect.")
    return app.places(arguments.read, arguments.write, environment)


def _create_batch(arguments: argparse.Namespace, config: Config, draft: api_keys.Key) -> None:
    """Create a key for each tenant in the lines of a file; print its tenant, id and secret as CSV."""
    if arguments.tenant != data_dir.MAIN:
        raise Fault("invalid", "--tenants names the tenants of the keys: leave --tenant out.")
    drafts = list[api_keys.Key]()
    for number, name in enumerate(map(str.strip, _lines(arguments.tenants)), 1):
        try:
            drafts += [msgspec.structs.replace(draft, tenant=data_dir.tenant_name(name))] if name else []
        except Fault as fault:
            raise Fault("invalid", f"Line {number}: {fault.message} No key was made.") from None
    if not drafts:
        raise Fault("invalid", f"{arguments.tenants} names no tenant; no key was made.")
    for key, secret in api_keys.create_all(config.data, drafts):
        line = f"{key.tenant},{key.id},{secret}"
        show({"secret": secret, **_key_fields(key, draft.created)}, line, as_json=arguments.json)


def _lines(file: str) -> list[str]:
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise Fault("invalid", f"Cannot read {file}: {getattr(error, 'strerror', None) or 'no UTF-8'}.") from None
    return text.splitlines()


def _place(config: Config, tenant: str) -> str:
    file = config._replace(tenant=tenant).file
    if config.store:
        return "in the database"
    return str(file) if file.exists() else f"{file}, which is new and empty"


def _tell_of_clients(config: Config) -> None:
    commands = [(client.title, rekey_command(client, config)) for client in CLIENTS]
    lines = [f"  {title}: {command}" for title, command in commands if command]
    if lines:
        note("\n".join(["Configured for this server, and in need of the key, for which each command waits:", *lines]))


def list_keys(arguments: argparse.Namespace, config: Config) -> int:
    now = utc_now()
    keys = api_keys.read(config.data)
    for key in keys:
        show(_key_fields(key, now), _key_line(key, now), as_json=arguments.json)
    if not keys:
        note("there are no keys")
    return 0


def revoke_key(arguments: argparse.Namespace, config: Config) -> int:
    """Revoke a key; a running server stops accepting it within a second."""
    return _show_ended(api_keys.revoke(config.data, arguments.id, utc_now()), arguments, config)


def delete_key(arguments: argparse.Namespace, config: Config) -> int:
    """Delete a key, so that it is no longer listed; a running server stops accepting it within a second."""
    return _show_ended(api_keys.delete(config.data, arguments.id), arguments, config)


def _show_ended(key: api_keys.Key, arguments: argparse.Namespace, config: Config) -> int:
    now = utc_now()
    show(_key_fields(key, now), _key_line(key, now), as_json=arguments.json)
    if not any(key.state(now) == "active" for key in api_keys.read(config.data)):
        note(_NONE_ACTIVE)
    return 0


def reset_keys(arguments: argparse.Namespace, config: Config) -> int:
    """Delete every key, so that a server on this machine asks for none again."""
    api_keys.clear(config.data)
    line = "No keys: a server on this machine serves every caller, one for other machines does not start."
    show({"keys": 0}, line, as_json=arguments.json)
    return 0


def _key_fields(key: api_keys.Key, now: str) -> dict[str, object]:
    fields: dict[str, object] = msgspec.to_builtins(key)
    client = {"login": {"client": key.login.client, "by": key.login.by}} if key.login else {}
    return {"state": key.state(now), **{name: value for name, value in fields.items() if name != "hash"}, **client}


def _key_line(key: api_keys.Key, now: str) -> str:
    dialects = ",".join(key.dialects) or "all dialects"
    if key.read or key.write:
        verbs = (("reads", key.read), ("writes", key.write))
        dialects = " ".join(f"{verb} {','.join(places)}" for verb, places in verbs if places)
    ends = (("revoked", key.revoked), ("expires", key.expires))
    end = next((f"{word} {local_time(at)}" for word, at in ends if at), "never expires")
    created = local_time(key.created)
    line = f"{key.id}  {key.state(now):8}  {key.tenant}  {key.scope}  {dialects}  created {created}  {end}"
    return f"{line}  {key.name}" if key.name else line


def _key_name(name: str) -> str:
    if len(name) > _MAX_NAME_CHARS or not name.isprintable():
        raise Fault("invalid", f"A key name has at most {_MAX_NAME_CHARS} printable characters")
    return name
