"""The console refuses requests of foreign pages and those beyond a key, and shows text as text."""

import html.parser
import json
import re
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode

import apsw
import pytest

from handlers.console import sessions
from handlers.console.console import ACTIONS, PAGES
from handlers.console.requests import SECURITY
from kernel.core import exposure
from kernel.core.config import Config
from kernel.core.exposure import Exposure
from kernel.core.ids import utc_now
from kernel.security import api_keys
from tests.catalogue import Catalogue
from tests.reliability.workers import serving_by
from tests.security.authenticated_server import EXPIRED, Answer, House, house
from tests.security.hostile_texts import GRAPH, HOSTILE, store_everywhere
from tests.support.http_console import INSTALLING
from tests.support.security_console import memories_of
from tests.unit.sql.code import ROOT

TYPED = "application/x-www-form-urlencoded"
CONSOLE = ROOT / "handlers" / "console"
# A page of a memory and that of a client's request for access exist for an address of their own.
ADDRESSES = ["/ui", *(f"/ui/{name}" for name in PAGES if name not in {"overview", "memory", "authorize"})]
ADMIN_PAGES = {"/ui/health", "/ui/keys"}


class Keys(NamedTuple):
    read: str
    write: str
    admin: str
    paths: str


@pytest.fixture(scope="module")
def open_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with house(Config(data=tmp_path_factory.mktemp("open") / "data")) as running:
        yield running


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with house(Config(data=tmp_path_factory.mktemp("keyed") / "data")) as running:
        yield running


@pytest.fixture(scope="module")
def keys(server: House) -> Keys:
    limited = server.key("write", dialects=("paths",))
    made = Keys(server.key("read"), server.key("write"), server.key("admin"), limited)
    server.told()
    return made


def ours(server: House, **more: str) -> dict[str, str]:
    """The headers of a form that a page of the console sends."""
    return {
        "origin": f"http://127.0.0.1:{server.port}",
        "sec-fetch-site": "same-origin",
        "content-type": TYPED,
        **more,
    }


def post(server: House, action: str, fields: Mapping[str, object], headers: Mapping[str, str]) -> Answer:
    return server.ask("POST", f"/ui/do/{action}", body=urlencode(fields).encode(), headers=headers)


def logged_in(server: House, key: str) -> str:
    answer = post(server, "login", {"key": key}, ours(server))
    assert answer.status == 303
    return answer.headers["set-cookie"].partition(";")[0]


def stored(server: House, path: str, content: str, key: str = "") -> dict[str, str]:
    """A memory, as the fields of a form that changes it."""
    assert server.tool("add_memory", {"path": path, "content": content}, key).status == 200
    found = server.ask("GET", f"/ui/memory.json?{urlencode({'id': f'paths/{path}'})}", key)
    return {"id": f"paths/{path}", "version": json.loads(found.body)["version"]}


@pytest.mark.parametrize("path", [*ADDRESSES, "/ui.json", "/ui/nosuch", "/ui/login", "/ui/do/edit"])
def test_every_answer_has_the_headers_of_a_locked_page(open_server: House, path: str) -> None:
    answer = open_server.ask("GET", path)
    assert {name: answer.headers.get(name) for name in SECURITY} == SECURITY
    assert "unsafe" not in answer.headers["content-security-policy"]


FOREIGN: Mapping[str, Mapping[str, str | None]] = {
    "another site": {"origin": "https://evil.example", "sec-fetch-site": "cross-site"},
    "another site that hides it": {"origin": "null", "sec-fetch-site": "cross-site"},
    "a null origin": {"origin": "null"},
    "a sandboxed frame": {"origin": "null", "sec-fetch-site": "same-origin"},
    "another port of this machine": {"origin": "http://127.0.0.1:1", "sec-fetch-site": "same-site"},
    "another name of this machine": {"origin": "http://localhost", "sec-fetch-site": "cross-site"},
    "another port by an old browser": {"origin": "http://127.0.0.1:1", "sec-fetch-site": None},
    "no origin": {"origin": None},
    "neither header": {"origin": None, "sec-fetch-site": None},
    "a typed address": {"sec-fetch-site": "none"},
    "a rebound name": {"host": "evil.example", "origin": "http://evil.example"},
}


@pytest.mark.parametrize("sender", FOREIGN)
def test_forms_of_others_are_refused_and_change_nothing(open_server: House, sender: str, catalogue: Catalogue) -> None:
    fields = stored(open_server, f"foreign/{sender}", "as it was")
    headers = {**ours(open_server), **FOREIGN[sender]}
    sent = {name: value for name, value in headers.items() if value is not None}
    for action in ACTIONS:
        answer = post(open_server, action, {**fields, "text": "changed", "number": 1, "scope": "admin"}, sent)
        assert answer.status in {403, 421}
    kept = open_server.tool("read_memory", {"path": f"foreign/{sender}"})
    assert json.loads(kept.body)["content"] == "as it was"
    assert api_keys.read(open_server.data) == []
    catalogue("S31", injected=f"forms of {sender}", times=len(ACTIONS), outcome="refused")


@pytest.mark.parametrize("name", ["evil.example", "evil.example:80", "127.0.0.1.evil.example"])
def test_pages_are_not_shown_under_a_rebound_name(open_server: House, name: str) -> None:
    assert open_server.ask("GET", "/ui", headers={"host": name}).status == 421
    assert open_server.ask("GET", "/ui.json", headers={"host": name}).status == 421


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE"])
def test_actions_take_nothing_but_post(open_server: House, action: str, method: str) -> None:
    assert open_server.ask(method, f"/ui/do/{action}?id=paths/x", headers=ours(open_server)).status == 405


def test_forms_are_forms_of_a_bounded_size(open_server: House) -> None:
    fields = stored(open_server, "bounded", "as it was")
    as_json = ours(open_server, **{"content-type": "application/json"})
    assert post(open_server, "forget", fields, as_json).status == 415
    as_text = ours(open_server, **{"content-type": "text/plain"})
    assert post(open_server, "forget", fields, as_text).status == 415
    assert post(open_server, "edit", {**fields, "text": "x" * 300_000}, ours(open_server)).status == 413
    latin = open_server.ask("POST", "/ui/do/edit", body=b"id=%FF%FE", headers=ours(open_server))
    assert latin.status == 400
    assert open_server.tool("add_memory", {"path": "bounded", "content": "x"}).status == 409


def test_other_endpoints_go_on_to_refuse_forms(open_server: House) -> None:
    answer = open_server.ask("POST", "/tools/clear_memory", body=b"a=1", headers=ours(open_server))
    assert answer.status == 415


@pytest.mark.parametrize("path", ["/ui/live", "/ui/audit.csv", "/ui/memory?id=paths/x", "/ui/calls?number=1"])
def test_what_is_no_page_of_the_menu_needs_a_key_too(server: House, keys: Keys, path: str) -> None:
    answer = server.ask("GET", path)
    assert (answer.status, answer.headers["location"]) == (303, "/ui/login")


@pytest.mark.parametrize("path", ADDRESSES)
def test_pages_need_a_key_where_the_server_does(server: House, keys: Keys, path: str) -> None:
    answer = server.ask("GET", path)
    assert (answer.status, answer.headers["location"]) == (303, "/ui/login")
    assert server.ask("GET", f"{path}.json").status == 401
    assert server.ask("GET", f"{path}.json", keys.admin).status == 200


def test_login_gives_a_cookie_that_scripts_and_other_sites_do_not_get(server: House, keys: Keys) -> None:
    answer = post(server, "login", {"key": keys.write}, ours(server))
    value, *flags = answer.headers["set-cookie"].split("; ")
    assert (answer.status, answer.headers["location"]) == (303, "/ui")
    assert flags == ["Path=/ui", "Max-Age=43200", "HttpOnly", "SameSite=Strict"]
    assert keys.write not in answer.headers["set-cookie"]
    shown = server.ask("GET", "/ui", headers={"cookie": value})
    assert shown.status == 200
    assert keys.write not in shown.body.decode()


def test_cookie_is_secure_where_the_page_came_over_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = exposure.applied(Config(data=tmp_path / "data"), Exposure("memory.example", ()))
    with house(config) as behind_proxy:
        key = behind_proxy.key("read")
        behind_proxy.told()
        headers = {**ours(behind_proxy), "host": "memory.example", "origin": "https://memory.example"}
        answer = post(behind_proxy, "login", {"key": key}, headers)
        assert answer.headers["set-cookie"].endswith("; Secure")
        for other in ("https://memory.example.evil.example", "http://memory.example", "https://memory.example:8443"):
            assert post(behind_proxy, "login", {"key": key}, {**headers, "origin": other}).status == 403
        monkeypatch.setattr(sessions, "_RENEWED_AFTER", -1)
        cookie = answer.headers["set-cookie"].partition(";")[0]
        renewed = behind_proxy.ask("GET", "/ui", headers={"host": "memory.example", "cookie": cookie})
        assert renewed.headers["set-cookie"].endswith("; Secure")


@pytest.mark.parametrize("given", ["", "x", "quipu_00000000_" + "A" * 43, "\u2028", "Bearer", "a b"])
def test_login_with_anything_else_is_refused(server: House, keys: Keys, given: str) -> None:
    answer = post(server, "login", {"key": given}, ours(server))
    assert answer.status == 401
    assert "set-cookie" not in answer.headers


def test_cookie_opens_nothing_but_the_console(server: House, keys: Keys) -> None:
    cookie = {"cookie": logged_in(server, keys.admin)}
    for path in ("/mcp", "/tools/list_memories"):
        headers = {**cookie, "content-type": "application/json"}
        assert server.ask("POST", path, body=b"{}", headers=headers).status == 401
    for path in ("/tools", "/openapi.json"):
        assert server.ask("GET", path, headers=cookie).status == 401


@pytest.mark.parametrize("change", ["key", "random", "begin", "time", "flag", "signature", "short"])
def test_forged_cookies_are_refused(server: House, keys: Keys, change: str) -> None:
    name, _, value = logged_in(server, keys.read).partition("=")
    key, drawn, begun, at, secure, signature = value.split(".")
    other = {
        "key": (api_keys.parse(keys.admin), drawn, begun, at, secure, signature),
        "random": (key, "A" * 43, begun, at, secure, signature),
        "begin": (key, drawn, str(int(begun) + 1), at, secure, signature),
        "time": (key, drawn, begun, str(int(at) + 9999), secure, signature),
        "flag": (key, drawn, begun, at, "s", signature),
        "signature": (key, drawn, begun, at, secure, "0" * 64),
        "short": (key, drawn, begun, at, secure),
    }[change]
    answer = server.ask("GET", "/ui", headers={"cookie": f"{name}={'.'.join(other)}"})
    assert answer.status == 303


def test_logout_ends_the_session_for_everybody_who_has_the_cookie(server: House, keys: Keys) -> None:
    cookie = {"cookie": logged_in(server, keys.write)}
    answer = post(server, "logout", {}, {**ours(server), **cookie})
    assert (answer.status, answer.headers["location"]) == (303, "/ui/login?done=left")
    assert "Max-Age=0" in answer.headers["set-cookie"]
    assert server.ask("GET", "/ui", headers=cookie).status == 303


def test_logout_ends_the_cookies_from_before_and_after_each_renewal(
    server: House, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "_RENEWED_AFTER", -1)
    cookies = [logged_in(server, keys.write)]
    for _ in range(2):
        answer = server.ask("GET", "/ui", headers={"cookie": cookies[-1]})
        cookies.append(answer.headers["set-cookie"].partition(";")[0])
    other = logged_in(server, keys.write)
    post(server, "logout", {}, {**ours(server), "cookie": cookies[1]})
    assert [server.ask("GET", "/ui", headers={"cookie": cookie}).status for cookie in cookies] == [303] * 3
    assert server.ask("GET", "/ui", headers={"cookie": other}).status == 200


def test_sessions_of_a_key_are_bounded_and_those_of_others_stay(server: House, keys: Keys) -> None:
    kept, first = logged_in(server, keys.admin), logged_in(server, keys.read)
    newer = [logged_in(server, keys.read) for _ in range(sessions.MOST_OF_KEY)]
    statuses = [server.ask("GET", "/ui", headers={"cookie": cookie}).status for cookie in (kept, first, newer[-1])]
    assert statuses == [200, 303, 200]


def test_sessions_end_within_a_second_of_the_revocation_of_their_key(server: House, catalogue: Catalogue) -> None:
    key = server.key("admin")
    server.told()
    cookie = {"cookie": logged_in(server, key)}
    assert server.ask("GET", "/ui", headers=cookie).status == 200
    api_keys.revoke(server.data, api_keys.parse(key), utc_now())
    ended = time.monotonic() + 1
    while server.ask("GET", "/ui", headers=cookie).status != 303:
        assert time.monotonic() < ended
        time.sleep(0.02)
    fields = {"scope": "read"}
    assert post(server, "create-key", fields, {**ours(server), **cookie}).status == 401
    late = post(server, "edit", {"id": "paths/x", "text": "typed for long"}, {**ours(server), **cookie})
    assert late.status == 401
    for shown in ("You are no longer logged in. Nothing was written", "typed for long", 'href="/ui/login"'):
        assert shown in late.body.decode()
    assert post(server, "login", {"key": key}, ours(server)).status == 401
    catalogue("S31", injected="sessions of a revoked key", times=1, outcome="ended within a second")


def test_read_key_sees_no_action_and_is_refused_every_one(server: House, keys: Keys, catalogue: Catalogue) -> None:
    fields = stored(server, "of-a-writer", "as it was", keys.write)
    cookie = {"cookie": logged_in(server, keys.read)}
    shown = server.ask("GET", "/ui/memory?id=paths/of-a-writer", headers=cookie).body.decode()
    assert re.findall(r'action="/ui/do/([a-z-]+)"', shown) == ["logout"]
    asked = {**fields, "text": "changed", "number": 1, "scope": "read"}
    for action in ACTIONS.keys() - {"export-selected", "authorize"}:  # which only reads, and which no client asked for
        answer = post(server, action, asked, {**ours(server), **cookie})
        assert (action, answer.status) == (action, 403)
    for path in ADMIN_PAGES:
        assert server.ask("GET", path, headers=cookie).status == 403
    catalogue("S31", injected="actions with a key that reads", times=len(ACTIONS), outcome="refused")


def test_write_key_manages_neither_keys_nor_the_quarantine(server: House, keys: Keys) -> None:
    cookie = {"cookie": logged_in(server, keys.write)}
    for action in ("create-key", "revoke-key", "release", "check"):
        answer = post(server, action, {"id": "paths/x", "scope": "read"}, {**ours(server), **cookie})
        assert (action, answer.status) == (action, 403)


def test_admin_makes_no_key_that_may_more_than_its_own(server: House, keys: Keys) -> None:
    cookie = {"cookie": logged_in(server, keys.admin)}
    before = len(api_keys.read(server.data))
    assert post(server, "create-key", {"scope": "operator"}, {**ours(server), **cookie}).status == 400
    assert len(api_keys.read(server.data)) == before


def test_admin_of_one_dialect_manages_only_the_keys_of_that_dialect(server: House, keys: Keys) -> None:
    admin = server.key("admin", dialects=("paths",))
    both = server.key("write", dialects=("paths", "brain"))
    own = server.key("write", dialects=("paths",))
    server.told()
    headers = {**ours(server), "cookie": logged_in(server, admin)}
    for chosen in ("", "brain"):
        assert post(server, "create-key", {"scope": "write", "dialect": chosen}, headers).status == 403
    for key in (keys.read, keys.admin, both):
        assert post(server, "revoke-key", {"id": api_keys.parse(key)}, headers).status == 404
        assert server.ask("GET", "/ui.json", key).status == 200
    shown = json.loads(server.ask("GET", "/ui/keys.json", headers=headers).body)
    assert {tuple(key["dialects"]) for key in shown["keys"]} == {("paths",)}
    assert (shown["dialects"], shown["all_dialects"]) == (["paths"], False)
    made = post(server, "create-key", {"scope": "write", "dialect": "paths"}, headers)
    assert (made.status, b"quipu_" in made.body) == (200, True)
    assert post(server, "revoke-key", {"id": api_keys.parse(own)}, headers).status == 303


def test_key_of_one_dialect_sees_and_changes_nothing_of_others(server: House, keys: Keys) -> None:
    assert server.tool("remember", {"content": "not for paths", "session_id": "s"}, keys.admin).status == 200
    assert server.tool("add_memory", {"path": "seen", "content": "for paths"}, keys.admin).status == 200
    cookie = {"cookie": logged_in(server, keys.paths)}
    for path in ("/ui", "/ui/timeline", "/ui/audit", "/ui/review", "/ui/calls"):
        shown = server.ask("GET", f"{path}.json", headers=cookie)
        assert shown.status == 200
        known = re.sub(rb'"sessions"(?=[],])|"sessions":\[\]', b"", shown.body)  # the names of dialects, a list of none
        assert b"sessions" not in known
        assert b"not for paths" not in shown.body
    for path in (
        "/ui/memory?id=sessions/1",
        "/ui/timeline?dialect=sessions",
        "/ui/timeline?by=session",
        "/ui/timeline?session=s",
        "/ui/search?q=paths",
    ):
        assert server.ask("GET", path, headers=cookie).status == 403
    calls = json.loads(server.ask("GET", "/ui/audit.json", keys.admin).body)["calls"]
    number = next(call["number"] for call in calls if call["dialect"] == "sessions")
    assert post(server, "undo", {"number": number}, {**ours(server), **cookie}).status in {403, 404}


def test_tenants_do_not_see_each_other(server: House, keys: Keys) -> None:
    other = server.key("admin", tenant="other")
    server.told()
    cookie = {"cookie": logged_in(server, other)}
    assert json.loads(server.ask("GET", "/ui.json", headers=cookie).body)["memories"] == 0
    listed = json.loads(server.ask("GET", "/ui/keys.json", headers=cookie).body)["keys"]
    assert {key["tenant"] for key in listed} == {"other"}
    theirs = {"id": api_keys.parse(keys.read)}
    assert post(server, "revoke-key", theirs, {**ours(server), **cookie}).status == 404


def test_checks_of_the_installation_are_for_operators(server: House, keys: Keys) -> None:
    other, operator = server.key("admin", tenant="third"), server.key("operator")
    server.told()
    assert server.tool("add_memory", {"path": "p", "content": "c"}, other).status == 200
    for key in (keys.admin, other):
        found = json.loads(server.ask("GET", "/ui/health.json?deep=1", key).body)
        assert (found["findings"], found["deep"]) == ([], False)
        cookie = {"cookie": logged_in(server, key)}
        assert b'class="findings"' not in server.ask("GET", "/ui/health", headers=cookie).body
        assert post(server, "check", {}, {**ours(server), **cookie}).status == 403
    cookie = {"cookie": logged_in(server, operator)}
    assert json.loads(server.ask("GET", "/ui/health.json", headers=cookie).body)["findings"]
    assert b"database of third" in post(server, "check", {}, {**ours(server), **cookie}).body


def code_for(server: House, key: str) -> str:
    answer = post(server, "code", {}, ours(server, authorization=f"Bearer {key}"))
    assert answer.status == 200
    made = json.loads(answer.body)
    assert made == {"code": made["code"], "seconds": 60}
    return made["code"]


def test_code_logs_in_once_with_the_rights_of_its_key(server: House, keys: Keys) -> None:
    code = code_for(server, keys.read)
    assert code not in keys.read
    entered = post(server, "login", {"code": code}, ours(server))
    assert (entered.status, entered.headers["location"]) == (303, "/ui")
    cookie = {"cookie": entered.headers["set-cookie"].partition(";")[0]}
    assert api_keys.parse(keys.read).encode() in server.ask("GET", "/ui", headers=cookie).body
    assert server.ask("GET", "/ui/health", headers=cookie).status == 403
    again = post(server, "login", {"code": code}, ours(server))
    assert (again.status, "set-cookie" in again.headers) == (401, False)
    assert b"was used" in again.body


def test_code_is_made_for_an_active_key_alone(server: House, keys: Keys) -> None:
    cookie = {"cookie": logged_in(server, keys.admin)}
    assert post(server, "code", {}, ours(server, **cookie)).status == 400
    assert post(server, "code", {}, ours(server)).status == 401
    unknown = ours(server, authorization="Bearer quipu_00000000_" + "A" * 43)
    assert post(server, "code", {}, unknown).status == 401
    spent = server.key("read")
    server.told()
    code = code_for(server, spent)
    api_keys.revoke(server.data, api_keys.parse(spent), utc_now())
    server.told()
    assert post(server, "login", {"code": code}, ours(server)).status == 401
    assert post(server, "code", {}, ours(server, authorization=f"Bearer {spent}")).status == 401


def test_code_is_of_no_use_without_keys(open_server: House) -> None:
    assert post(open_server, "code", {}, ours(open_server)).status == 400


@pytest.mark.parametrize(
    ("sent_by", "taken"), [("none", True), (None, True), ("cross-site", False), ("same-site", False)]
)
def test_link_of_another_site_logs_nobody_in(server: House, keys: Keys, sent_by: str | None, taken: bool) -> None:
    headers = {} if sent_by is None else {"sec-fetch-site": sent_by}
    shown = server.ask("GET", "/ui/login", headers=headers)
    assert (shown.status, b'id="by-code"' in shown.body) == (200, taken)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows serves with one worker")
def test_code_of_one_worker_is_taken_once_by_all(tmp_path: Path) -> None:
    key = api_keys.create(tmp_path / "data", api_keys.Key("", "admin", EXPIRED))[1]
    with serving_by(2, tmp_path / "data", QUIPU_MODEL="none") as several:
        houses = [House(several.port, None, several.data) for _ in range(4)]  # connections are spread over the workers
        for one in houses:
            one.ask("GET", "/ui/login")
        code = code_for(houses[0], key)
        statuses = [post(one, "login", {"code": code}, ours(one)).status for one in reversed(houses)]
        for one in houses:
            one.close()
    assert statuses == [303, 401, 401, 401]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows serves with one worker")
def test_session_of_one_worker_is_known_to_the_others(tmp_path: Path) -> None:
    key = api_keys.create(tmp_path / "data", api_keys.Key("", "admin", EXPIRED))[1]
    with serving_by(2, tmp_path / "data", QUIPU_MODEL="none") as several:
        first = House(several.port, None, several.data)
        cookie = {"cookie": logged_in(first, key)}
        first.close()
        statuses: list[int] = []
        for _ in range(8):  # each on a connection of its own, which either worker accepts
            one = House(several.port, None, several.data)
            statuses.append(one.ask("GET", "/ui.json", headers=cookie).status)
            one.close()
    assert statuses == [200] * 8


_MARKUP = {"script", "link", "meta", "form", "button", "input", "textarea", "select", "option", "a", "title"}
_INVISIBLE = re.compile("[\u200b-\u200f\u202a-\u202e\u2028\u2029\u2060-\u2069\ufeff\U000e0000-\U000e007f\x0b\x0c\x07]")


class Elements(html.parser.HTMLParser):
    """Hold the structure of a page: its elements with their attributes, and its title."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.title = ""
        self._in_title = False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        self._in_title = tag == "title" and not self.title  # a drawing has titles too

    def handle_data(self, data: str) -> None:
        self.title += data if self._in_title else ""

    def handle_endtag(self, tag: str) -> None:
        self._in_title = False


# Columns that no caller fills with a text of its own: ids, times, hashes, names of tools, and words of a list. A path
# is refused where it holds such signs, a mention is a match of a pattern, and queries are logged by another tool.
_IDS = {"id", "org_id", "project_id", "entry_id", "scope_id", "current_version_id", "version_a_id", "version_b_id"}
_IDS |= {"tag_id", "source_id", "target_id", "superseded_by", "parent_note_id", "previous_version_id", "entity_id"}
_IDS |= {"source_memory_id", "session_id", "call", "hash", "targets", "result_ids", "embedding_model"}
_LISTED = {"kind", "scope_type", "status", "entry_type", "source_type", "target_type", "operation", "db", "source"}
_LISTED |= {"memory_type", "type", "note_type", "resource_type", "dialect", "tool", "outcome", "query_source"}
_DERIVED = {"space", "key", "path", "domain", "project", "temporary", "context", "aliases"}
NOT_FILLED = {
    "scopes_conflict": {"resolution", "resolved_by"},  # made by writers at the same time
    "scopes_predefined_tag": {"name", "category", "description"},
    "scopes_relation": {"relation_type"},
    "scopes_lock": {"project_id", "session_id"},
    "scopes_entry_was": {"until"},
    "brain_memory": {"category"},
    "brain_query": {"query_text"},
    "sessions_mention": {"entity_type", "name"},
    "notes_change": {"before", "after"},
}


def test_hostile_text_reaches_every_column_that_takes_a_text(tmp_path: Path) -> None:
    mark = "<i>x</i>"
    with house(Config(data=tmp_path / "data", model=None, environment=GRAPH)) as attacked:
        assert store_everywhere(attacked, mark) > 30
    db = apsw.Connection(str(tmp_path / "data" / "quipu.db"), flags=apsw.SQLITE_OPEN_READONLY)
    columns = db.execute(
        "SELECT t.name, c.name FROM pragma_table_list AS t, pragma_table_info(t.name) AS c WHERE t.type = 'table' "
        "AND c.type = 'TEXT' AND (t.name IN ('history', 'audit') OR instr('paths scopes brain notes sessions', "
        "substr(t.name, 1, instr(t.name, '_') - 1)) AND instr(t.name, '_'))"
    ).fetchall()
    unreached: dict[str, set[str]] = {}
    for table, column in columns:
        ((found,),) = db.execute(f'SELECT count(*) FROM "{table}" WHERE instr("{column}", ?)', (mark,)).fetchall()
        given = column in _IDS | _LISTED | _DERIVED or str(column).endswith(("_at", "_mentioned", "_from", "_until"))
        if not found and not given and column != "at" and column not in NOT_FILLED.get(str(table), set()):
            unreached.setdefault(str(table), set()).add(str(column))
    db.close()
    assert len(columns) > 150
    assert unreached == {}


def pages_of(server: House) -> Iterator[str]:
    """The address of every page, of the following pages of lists, and of every memory."""
    yield from ADDRESSES
    yield "/ui/search?quarantined=1&q=alert"
    for path in ("/ui/timeline", "/ui/audit", "/ui/review"):
        below = json.loads(server.ask("GET", f"{path}.json").body)["next"]
        while below is not None:
            yield f"{path}?before={below}"
            below = json.loads(server.ask("GET", f"{path}.json?before={below}").body)["next"]
    for id_ in sorted(memories_of(server)):
        yield f"/ui/memory?{urlencode({'id': id_})}"


@pytest.mark.parametrize("number", range(0, len(HOSTILE), 10))
def test_hostile_text_is_shown_as_text(tmp_path: Path, number: int, catalogue: Catalogue) -> None:
    several = HOSTILE[number : number + 10]
    config = Config(data=tmp_path / "data", model=None, environment=GRAPH, ui_calls="texts")
    with house(config) as attacked:
        for text in several:
            assert store_everywhere(attacked, text) >= 20, text
        queries = [f"/ui/search?{urlencode({'q': text, 'actor': text})}" for text in several]
        kept = json.loads(attacked.ask("GET", "/ui/calls.json").body)["calls"]
        addresses = [*pages_of(attacked), *queries, *(f"/ui/calls?number={call['number']}" for call in kept)]
        for address in addresses:
            answer = attacked.ask("GET", address)
            assert answer.status in {200, 400}, (address, answer.body)
            check_page(answer.body.decode(), address)
        keys = [attacked.key("admin", name=text[:80]) for text in several]
        attacked.told()
        check_page(attacked.ask("GET", "/ui/keys", keys[0]).body.decode(), "/ui/keys")
    catalogue(
        "S31", injected="hostile texts in every field", times=len(addresses), outcome="0 elements, titles unchanged"
    )


def check_page(text: str, address: str) -> None:
    page = Elements(text)
    title, _, rest = page.title.rpartition(" · ")
    assert (rest, title in {*(one.title for one in PAGES.values()), "Error"}) == ("Quipu", True)
    known = {"html", "head", "body", "header", "main", "footer", "nav", "section", "div", "span", "p", "pre", "bdi"}
    known |= {
        "h1",
        "h2",
        "h3",
        "ul",
        "ol",
        "li",
        "dl",
        "dt",
        "dd",
        "table",
        "caption",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
    }
    known |= {"svg", "path", "circle", "rect", "time", "code", "strong", "mark", "br", "label", "details", "summary"}
    known |= {"em", "blockquote", "hr", "datalist", "text", "dialog", "small"}
    assert {tag for tag, _ in page.found} <= known | _MARKUP
    for tag, attributes in page.found:
        assert not [name for name in attributes if name.startswith("on") or name in {"style", "srcdoc", "hx-get"}]
        for name in ("href", "src", "action"):
            allowed = ("/ui", "#", *(INSTALLING if address == "/ui/connect" else ()))
            assert str(attributes.get(name, "/ui")).startswith(allowed), (address, tag, attributes)
    assert [attributes.get("src") for tag, attributes in page.found if tag == "script"][1:] == []
    outside = re.sub(r"<(?:textarea|input|button)[^>]*>[^<]*", "", text)
    assert _INVISIBLE.findall(outside) == [], address


def test_templates_switch_no_protection_off() -> None:
    for file in sorted((CONSOLE / "templates").iterdir()):
        text = file.read_text(encoding="utf-8")
        found = re.findall(r"\|\s*safe\b|autoescape|\son[a-z]+=|\sstyle=|<script(?![^>]*\ssrc=)|https?://", text)
        assert (file.name, found) == (file.name, [])
    script = (CONSOLE / "static" / "console.js").read_text(encoding="utf-8")
    assert re.findall(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|new Function|https?://", script) == []
