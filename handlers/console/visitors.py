"""Who visits: the caller by the cookie of a session or by a key, login and logout."""

from collections.abc import Mapping

from handlers.console.requests import CONSOLE, Answer, Request, Visit, is_secure
from handlers.console.sessions import Session, Sessions, given_cookie, set_cookie
from kernel.core.errors import Fault
from kernel.security.auth import Auth, Headers, Unauthenticated
from kernel.security.login_codes import LoginCodes
from kernel.security.permissions import with_client_name


class Visitors:
    """The sessions of one server."""

    def __init__(self, auth: Auth, secret: bytes, codes: LoginCodes) -> None:
        self._auth = auth
        self._sessions = Sessions(secret)
        self._codes = codes
        auth.session_key = self.session_key

    def visit(self, request: Request) -> tuple[Visit, Session | None]:
        """Return the caller by the cookie, or by the Authorization header; raises Unauthenticated."""
        headers, auth = request.headers, self._auth
        session = self._session(headers)
        if session is not None and b"authorization" not in headers and auth.needed():
            caller = auth.caller_of_key(session.key)
            if caller is not None:
                return Visit(with_client_name(caller, CONSOLE), request.query, by_cookie=True), session
        return Visit(with_client_name(auth.caller(headers), CONSOLE), request.query), None

    def renewed(self, answer: Answer, session: Session | None) -> Answer:
        """Return the answer, with a new cookie if that of the session grows old."""
        if session is None or not session.stale:
            return answer
        cookie = set_cookie(self._sessions.cookie(session), secure=session.secure)
        return answer._replace(headers={**answer.headers, "set-cookie": cookie})

    def log_in(self, request: Request, fields: Mapping[str, str]) -> str | None:
        """Return the cookie of a new session for the key or the code of a form; None if it is none of this server's."""
        key = self._codes.take(fields["code"]) if "code" in fields else self._key_of(fields.get("key", ""))
        if key is None or self._auth.caller_of_key(key) is None:
            return None
        return self.begin(request, key)

    def begin(self, request: Request, key: str) -> str:
        """Return the cookie of a new session of a key that was just made."""
        self._auth.checked_until = 0.0  # so that the key counts from this answer on
        secure = is_secure(request.headers)
        return set_cookie(self._sessions.begin(key, secure=secure), secure=secure)

    def code(self, request: Request) -> str:
        """Return a code with which a browser logs in once, for a caller that has sent its key; raises Fault."""
        visit, _ = self.visit(request)
        if visit.by_cookie or self._auth.caller_of_key(visit.caller.key) is None:
            raise Fault("invalid", "A code is made for a key: Authorization: Bearer KEY.")
        return self._codes.make(visit.caller.key)

    def log_out(self, request: Request) -> str:
        """Ends the session; the cookie that deletes its own."""
        session = self._session(request.headers)
        if session is not None:
            self._sessions.end(session)
        return set_cookie("", secure=is_secure(request.headers))

    def session_key(self, headers: Headers) -> str:
        """Return the id of the key whose session a request has the cookie of; empty without one."""
        session = self._session(headers)
        return "" if session is None else session.key

    def _session(self, headers: Headers) -> Session | None:
        return self._sessions.find(given_cookie(headers.get(b"cookie", b"").decode("latin-1")))

    def _key_of(self, given: str) -> str | None:
        bearer = f"Bearer {given.strip()}".encode("latin-1", "replace")
        try:
            return self._auth.caller({b"authorization": bearer}).key
        except Unauthenticated:
            return None
