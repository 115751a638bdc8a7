"""The commands that create, list and revoke API keys."""

import argparse
import sys

from kernel import app, data_dir
from kernel.config import Config
from kernel.errors import Fault
from kernel.ids import utc_now
from kernel.security import api_keys

_MAX_NAME_CHARS = 64  # of a key
_FIRST_KEY = (
    "The first key: from now on every client needs one (`quipu setup --key`). `quipu key reset` deletes all keys."
)


def create_key(arguments: argparse.Namespace, config: Config) -> int:
    """Create a key; print the secret on standard output and its properties on standard error."""
    for name in arguments.dialect:
        if name in app.READING_ALL:
            raise Fault("invalid", f"{name} reads every dialect: create its key without --dialect")
    app.select_dialects(tuple(arguments.dialect))
    now = utc_now()
    end = api_keys.expiry(arguments.expires, now) if arguments.expires else ""
    wanted = api_keys.Key(
        "",
        arguments.scope,
        now,
        tenant=data_dir.tenant_name(arguments.tenant),
        name=_key_name(arguments.name),
        dialects=tuple(sorted(set(arguments.dialect))),
        expires=end,
    )
    first = not api_keys.read(config.data)
    made, secret = api_keys.create(config.data, wanted)
    if first:
        print(_FIRST_KEY, file=sys.stderr)
        if made.tenant != data_dir.MAIN:
            print(f"What was stored without a key is in the tenant {data_dir.MAIN}.", file=sys.stderr)
    print(f"{_key_line(made, now)}\nThe secret is shown only once:", file=sys.stderr)
    print(secret)
    return 0


def list_keys(_arguments: argparse.Namespace, config: Config) -> int:
    """Print every key, including revoked and expired ones, without secrets."""
    now = utc_now()
    for key in api_keys.read(config.data):
        print(_key_line(key, now))
    return 0


def revoke_key(arguments: argparse.Namespace, config: Config) -> int:
    """Revoke a key; a running server stops accepting it within a second."""
    now = utc_now()
    print(_key_line(api_keys.revoke(config.data, arguments.id, now), now))
    return 0


def reset_keys(_arguments: argparse.Namespace, config: Config) -> int:
    """Delete every key, so that a server on this machine asks for none again."""
    api_keys.clear(config.data)
    print("No keys: a server on this machine serves every caller, one for other machines does not start.")
    return 0


KEY_COMMANDS = {"create": create_key, "list": list_keys, "revoke": revoke_key, "reset": reset_keys}


def _key_line(key: api_keys.Key, now: str) -> str:
    dialects = ",".join(key.dialects) or "all dialects"
    end = f"revoked {key.revoked}" if key.revoked else f"expires {key.expires}" if key.expires else "never expires"
    line = f"{key.id}  {key.state(now):8}  {key.tenant}  {key.scope}  {dialects}  created {key.created}  {end}"
    return f"{line}  {key.name}" if key.name else line


def _key_name(name: str) -> str:
    if len(name) > _MAX_NAME_CHARS or not name.isprintable():
        raise Fault("invalid", f"A key name has at most {_MAX_NAME_CHARS} printable characters")
    return name
