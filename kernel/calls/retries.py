"""A retried write is not a second write: its answer is kept for a day under the key that the client gave the call.

The key is the `Idempotency-Key` header of draft-ietf-httpapi-idempotency-key-header, or `idempotencyKey` in the `_meta`
of an MCP request. It is committed with the write: a call whose answer was lost is answered again, and not run again.
"""

import hashlib
from collections.abc import Callable
from datetime import timedelta
from typing import NamedTuple

import msgspec

from kernel.calls.call import Answer
from kernel.calls.tools import Reply, Request
from kernel.core.errors import Fault
from kernel.core.times import later
from kernel.security.permissions import Caller
from kernel.store.long_work import Unfinished
from kernel.store.transaction import Target, Tx

IDEMPOTENCY_KEY = b"idempotency-key"
_KEPT = timedelta(hours=24)
_LONGEST = 255
_EXPIRED_ROWS = 64  # deleted in one transaction
_OTHER = "Idempotency-Key: this key was used for another call in the last 24 hours. Use a new key for a new call."
_WRONG = f"Idempotency-Key: must have 1 to {_LONGEST} printable ASCII characters."

Work = Callable[[Tx], Answer | Unfinished]
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Reply).decode


class _Kept(NamedTuple):
    digest: str
    answer: bytes


def with_idempotency_key(caller: Caller, key: str | bytes | None) -> Caller:
    """Return the caller of a call that has a key for retries; a header may have it in quotes."""
    if key is None:
        return caller
    text = key.decode("latin-1") if isinstance(key, bytes) else key
    return msgspec.structs.replace(caller, idempotency_key=text.strip().removeprefix('"').removesuffix('"'))


def once(work: Work, tool: str, request: Request, caller: str, key: str) -> Work:
    """Return the work of a write that runs once for a key; raises Fault("conflict") if the key is that of another call.

    A refused call keeps nothing, so that it can be repeated. `caller` is the id of an API key, empty without.
    """
    digest = hashlib.sha256(b"%b %b" % (tool.encode(), msgspec.json.encode(request, order="deterministic"))).hexdigest()

    def keyed(tx: Tx) -> Answer | Unfinished:
        if not (key.isascii() and key.isprintable() and 0 < len(key) <= _LONGEST):
            raise Fault("invalid", _WRONG)
        before = later(tx.now, -_KEPT)
        earlier = tx.one("kernel.retries.kept", _Kept, caller=caller, key=key, after=before)
        if earlier is not None:
            if earlier.digest != digest:
                raise Fault("conflict", _OTHER)
            return _decode(earlier.answer)
        answer = work(tx)
        if isinstance(answer, Reply):
            tx.run("kernel.retries.expire", before=before, limit=_EXPIRED_ROWS)
            row = {"caller": caller, "key": key, "digest": digest, "targets": tx.touched[1], "answer": _encode(answer)}
            tx.run("kernel.retries.keep", now=tx.now, **row)
        return answer

    return keyed


def first_targets(tx: Tx, caller: Caller) -> list[Target]:
    """Return the first memories that the call with this key touched, now or when it was first answered."""
    targets = tx.one("kernel.retries.targets", str, caller=caller.key, key=caller.idempotency_key)
    return [] if targets is None else msgspec.json.decode(targets, type=list[Target])
