"""The application of /ui: who asks, which page it is, and the answer as HTML or JSON."""

import asyncio
import base64
import os
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlencode

import msgspec
from msgspec import Struct
from starlette.types import Receive, Scope, Send

from handlers.console import (
    actions,
    administration,
    browse,
    connect,
    consent,
    erasing,
    lists,
    live,
    memory,
    overview,
    search,
    transfers,
)
from handlers.console.actions import Action, Done
from handlers.console.guide import NO_GUIDE, Checks, GuideOf
from handlers.console.reading import Site
from handlers.console.rendering import Renderer
from handlers.console.requests import (
    FORM_BYTES,
    SECURITY,
    TEXT_BYTES,
    Answer,
    Request,
    Visit,
    is_form,
    is_same_origin,
    parameters,
    upload_of,
    zone_of,
)
from handlers.console.sessions import Visitors
from kernel.calls.dispatch import Dispatch
from kernel.core.config import Config
from kernel.core.errors import HTTP_STATUS, Code, Fault
from kernel.core.ids import utc_now
from kernel.core.limits import UPLOAD_BYTES, Headers, Limits, read_body, read_large, refuse
from kernel.http.edge import AccessControl, HttpResponse, send_response
from kernel.observe.call_log import CallLog
from kernel.observe.metrics import Snapshot
from kernel.security.auth import Unauthenticated
from kernel.security.login_codes import SECONDS, LoginCodes
from kernel.security.permissions import Forbidden

if TYPE_CHECKING:
    from kernel.server.worker import Worker

_JSON = "application/json"
_PREFIX = "/ui"
_STREAM = "/ui/live"
_CSV = "audit.csv"
_POLICY = "content-security-policy"
_FOREVER = {"cache-control": "public, max-age=31536000, immutable"}
_DOWNLOAD = {"content-disposition": 'attachment; filename="memories.jsonl"'}
_WRONG_KEY = "This key is unknown, has expired or was revoked."
_WRONG_CODE = "This code is unknown, was used or is older than a minute; `quipu ui` makes another."
_LOGGED_OUT = "You are no longer logged in. Nothing was written: log in, then send it again."
_TOO_LONG = f"A text of a page has at most {TEXT_BYTES >> 10} KB: `quipu add` and `quipu edit` take longer texts."
_NOTICES = {
    "edited": "Saved. The text before it is among the versions.",
    "forgotten": "Forgotten. Undo brings it back, as long as its changes are kept.",
    "undone": "Undone.",
    "changed": "Changed.",
    "unchanged": "They have that tag already.",
    "released": "Released, until its text changes.",
    "confirmed": "The files that it names count as they are now.",
    "revoked": "The key is revoked.",
    "left": "You are logged out.",
    "added": "Added.",
    "imported": "Imported. Undo takes all of it back.",
    "nothing": "Nothing new was imported: it is all here already.",
    "backup": "Backed up, into a file beside the database.",
}


# The first fields of a Site.
Seen = tuple[Config, int, Callable[[], bool], CallLog, Callable[[], bool]]


class Page(NamedTuple):
    title: str
    load: Callable[[Site, Dispatch, Visit], Awaitable[Struct]]
    in_menu: bool = True


PAGES: Mapping[str, Page] = {
    "overview": Page("Overview", overview.load),
    "search": Page("Search", search.load),
    "browse": Page("Browse", browse.load),
    "timeline": Page("Timeline", lists.load_timeline),
    "calls": Page("Live", live.load),
    "review": Page("Review", lists.load_review),
    "audit": Page("Audit", lists.load_audit),
    "connect": Page("Connect", connect.load_connect),
    "health": Page("Health", administration.load_health),
    "keys": Page("Keys", administration.load_keys),
    "memory": Page("Memory", memory.load, in_menu=False),
    "new": Page("New memory", transfers.load_new, in_menu=False),
    "import": Page("Import", transfers.load_import, in_menu=False),
    consent.NAME: Page("Let a program in", consent.load, in_menu=False),
}
ACTIONS: Mapping[str, Action] = {
    **actions.ACTIONS,
    **erasing.ACTIONS,
    **transfers.ACTIONS,
    consent.NAME: consent.decide,
}
_UPLOAD = "import"
_ADMIN = {"health", "keys"}
_MANAGING = {"admin", "operator"}


class Console:
    def __init__(self, site: Site, limits: Limits, access: AccessControl, visitors: Visitors) -> None:
        self._site = site
        self._limits = limits
        self._access = access
        self._visitors = visitors
        self._renderer = Renderer()
        self._streams = live.Streams(site)
        self._of_sessions = {"login": self._log_in, "logout": self._log_out, "code": self._make_code}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        raw = scope["headers"]
        headers: dict[bytes, bytes] = dict(raw)
        refusal = refuse(raw, headers, self._limits)
        if refusal is not None:
            answer = Answer(refusal.status, refusal.reason.encode(), "text/plain", {"connection": "close"})
        else:
            answer = await self._answer(scope, headers, receive, send)
        if answer is not None:
            await _send(send, answer)

    async def _answer(self, scope: Scope, headers: Headers, receive: Receive, send: Send) -> Answer | None:
        path: str = scope["path"].rstrip("/")
        request = Request(scope["method"], path, headers, {}, receive)
        try:
            request = request._replace(query=parameters(scope.get("query_string", b"")))
            if path == _STREAM and request.method == "GET":
                return await self._stream(request, send)
            return await self._route(request)
        except Unauthenticated as error:
            return self._ask_for_key(request, error)
        except Forbidden as error:
            return self._failure(request, 403, "forbidden", f"{error}.")
        except Fault as fault:
            return self._failure(request, HTTP_STATUS[fault.code], fault.code, fault.message)

    async def _stream(self, request: Request, send: Send) -> None:
        caller = self._visitors.visit(request)[0].caller
        self._streams.require_room(caller)
        await self._streams.serve(caller, lambda: self._visitors.visit(request)[0], request.receive, send)

    async def _route(self, request: Request) -> Answer:
        if not request.path.startswith(_PREFIX):
            return Answer(303, b"", headers={"location": _PREFIX, "vary": "accept"})
        path = request.path.removeprefix(_PREFIX)
        if path.startswith("/do/"):
            return await self._act(request, path.removeprefix("/do/"))
        if request.method not in {"GET", "HEAD"}:
            return self._failure(request, 405, "invalid", "Pages are read with GET.", {"allow": "GET, HEAD"})
        if path.startswith("/static/"):
            return self._file(request, path.removeprefix("/static/"))
        name = path.removesuffix(".json").removeprefix("/") or "overview"
        if name == "login":
            return self._login_page(request)
        visit, session = self._visitors.visit(request)
        page = PAGES.get(name)
        if page is None and name != _CSV:
            raise Fault("not_found", "There is no such page.")
        async with self._access.tenants.use(visit.caller.tenant) as dispatch:
            if page is None:
                rows = await lists.audit_csv(dispatch, visit)
                return Answer(200, rows, "text/csv; charset=utf-8", {"content-disposition": "attachment"})
            model = await page.load(self._site, dispatch, visit)
        return self._visitors.renewed(await self._page(request, name, page, model, visit), session)

    async def _page(self, request: Request, name: str, page: Page, model: Struct, visit: Visit) -> Answer:
        problem: str = getattr(model, "problem", "")
        if request.path.endswith(".json"):
            if problem:
                return self._failure(request, 400, "invalid", problem)
            return Answer(200, msgspec.json.encode(model), _JSON)
        values = self._values(name, page.title, visit, {"model": model}, request)
        # A page of megabytes takes a while, during which others are answered.
        answer = Answer(200, await asyncio.to_thread(self._renderer.page, f"{name}.html", values))
        if isinstance(model, consent.Consent):  # Chromium asks for the target of the redirect after a form, too
            policy = SECURITY[_POLICY].replace("form-action 'self'", f"form-action 'self' {_source(model.target)}")
            return answer._replace(headers={_POLICY: policy})
        return answer._replace(status=400) if problem else answer

    async def _act(self, request: Request, name: str) -> Answer:
        """Runs an action for a form of our own pages."""
        refusal = self._refuse_form(request, name)
        if refusal is not None:
            return refusal
        if name == _UPLOAD:
            return await self._upload(request)
        body = await read_body(request.receive, FORM_BYTES)
        if body is None:
            closing = {"connection": "close"}
            return self._failure(request, 413, "invalid", _TOO_LONG, closing)
        fields = parameters(body)
        if name in self._of_sessions:
            return self._of_sessions[name](request, fields)
        values = {"typed": fields.get("text"), "id": fields.get("id", "")}
        try:
            visit, _ = self._visitors.visit(request)
        except Unauthenticated as error:
            return self._ask_for_key(request, error, values)
        action = ACTIONS.get(name)
        if action is None:
            raise Fault("not_found", "There is no such action.")
        try:
            async with self._access.tenants.use(visit.caller.tenant) as dispatch:
                outcome = await action(self._site, dispatch, visit, fields)
        except Fault as fault:
            return self._failure(request, HTTP_STATUS[fault.code], fault.code, fault.message, values=values)
        return self._done(request, visit, outcome)

    async def _upload(self, request: Request) -> Answer:
        """Looks into the file of a form, which only a caller who may import it can send."""
        visit, _ = self._visitors.visit(request)
        transfers.require_all(visit, "Import")
        with self._site.uploads.room(visit):
            body = await read_large(request.receive, UPLOAD_BYTES)
            if body is None:
                message = f"A page takes at most {UPLOAD_BYTES >> 20} MB: `quipu import PATH` reads any size."
                return self._failure(request, 413, "invalid", message, {"connection": "close"})
            upload = upload_of(request.headers.get(b"content-type", b""), body)
            if upload is None:
                return self._failure(request, 415, "invalid", "A file comes as multipart/form-data.")
            model = await transfers.look_into(self._site, visit, upload)
        return self._html("import", "Import", visit, {"model": model}, request)

    def _refuse_form(self, request: Request, name: str) -> Answer | None:
        if request.method != "POST":
            return self._failure(request, 405, "invalid", "Actions take POST.", {"allow": "POST"})
        if not is_same_origin(request.headers, self._site.config.public):
            return self._failure(request, 403, "forbidden", "Only the pages of this server may send this form.")
        if name != _UPLOAD and not is_form(request.headers):
            return self._failure(request, 415, "invalid", "A form is application/x-www-form-urlencoded.")
        return None

    def _done(self, request: Request, visit: Visit, outcome: Done) -> Answer:
        if outcome.secret:
            cookie = {"set-cookie": self._visitors.begin(request, outcome.begins)} if outcome.begins else {}
            values = {"secret": outcome.secret, "first": bool(outcome.begins), "clients": outcome.clients}
            return self._html("secret", "New key", visit, values, request)._replace(headers=cookie)
        if outcome.health:
            return self._html("health", "Health", visit, {"model": outcome.health}, request)
        if outcome.erasable or outcome.receipt:
            download = base64.b64encode(msgspec.json.encode(outcome.receipt)).decode()
            values = {"erasable": outcome.erasable, "receipt": outcome.receipt, "download": download}
            return self._html("erase", "Erase", visit, values, request)
        if outcome.file:
            return Answer(200, outcome.file, "application/x-ndjson", _DOWNLOAD)
        return Answer(303, b"", headers={"location": outcome.location})

    def _log_in(self, request: Request, fields: Mapping[str, str]) -> Answer:
        cookie, wanted = self._visitors.log_in(request, fields), fields.get("next", "")
        if cookie is None:
            wrong = _WRONG_CODE if "code" in fields else _WRONG_KEY
            return self._login_page(request, wrong, wanted)._replace(status=401)
        location = f"{_PREFIX}/{consent.NAME}?{urlencode(parameters(wanted.encode()))}" if wanted else _PREFIX
        return Answer(303, b"", headers={"location": location, "set-cookie": cookie})

    def _log_out(self, request: Request, _fields: Mapping[str, str]) -> Answer:
        headers = {"location": f"{_PREFIX}/login?done=left", "set-cookie": self._visitors.log_out(request)}
        return Answer(303, b"", headers=headers)

    def _make_code(self, request: Request, _fields: Mapping[str, str]) -> Answer:
        return Answer(200, msgspec.json.encode({"code": self._visitors.code(request), "seconds": SECONDS}), _JSON)

    def _login_page(self, request: Request, wrong: str = "", wanted: str = "") -> Answer:
        takes_code = request.headers.get(b"sec-fetch-site", b"none") == b"none"
        if request.path == f"{_PREFIX}/{consent.NAME}":
            wanted = urlencode(request.query)
        values = {"wrong": wrong, "takes_code": takes_code and not wanted, "wanted": wanted}
        return self._html("login", "Log in", None, values, request)

    def _file(self, request: Request, name: str) -> Answer:
        file = self._renderer.static.get(name)
        if file is None:
            return self._failure(request, 404, "not_found", "There is no such file.")
        return Answer(200, file.body, file.media, _FOREVER)

    def _ask_for_key(self, request: Request, error: Unauthenticated, values: Mapping[str, Any] = {}) -> Answer:
        if request.method == "GET" and request.path == f"{_PREFIX}/{consent.NAME}" and self._site.sign_in:
            if request.headers.get(b"sec-fetch-site") == b"cross-site":  # a step of our own brings the cookie
                again = f"{request.path}?{urlencode(request.query)}"
                return Answer(200, b"", headers={"refresh": f"0; url={again}"})
            return self._login_page(request)
        if request.method == "GET" and not request.path.endswith(".json"):
            return Answer(303, b"", headers={"location": f"{_PREFIX}/login"})
        refusal = self._access.refusal(error, request.path, request.headers)
        challenge = {"www-authenticate": dict(refusal.headers)[b"www-authenticate"].decode("latin-1")}
        is_session = b"authorization" not in request.headers and not request.path.endswith(".json")
        message = _LOGGED_OUT if is_session else f"{error}."
        return self._failure(request, refusal.status, "forbidden", message, challenge, values)

    def _failure(
        self,
        request: Request,
        status: int,
        code: "Code | str",
        message: str,
        headers: Mapping[str, str] = {},
        values: Mapping[str, Any] = {},
    ) -> Answer:
        """Return an error, as JSON if JSON was asked for; a text that was typed is shown again."""
        if request.path.endswith(".json"):
            body = msgspec.json.encode({"error": {"code": code, "message": message}})
            return Answer(status, body, _JSON, headers)
        missing = {"typed": None, "id": "", "back": _page_before(request)}
        values = {"status": status, "message": message, **missing, **values}
        try:
            visit = self._visitors.visit(request)[0]
        except (Unauthenticated, Forbidden, Fault):
            visit = None
        return self._html("failure", "Error", visit, values, request)._replace(status=status, headers=headers)

    def _html(self, name: str, title: str, visit: Visit | None, values: Mapping[str, Any], request: Request) -> Answer:
        return Answer(200, self._renderer.page(f"{name}.html", self._values(name, title, visit, values, request)))

    def _values(
        self, name: str, title: str, visit: Visit | None, values: Mapping[str, Any], request: Request
    ) -> dict[str, Any]:
        grant = None if visit is None else visit.caller.grant
        menu = tuple(
            (page_name, page.title)
            for page_name, page in PAGES.items()
            if page.in_menu and grant is not None and (page_name not in _ADMIN or grant.permission.name in _MANAGING)
        )
        return {
            "name": name,
            "title": title,
            "menu": menu,
            "visit": visit,
            "query": request.query,
            "permission": grant.permission.name if grant else "",
            "notice": _NOTICES.get(request.query.get("done", ""), ""),
            "needs_key": self._site.needs_key(),
            "now": utc_now(),
            "zone": zone_of(request.headers),
            "wrong": "",
            **values,
        }


def _page_before(request: Request) -> tuple[str, str]:
    """Return the address and the title of our page whose form or link was followed; the overview by default."""
    before = request.headers.get(b"referer", b"").decode("latin-1").partition("://")[2]
    page, mark, query = before.partition("/")[2].partition("?")
    name = page.removeprefix(f"{_PREFIX[1:]}/")
    if request.method != "POST" or name not in PAGES:
        return _PREFIX, PAGES["overview"].title
    return f"{_PREFIX}/{name}{mark}{query}", PAGES[name].title


def _source(target: str) -> str:
    scheme, _, _ = target.partition("://")
    return target if scheme in {"http", "https"} else f"{scheme}:"


async def _send(send: Send, answer: Answer) -> None:
    fields = {**SECURITY, **answer.headers}
    head = tuple((name.encode("latin-1"), value.encode("latin-1")) for name, value in fields.items())
    await send_response(send, HttpResponse(answer.status, answer.body, head, answer.media.encode()))


def console_of(
    parts: Seen,
    guide_of: GuideOf | None,
    counters: Callable[[], Awaitable[Snapshot | Fault]] | None,
    limits: Limits,
    access: AccessControl,
    worker: "Worker | None",
) -> Console:
    secret, codes = (os.urandom(32), LoginCodes()) if worker is None else (worker.secret, worker.codes)
    guide = guide_of(parts[0]) if guide_of else NO_GUIDE
    site = Site(*parts, guide, Checks(guide), counters, transfers.Uploads(), access.sign_in)
    return Console(site, limits, access, Visitors(access.auth, secret, codes))
