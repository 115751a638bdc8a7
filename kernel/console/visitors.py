"""Who visits: the caller by the cookie of a session or by a key, login and logout."""

from collections.abc import Mapping

from kernel.config import Config
from kernel.console.requests import CONSOLE, Answer, Request, Visit, is_secure
from kernel.console.sessions import Session, Sessions, given_cookie, set_cookie
from kernel.security.auth import Auth, Unauthenticated
from kernel.security.permissions import with_client_name


class Visitors:
    """The sessions of one server."""

    def __init__(self, config: Config, auth: Auth, secret: bytes) -> None:
        self._config = config
        self._auth = auth
        self._sessions = Sessions(secret)

    def visit(self, request: Request) -> tuple[Visit, Session | None]:
        """The caller by the cookie, or by the Authorization header; raises Unauthenticated."""
        headers, auth = request.headers, self._auth
        session = self._sessions.find(_cookie(request))
        if session is not None and b"authorization" not in headers and auth.needed():
            caller = auth.caller_of_key(session.key)
            if caller is not None:
                return Visit(with_client_name(caller, CONSOLE), request.query, by_cookie=True), session
        return Visit(with_client_name(auth.caller(headers), CONSOLE), request.query), None

    def renewed(self, answer: Answer, session: Session | None) -> Answer:
        """The answer, with a new cookie where that of the session grows old."""
        if session is None or not session.stale:
            return answer
        cookie = set_cookie(self._sessions.begin(session.key), secure=self._config.public.startswith("https:"))
        return answer._replace(headers={**answer.headers, "set-cookie": cookie})

    def log_in(self, request: Request, fields: Mapping[str, str]) -> str | None:
        """The cookie of a new session for the key of a form; None where it is none of this server's."""
        bearer = f"Bearer {fields.get('key', '').strip()}".encode("latin-1", "replace")
        try:
            caller = self._auth.caller({b"authorization": bearer})
        except Unauthenticated:
            return None
        if self._auth.caller_of_key(caller.key) is None:
            return None
        return set_cookie(self._sessions.begin(caller.key), secure=is_secure(request.headers))

    def log_out(self, request: Request) -> str:
        """Ends the session; the cookie that deletes its own."""
        self._sessions.end(_cookie(request))
        return set_cookie("", secure=is_secure(request.headers))


def _cookie(request: Request) -> str:
    return given_cookie(request.headers.get(b"cookie", b"").decode("latin-1"))
