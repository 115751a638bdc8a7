"""The page on which a person lets an OAuth client in: who asks, with which rights, where and for how long."""

import asyncio
from urllib.parse import urlsplit

from msgspec import Struct

from handlers.console.actions import Done, Fields
from handlers.console.reading import Site
from handlers.console.requests import Visit
from kernel.calls.dialect import place_forms
from kernel.calls.dispatch import Dispatch
from kernel.core.errors import Fault
from kernel.core.ids import utc_now
from kernel.security import api_keys, permissions
from kernel.security.api_keys import Key
from kernel.security.permissions import Forbidden, Permission
from kernel.security.sign_in import AuthorizationRequest, OAuthError, SignIn

NAME = "authorize"
_PERIODS = ("30d", "90d", "365d", "never")


class Consent(Struct):
    """The model of the page; `places` are those of the key that consents, empty for all."""

    client: str
    host: str
    target: str
    tenant: str
    may_write: bool
    dialects: list[str]
    read: list[str]
    write: list[str]
    periods: tuple[str, ...]
    places: bool


def request_of(site: Site, fields: Fields) -> tuple[SignIn, AuthorizationRequest]:
    """Return the authorization server and the request of a client; raises Fault for a person, without a redirect."""
    if site.sign_in is None:
        raise Fault("not_found", "There is no such page.")
    server = site.sign_in()
    try:
        return server, server.request_of(fields)
    except OAuthError as error:
        raise Fault("invalid", f"{error} Nothing was granted.") from None


async def load(site: Site, _dispatch: Dispatch, visit: Visit) -> Consent:
    """Return the page for a request, to the owner of a key."""
    _, request = request_of(site, visit.query)
    key = await _key_of(site, visit)
    target = urlsplit(request.redirect)
    return Consent(
        request.client.name,
        target.netloc,
        f"{target.scheme}://{target.netloc}",
        key.tenant,
        Permission[key.scope] >= Permission.write,
        list(request.dialects or key.dialects),
        list(key.read),
        list(key.write),
        _PERIODS,
        not (key.read or key.write or key.dialects or request.dialects),
    )


async def decide(site: Site, dispatch: Dispatch, visit: Visit, fields: Fields) -> Done:
    """Makes the grant of the form, which is never more than its sender has, or refuses; leads back to the client."""
    server, request = request_of(site, fields)
    key = await _key_of(site, visit)
    if fields.get("decision") != "allow":
        return Done(server.answer(request, error="access_denied"))
    now = utc_now()
    draft = _draft(dispatch, key, request, fields, now)
    code = await asyncio.to_thread(server.consent, request, draft, key.id, now)
    return Done(server.answer(request, code=code))


async def _key_of(site: Site, visit: Visit) -> Key:
    """Return the key of a person; raises Forbidden for no key, and for that of a client, which grants nothing on."""
    keys = await asyncio.to_thread(api_keys.read, site.config.data)
    key = next((key for key in keys if key.id == visit.caller.key), None)
    if key is None or key.login is not None:
        raise Forbidden("Consent", None, "it takes a key that `quipu key create` has made")
    return key


def _draft(dispatch: Dispatch, key: Key, request: AuthorizationRequest, fields: Fields, now: str) -> Key:
    """Return the grant of a form, without an id; raises Fault naming the field, and Forbidden for more than the key."""
    writes = fields.get("write") == "yes"
    if writes and Permission[key.scope] < Permission.write:
        raise Forbidden("Writing", Permission.write)
    dialects = request.dialects or key.dialects
    if key.dialects and not set(dialects) <= set(key.dialects):
        raise Forbidden(", ".join(dialects), None)
    read, write = key.read, key.write
    typed = fields.get("places", "").split()
    if typed and (key.read or key.write or dialects):
        raise Fault("invalid", "places: a key for places or dialects grants those that it has.")
    if typed:
        forms = place_forms(dispatch.dialects, dispatch.store.context.settings)
        readable = permissions.parse(typed, forms, "places")
        read, write = ((), readable) if writes else (readable, ())
        whole = {d.name for d in dispatch.dialects if d.reads_all_dialects}
        dialects = tuple(sorted({place.partition(":")[0] for place in readable} | whole))
    elif not writes:
        read, write = tuple(sorted({*read, *write})), ()
    if fields.get("period") not in _PERIODS:
        raise Fault("invalid", f"period: choose from {', '.join(_PERIODS)}")
    ends = [] if fields["period"] == "never" else [api_keys.expiry(fields["period"], now)]
    ends += [key.expires] if key.expires else []
    return Key(
        "",
        "write" if writes else "read",
        now,
        tenant=key.tenant,
        name=request.client.name,
        dialects=dialects,
        read=read,
        write=write,
        expires=min(ends, default=""),
    )
