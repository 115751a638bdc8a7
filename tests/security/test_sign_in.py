"""The server's own authorization server: a client that knows the address alone is let in, and nobody else."""

import asyncio
import hashlib
import json
import re
import socket
import threading
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

import pytest

from kernel.cli.main import main
from kernel.core.config import Config
from kernel.security import api_keys
from tests.security.authenticated_server import JSON, Answer, House, house

FORM = "application/x-www-form-urlencoded"
REDIRECT = "http://127.0.0.1:7777/callback"
VERIFIER = "v" * 43
CHALLENGE = urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).decode().rstrip("=")
Fields = Mapping[str, str]


class Site(NamedTuple):
    """A server with an address, the key of a person, and the session of a browser."""

    house: House
    address: str
    key: str

    def form(self, path: str, fields: Fields, **headers: str) -> Answer:
        given = {"content-type": FORM, **{name.replace("_", "-"): value for name, value in headers.items()}}
        return self.house.ask("POST", path, "", urlencode(fields).encode(), given)

    def register(self, *redirects: str, **more: Any) -> Answer:
        body = json.dumps({"redirect_uris": redirects or [REDIRECT], "client_name": "Test", **more}).encode()
        return self.house.ask("POST", "/oauth/register", "", body, {"content-type": JSON})

    def client(self) -> str:
        return json.loads(self.register().body)["client_id"]

    def cookie(self, key: str = "") -> str:
        answer = self.form("/ui/do/login", {"key": key or self.key}, origin=self.address)
        return answer.headers["set-cookie"].partition(";")[0]

    def wish(self, **more: str) -> dict[str, str]:
        """The parameters of a request for consent."""
        return {
            "client_id": self.client(),
            "redirect_uri": REDIRECT,
            "response_type": "code",
            "code_challenge": CHALLENGE,
            "code_challenge_method": "S256",
            "state": "st",
            "resource": f"{self.address}/mcp",
            **more,
        }

    def decide(self, wish: Fields, cookie: str = "", **more: str) -> Answer:
        fields = {**wish, "decision": "allow", "period": "30d", **more}
        return self.form("/ui/do/authorize", fields, origin=self.address, cookie=cookie or self.cookie())

    def granted(self, **more: str) -> tuple[dict[str, str], str]:
        """A request, and the code that it was granted."""
        wish = self.wish()
        answer = self.decide(wish, **more)
        assert answer.status == 303, answer.body
        return wish, dict(parse_qsl(urlsplit(answer.headers["location"]).query))["code"]

    def redeem(self, wish: Fields, code: str, **more: str) -> Answer:
        fields = {
            "grant_type": "authorization_code",
            "code": code,
            "client_id": wish["client_id"],
            "redirect_uri": wish["redirect_uri"],
            "code_verifier": VERIFIER,
            **more,
        }
        return self.form("/oauth/token", fields)

    def refresh(self, wish: Fields, token: str, **more: str) -> Answer:
        fields = {"grant_type": "refresh_token", "refresh_token": token, "client_id": wish["client_id"], **more}
        return self.form("/oauth/token", fields)

    def tokens(self, **more: str) -> tuple[dict[str, str], dict[str, Any]]:
        wish, code = self.granted(**more)
        answer = self.redeem(wish, code)
        assert answer.status == 200, answer.body
        return wish, json.loads(answer.body)

    def status(self, token: str, tool: str = "recall", **arguments: Any) -> int:
        return self.house.tool(tool, arguments or {"query": "plan"}, token).status


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    data: Path = tmp_path_factory.mktemp("sign-in") / "data"
    with house(Config(data=data, model=None, public=address), port) as running:
        key = running.key()
        running.told()
        yield Site(running, address, key)


def code_of(answer: Answer) -> str:
    return json.loads(answer.body)["error"]


def test_official_client_logs_in_from_the_address_alone(site: Site) -> None:
    import httpx2
    from mcp import ClientSession
    from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
    from mcp.client.streamable_http import streamable_http_client
    from mcp.shared.auth import OAuthClientMetadata
    from pydantic import AnyUrl

    kept: dict[str, Any] = {}
    answers: list[str] = []

    class Storage:
        async def get_tokens(self) -> Any:
            return kept.get("tokens")

        async def set_tokens(self, tokens: Any) -> None:
            kept["tokens"] = tokens

        async def get_client_info(self) -> Any:
            return kept.get("client")

        async def set_client_info(self, client_info: Any) -> None:
            kept["client"] = client_info

    async def visit(url: str) -> None:
        """Act as a person in a browser: logs in, reads who asks, and allows it."""
        page = await asyncio.to_thread(site.house.ask, "GET", url.removeprefix(site.address))
        assert b"A program asks to be let in" in page.body
        wish = dict(parse_qsl(urlsplit(url).query))
        answer = await asyncio.to_thread(site.decide, wish, write="yes")
        answers.append(answer.headers["location"])

    async def back() -> Any:
        given = dict(parse_qsl(urlsplit(answers[-1]).query))
        return AuthorizationCodeResult(code=given["code"], state=given["state"], iss=given["iss"])

    async def session() -> list[str]:
        metadata = OAuthClientMetadata(client_name="Official", redirect_uris=[AnyUrl(REDIRECT)])
        provider = OAuthClientProvider(f"{site.address}/mcp", metadata, Storage(), visit, back)
        async with (
            httpx2.AsyncClient(auth=provider) as http,
            streamable_http_client(f"{site.address}/mcp", http_client=http) as streams,
            ClientSession(streams[0], streams[1]) as client,
        ):
            await client.initialize()
            return [tool.name for tool in (await client.list_tools()).tools]

    assert "add_memory" in asyncio.run(session())
    named = [key for key in api_keys.read(site.house.data) if key.login and key.login.client == "Official"]
    assert [(key.name, key.scope, key.state("2026-01-01")) for key in named] == [("Official", "write", "active")]


def test_metadata_is_named_by_the_refusal(site: Site) -> None:
    refused = site.house.mcp("tools/list", {})
    assert f'resource_metadata="{site.address}/.well-known/oauth-protected-resource/mcp"' in refused.challenge
    resource = json.loads(site.house.ask("GET", "/.well-known/oauth-protected-resource/mcp").body)
    assert resource["authorization_servers"] == [site.address]
    server = json.loads(site.house.ask("GET", "/.well-known/oauth-authorization-server").body)
    assert (server["issuer"], server["code_challenge_methods_supported"]) == (site.address, ["S256"])
    assert server["client_id_metadata_document_supported"] is False


def test_consent_page_says_who_asks_and_can_be_framed_by_nobody(site: Site) -> None:
    wish = site.wish()
    page = site.house.ask("GET", f"/ui/authorize?{urlencode(wish)}", headers={"cookie": site.cookie()})
    assert page.status == 200
    assert b"Let Test in?" in page.body
    assert b"127.0.0.1:7777" in page.body
    policy = page.headers["content-security-policy"]
    assert "frame-ancestors 'none'" in policy
    assert "form-action 'self' http://127.0.0.1:7777;" in policy


def test_answers_carry_state_and_issuer_also_of_a_refusal(site: Site) -> None:
    wish = site.wish()
    for decision, name in (("allow", "code"), ("refuse", "error")):
        location = site.decide(wish, decision=decision).headers["location"]
        assert location.startswith(f"{REDIRECT}?")
        given = parse_qs(urlsplit(location).query)
        assert (given["state"], given["iss"], name in given) == (["st"], [site.address], True)


def test_a_grant_reads_unless_writing_was_allowed(site: Site) -> None:
    write = {"path": "from/client", "content": "x"}
    assert site.status(site.tokens()[1]["access_token"], "add_memory", **write) == 403
    assert site.status(site.tokens(write="yes")[1]["access_token"], "add_memory", **write) == 200


def test_a_grant_is_held_to_the_places_of_the_consent(site: Site) -> None:
    token = site.tokens(write="yes", places="paths:shared")[1]["access_token"]
    assert site.status(token, "add_memory", path="shared/a", content="x") == 200
    assert site.status(token, "add_memory", path="diary/a", content="x") == 403
    assert site.status(token, "read_memory", path="diary/a") == 404


def test_a_key_grants_no_more_than_it_has(site: Site) -> None:
    held = site.house.key("read", read=("paths:shared",), dialects=("common", "paths"))
    site.house.told()
    cookie = site.cookie(held)
    assert site.decide(site.wish(), cookie, write="yes").status == 403
    assert site.decide(site.wish(), cookie, places="paths:diary").status == 400
    assert site.decide(site.wish(resource=f"{site.address}/mcp/brain"), cookie).status == 403
    wish = site.wish()
    location = site.decide(wish, cookie).headers["location"]
    token = json.loads(site.redeem(wish, parse_qs(urlsplit(location).query)["code"][0]).body)["access_token"]
    assert site.status(token, "read_memory", path="diary/a") == 404


def test_a_resource_of_one_dialect_opens_that_dialect(site: Site) -> None:
    wish = site.wish(resource=f"{site.address}/mcp/paths")
    code = parse_qs(urlsplit(site.decide(wish).headers["location"]).query)["code"][0]
    token = json.loads(site.redeem(wish, code).body)["access_token"]
    assert (site.status(token, "list_memories", prefix=""), site.status(token, "get_config")) == (200, 403)


def test_a_token_opens_no_session_and_grants_nothing_on(site: Site) -> None:
    token = site.tokens(write="yes")[1]["access_token"]
    assert site.form("/ui/do/login", {"key": token}, origin=site.address).status == 401
    fields = {**site.wish(), "decision": "allow", "period": "30d"}
    answer = site.form("/ui/do/authorize", fields, origin=site.address, authorization=f"Bearer {token}")
    assert answer.status == 403


@pytest.mark.parametrize(
    "change",
    [
        {"redirect_uri": "https://evil.example/"},
        {"redirect_uri": f"{REDIRECT}/../evil"},
        {"redirect_uri": f"{REDIRECT}?next=https://evil.example"},
        {"redirect_uri": "http://127.0.0.1:7777@evil.example/callback"},
        {"redirect_uri": "http://localhost:7777/callback"},
        {"redirect_uri": "https://127.0.0.1:7777/callback"},
        {"redirect_uri": f"{REDIRECT}#fragment"},
        {"redirect_uri": ""},
        {"client_id": "unknown"},
        {"client_id": ""},
        {"response_type": "token"},
        {"response_type": "code id_token"},
        {"code_challenge_method": "plain"},
        {"code_challenge_method": ""},
        {"code_challenge": ""},
        {"code_challenge": "short"},
        {"resource": "https://other.example/mcp"},
        {"resource": "http://127.0.0.1/mcp"},
    ],
    ids=str,
)
def test_a_wrong_request_leads_nowhere(site: Site, change: Fields) -> None:
    wish = {**site.wish(), **change}
    cookie = site.cookie()
    page = site.house.ask("GET", f"/ui/authorize?{urlencode(wish)}", headers={"cookie": cookie})
    for answer in (page, site.decide(wish, cookie)):
        assert (answer.status, "location" in answer.headers) == (400, False)


@pytest.mark.parametrize("part", ["head", "seal"])
def test_a_forged_client_is_unknown(site: Site, part: str) -> None:
    body, seal = site.client().split(".")
    other = urlsafe_b64encode(b'{"name":"x","redirects":["https://evil.example/"]}').decode().rstrip("=")
    forged = f"{other}.{seal}" if part == "head" else f"{body}.{'0' * 64}"
    answer = site.decide({**site.wish(), "client_id": forged, "redirect_uri": "https://evil.example/"})
    assert answer.status == 400


def test_a_loopback_client_may_listen_on_another_port(site: Site) -> None:
    assert site.decide({**site.wish(), "redirect_uri": "http://127.0.0.1:9/callback"}).status == 303


@pytest.mark.parametrize(
    "uri",
    [
        "javascript:alert(1)",
        "javascript://x/%0aalert(1)",
        "data:text/html,x",
        "data://x",
        "vbscript://x",
        "file:///etc/passwd",
        "blob://x",
        "http://evil.example/",
        "https://user@evil.example/",
        "https://a.example/#x",
        "https://a.example/ x",
        "https://a.example/;x",
        "https://a.example/\r\nSet-Cookie: a=b",
        "https://a.example/'unsafe-inline'",
        "//evil.example/",
        "https://",
        "ftp",
        "",
        "https://a.example/" + "a" * 600,
    ],
)
def test_a_client_that_leads_elsewhere_is_not_registered(site: Site, uri: str) -> None:
    answer = site.register(uri)
    assert (answer.status, code_of(answer)) == (400, "invalid_redirect_uri")


def test_registration_is_bounded_and_stores_nothing(site: Site) -> None:
    before = sorted(path.name for path in site.house.data.iterdir())
    assert site.register(*[f"https://a.example/{number}" for number in range(9)]).status == 400
    assert site.register(client_name="x" * 20_000).status == 413
    assert site.house.ask("POST", "/oauth/register", "", b"{", {"content-type": JSON}).status == 400
    assert site.house.ask("POST", "/oauth/register", "", b"{}", {"content-type": FORM}).status == 415
    for _ in range(20):
        assert site.register().status == 201
    after = {path.name for path in site.house.data.iterdir()}
    assert after - set(before) <= {"sign_in.secret"}
    assert (site.house.data / "sign_in.secret").stat().st_mode & 0o777 == 0o600


def test_name_of_a_client_is_shown_as_text(site: Site) -> None:
    id_ = json.loads(site.register(client_name="<script>x</script>\x00\u202e").body)["client_id"]
    page = site.house.ask(
        "GET", f"/ui/authorize?{urlencode(site.wish(client_id=id_))}", headers={"cookie": site.cookie()}
    )
    assert b"&lt;script&gt;x" in page.body
    assert b"<script>x" not in page.body


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {},
        {"origin": "SITE", "sec_fetch_site": "cross-site"},
        {"origin": "SITE", "sec_fetch_site": "same-site"},
    ],
    ids=str,
)
def test_consent_is_given_by_our_own_page_alone(site: Site, headers: dict[str, str]) -> None:
    fields = {**site.wish(), "decision": "allow", "period": "30d"}
    given = {name: value.replace("SITE", site.address) for name, value in headers.items()}
    assert site.form("/ui/do/authorize", fields, cookie=site.cookie(), **given).status == 403


@pytest.mark.parametrize("state", ["s", "a\nSet-Cookie: b=c", "1; url=https://evil.example"])
def test_a_link_of_another_site_leads_to_the_same_page_and_nowhere_else(site: Site, state: str) -> None:
    path = f"/ui/authorize?{urlencode(site.wish(state=state))}"
    answer = site.house.ask("GET", path, headers={"sec-fetch-site": "cross-site"})
    assert (answer.status, answer.headers["refresh"], answer.body) == (200, f"0; url={path}", b"")
    assert "set-cookie" not in answer.headers
    own = site.house.ask("GET", path, headers={"sec-fetch-site": "same-origin"})
    assert (b'name="key"' in own.body, "refresh" in own.headers) == (True, False)


@pytest.mark.parametrize(
    "more",
    [
        {"prompt": "none"},
        {"response_mode": "fragment"},
        {"response_mode": "form_post"},
        {"scope": "admin operator"},
        {"state": "a\nSet-Cookie: b=c"},
        {"login_hint": "ada", "id_token_hint": "x", "max_age": "0"},
    ],
    ids=str,
)
def test_a_request_is_never_granted_without_the_page(site: Site, more: dict[str, str]) -> None:
    wish, cookie = site.wish(**more), site.cookie()
    page = site.house.ask("GET", f"/ui/authorize?{urlencode(wish)}", headers={"cookie": cookie})
    assert (page.status, "location" in page.headers) == (200, False)
    answer = site.decide(wish, cookie)
    given = dict(parse_qsl(urlsplit(answer.headers["location"]).query))
    assert (answer.status, set(given), given["state"]) == (303, {"code", "state", "iss"}, wish["state"])
    assert json.loads(site.redeem(wish, given["code"]).body)["scope"] == "read"


def test_a_parameter_that_comes_twice_is_the_one_that_the_page_shows(site: Site) -> None:
    other = json.loads(site.register("https://evil.example/").body)["client_id"]
    twice = urlencode([("client_id", other), ("redirect_uri", "https://evil.example/"), *site.wish().items()])
    page = site.house.ask("GET", f"/ui/authorize?{twice}", headers={"cookie": site.cookie()})
    assert b"127.0.0.1:7777" in page.body
    assert b"evil.example" not in page.body


def test_neither_code_nor_request_is_kept_or_told_to_another_site(site: Site) -> None:
    wish, cookie = site.wish(), site.cookie()
    page = site.house.ask("GET", f"/ui/authorize?{urlencode(wish)}", headers={"cookie": cookie})
    for answer in (page, site.decide(wish, cookie)):
        assert (answer.headers["cache-control"], answer.headers["referrer-policy"]) == ("no-store", "same-origin")
    wish, code = site.granted()
    assert site.redeem(wish, code).headers["cache-control"] == "no-store"


def test_the_server_fetches_nothing_that_a_client_names(site: Site) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.2)
        trap = f"http://127.0.0.1:{listener.getsockname()[1]}/client.json"
        cookie = site.cookie()
        for id_ in (trap, trap.replace("http:", "https:"), "http://169.254.169.254/client.json"):
            wish = {**site.wish(), "client_id": id_}
            page = site.house.ask("GET", f"/ui/authorize?{urlencode(wish)}", headers={"cookie": cookie})
            assert (page.status, b"Documents at a URL are not fetched" in page.body) == (400, True)
            assert site.decide(wish, cookie).status == 400
            assert code_of(site.form("/oauth/token", {**wish, "grant_type": "refresh_token"})) == "invalid_grant"
        more = dict.fromkeys(["logo_uri", "jwks_uri", "client_uri", "tos_uri", "sector_identifier_uri"], trap)
        id_ = json.loads(site.register(software_statement="a.b.c", **more).body)["client_id"]
        wish = site.wish(client_id=id_, request_uri=trap, request="a.b.c")
        assert (
            trap.encode()
            not in site.house.ask("GET", f"/ui/authorize?{urlencode(wish)}", headers={"cookie": cookie}).body
        )
        assert site.decide(wish, cookie).status == 303
        with pytest.raises(TimeoutError):
            listener.accept()


UNKNOWN = [{"period": "9999d"}, {"period": ""}, {"places": "nowhere:at-all"}, {"places": "brain:nope"}]


@pytest.mark.parametrize("change", UNKNOWN, ids=str)
def test_consent_of_an_unknown_kind_is_refused(site: Site, change: Fields) -> None:
    assert site.decide({**site.wish(), **change}, **change).status == 400


def test_consent_takes_a_session(site: Site) -> None:
    fields = {**site.wish(), "decision": "allow", "period": "30d"}
    assert site.form("/ui/do/authorize", fields, origin=site.address).status == 401


@pytest.mark.parametrize("wanted", ["https://evil.example/", "//evil.example", "/\\evil.example", "a=b\r\nx: y", "%"])
def test_login_leads_to_our_own_page(site: Site, wanted: str) -> None:
    answer = site.form("/ui/do/login", {"key": site.key, "next": wanted}, origin=site.address)
    assert urlsplit(answer.headers.get("location", "/ui/")).path.startswith("/ui")
    assert answer.headers.get("location", "/ui/").startswith("/ui")


@pytest.mark.parametrize(
    "change",
    [
        {"code_verifier": "w" * 43},
        {"code_verifier": ""},
        {"code_verifier": CHALLENGE},
        {"redirect_uri": "http://127.0.0.1:7778/callback"},
        {"redirect_uri": ""},
        {"client_id": ""},
    ],
    ids=str,
)
def test_a_code_in_wrong_hands_is_lost(site: Site, change: Fields) -> None:
    wish, code = site.granted()
    assert code_of(site.redeem(wish, code, **change)) == "invalid_grant"
    assert code_of(site.redeem(wish, code)) == "invalid_grant"


def test_a_code_of_one_client_is_none_for_another(site: Site) -> None:
    wish, code = site.granted()
    other = json.loads(site.register(client_name="Mallory").body)["client_id"]
    assert code_of(site.redeem(wish, code, client_id=other)) == "invalid_grant"


def test_a_code_that_is_used_twice_revokes_its_tokens(site: Site) -> None:
    wish, code = site.granted()
    token = json.loads(site.redeem(wish, code).body)["access_token"]
    assert site.status(token) == 200
    assert code_of(site.redeem(wish, code)) == "invalid_grant"
    assert site.status(token) == 401


def test_a_code_and_its_tokens_are_for_the_resource_of_the_request(site: Site) -> None:
    wish = site.wish(resource=f"{site.address}/mcp/paths")
    code = parse_qs(urlsplit(site.decide(wish).headers["location"]).query)["code"][0]
    for other in ("/mcp", "/mcp/brain", "", "/elsewhere"):
        assert code_of(site.redeem(wish, code, resource=site.address + other)) == "invalid_target"
    tokens = json.loads(site.redeem(wish, code, resource=wish["resource"]).body)
    assert code_of(site.refresh(wish, tokens["refresh_token"], resource=f"{site.address}/mcp")) == "invalid_target"
    assert site.refresh(wish, tokens["refresh_token"], resource=wish["resource"]).status == 200


@pytest.mark.parametrize(("write", "scope"), [("", "write"), ("", "read write"), ("yes", "admin"), ("yes", "operator")])
def test_a_refresh_grants_no_more_than_the_consent(site: Site, write: str, scope: str) -> None:
    wish, tokens = site.tokens(write=write)
    assert code_of(site.refresh(wish, tokens["refresh_token"], scope=scope)) == "invalid_scope"
    again = json.loads(site.refresh(wish, tokens["refresh_token"], scope="read offline_access").body)
    assert again["scope"] == tokens["scope"] == ("write" if write else "read")


def test_a_secret_that_is_of_no_grant_writes_no_file(site: Site) -> None:
    wish, tokens = site.tokens()
    before = (site.house.data / "keys.json").stat()
    for secret in (
        site.key,
        "code_00000000_" + "a" * 43,
        tokens["refresh_token"][:-3] + "abc",
        tokens["access_token"][:-1],
    ):
        assert code_of(site.redeem(wish, secret)) == "invalid_grant"
        assert code_of(site.refresh(wish, secret)) == "invalid_grant"
        assert site.form("/oauth/revoke", {"token": secret}).status == 200
    assert (site.house.data / "keys.json").stat() == before
    assert site.status(site.key) == 200


def test_a_code_is_lost_with_the_key_that_consented(site: Site) -> None:
    key = site.house.key("write")
    site.house.told()
    wish = site.wish()
    code = parse_qs(urlsplit(site.decide(wish, site.cookie(key)).headers["location"]).query)["code"][0]
    api_keys.revoke(site.house.data, api_keys.parse(key), "2026-01-01T00:00:00.000Z")
    assert code_of(site.redeem(wish, code)) == "invalid_grant"


def test_a_grant_ends_no_later_than_the_key_that_consented(site: Site) -> None:
    key = site.house.key("write", expires="2999-01-01T00:00:00.000Z")
    site.house.told()
    wish = site.wish()
    location = site.decide(wish, site.cookie(key), period="never").headers["location"]
    token = json.loads(site.redeem(wish, parse_qs(urlsplit(location).query)["code"][0]).body)["access_token"]
    ends = {each.id: each.expires for each in api_keys.read(site.house.data)}
    assert ends[api_keys.parse(token)] == "2999-01-01T00:00:00.000Z"


def test_a_code_ends_after_a_minute(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    wish, code = site.granted()
    monkeypatch.setattr("kernel.http.direct_routes.utc_now", lambda: "2999-01-01T00:00:00.000Z")
    assert code_of(site.redeem(wish, code)) == "invalid_grant"


def test_of_two_redemptions_at_once_one_has_tokens(site: Site) -> None:
    wish, code = site.granted()
    answers: list[int] = []
    threads = [threading.Thread(target=lambda: answers.append(site.redeem(wish, code).status)) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [200, 400, 400, 400, 400, 400]


def test_refresh_rotates_and_reuse_revokes_the_family(site: Site) -> None:
    wish, first = site.tokens()
    second = json.loads(site.refresh(wish, first["refresh_token"]).body)
    assert (site.status(first["access_token"]), site.status(second["access_token"])) == (401, 200)
    assert code_of(site.refresh(wish, first["refresh_token"])) == "invalid_grant"
    assert site.status(second["access_token"]) == 401
    assert code_of(site.refresh(wish, second["refresh_token"])) == "invalid_grant"


def test_of_two_refreshes_at_once_one_has_tokens_and_both_end(site: Site) -> None:
    wish, tokens = site.tokens()
    answers: list[Answer] = []
    threads = [
        threading.Thread(target=lambda: answers.append(site.refresh(wish, tokens["refresh_token"]))) for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    first, second = sorted(answers, key=lambda answer: answer.status)
    assert (first.status, code_of(second)) == (200, "invalid_grant")
    assert site.status(json.loads(first.body)["access_token"]) == 401


def test_a_refresh_token_is_for_its_client(site: Site) -> None:
    wish, tokens = site.tokens()
    other = json.loads(site.register(client_name="Mallory").body)["client_id"]
    assert code_of(site.refresh(wish, tokens["refresh_token"], client_id=other)) == "invalid_grant"
    assert site.refresh(wish, tokens["refresh_token"]).status == 200


@pytest.mark.parametrize("name", ["access_token", "refresh_token"])
def test_a_client_revokes_its_grant(site: Site, name: str) -> None:
    wish, tokens = site.tokens()
    assert site.form("/oauth/revoke", {"token": tokens[name]}).status == 200
    assert site.status(tokens["access_token"]) == 401
    assert code_of(site.refresh(wish, tokens["refresh_token"])) == "invalid_grant"
    assert site.form("/oauth/revoke", {"token": "unknown"}).status == 200


def test_a_person_revokes_a_grant_as_a_key(site: Site) -> None:
    wish, tokens = site.tokens()
    api_keys.revoke(site.house.data, api_keys.parse(tokens["access_token"]), "2026-01-01T00:00:00.000Z")
    site.house.told()
    assert site.status(tokens["access_token"]) == 401
    assert code_of(site.refresh(wish, tokens["refresh_token"])) == "invalid_grant"


def test_a_revoked_key_ends_the_grants_that_it_made(site: Site) -> None:
    key = site.house.key("write")
    site.house.told()
    cookie = site.cookie(key)
    wish = site.wish()
    code = parse_qs(urlsplit(site.decide(wish, cookie).headers["location"]).query)["code"][0]
    token = json.loads(site.redeem(wish, code).body)["access_token"]
    assert site.status(token) == 200
    api_keys.revoke(site.house.data, api_keys.parse(key), "2026-01-01T00:00:00.000Z")
    site.house.told()
    assert site.status(token) == 401


def test_an_access_token_ends_and_is_refreshed(site: Site) -> None:
    wish, tokens = site.tokens()
    id_ = api_keys.parse(tokens["access_token"])
    text = (site.house.data / "keys.json").read_text()
    fresh = next(key.login.fresh for key in api_keys.read(site.house.data) if key.id == id_ and key.login)
    (site.house.data / "keys.json").write_text(text.replace(f'"{fresh}"', '"2026-01-01T00:00:00.000Z"'))
    site.house.told()
    assert site.status(tokens["access_token"]) == 401
    again = json.loads(site.refresh(wish, tokens["refresh_token"]).body)
    assert site.status(again["access_token"]) == 200


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"grant_type": "password", "username": "a", "password": "b"}, "unsupported_grant_type"),
        ({"grant_type": "client_credentials"}, "unsupported_grant_type"),
        ({}, "unsupported_grant_type"),
        ({"grant_type": "refresh_token", "refresh_token": "quipur_00000000_" + "a" * 43}, "invalid_grant"),
        ({"grant_type": "authorization_code", "code": "x", "resource": "https://other.example"}, "invalid_target"),
    ],
)
def test_other_grants_are_refused(site: Site, fields: Fields, code: str) -> None:
    assert code_of(site.form("/oauth/token", fields)) == code


def test_a_field_that_comes_twice_is_refused(site: Site) -> None:
    answer = site.house.ask("POST", "/oauth/token", "", b"grant_type=a&grant_type=b", {"content-type": FORM})
    assert (answer.status, code_of(answer)) == (400, "invalid_request")


def test_a_code_or_refresh_token_is_no_access_token(site: Site) -> None:
    wish, code = site.granted()
    assert site.status(code) == 401
    tokens = json.loads(site.redeem(wish, code).body)
    assert site.status(tokens["refresh_token"]) == 401


def test_an_access_token_is_taken_from_the_header_alone(site: Site) -> None:
    _, tokens = site.tokens()
    body = json.dumps({"query": "plan", "access_token": tokens["access_token"]}).encode()
    query = urlencode({"access_token": tokens["access_token"]})
    assert site.house.ask("POST", f"/tools/recall?{query}", "", body, {"content-type": JSON}).status == 401
    assert site.house.ask("GET", f"/oauth/token?{query}&grant_type=refresh_token").status == 405


def test_a_grant_is_listed_with_its_client_and_places(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    _, tokens = site.tokens(places="paths:shared")
    id_ = api_keys.parse(tokens["access_token"])
    page = json.loads(site.house.ask("GET", "/ui/keys.json", site.key).body)
    (listed,) = [key for key in page["keys"] if key["id"] == id_]
    assert (listed["name"], listed["scope"], listed["places"]) == ("Test", "read", ["reads paths:shared"])
    assert main(["key", "list", "--json", "--data", str(site.house.data)]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if id_ in line]
    assert json.loads(line)["login"] == {"client": "Test", "by": api_keys.parse(site.key)}


def test_secrets_are_stored_as_digests(site: Site) -> None:
    _, tokens = site.tokens()
    stored = (site.house.data / "keys.json").read_text()
    assert not any(re.search(re.escape(tokens[name][16:]), stored) for name in ("access_token", "refresh_token"))


def test_without_an_address_or_keys_nobody_signs_in(tmp_path: Path) -> None:
    for number, public in enumerate(("", "http://127.0.0.1:1")):
        with house(Config(data=tmp_path / str(number), model=None, public=public)) as running:
            assert running.ask("GET", "/.well-known/oauth-authorization-server").status == 404
            assert running.ask("POST", "/oauth/register", "", b"{}", {"content-type": JSON}).status in {404, 405}
