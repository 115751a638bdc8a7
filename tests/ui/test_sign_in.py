"""The official clients log in from an address alone: a person consents, refuses and revokes in Chromium."""

import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from kernel.core.config import Config
from kernel.security import api_keys
from tests.security.authenticated_server import House, house
from tests.ui.browser import Browser
from tests.unit.sql.code import ROOT

pytestmark = pytest.mark.ui

SECONDS = 2  # of an access token
CLIENTS = {
    "Python": [sys.executable, "-m", "tests.support.sign_in_client"],
    "TypeScript": [str(ROOT / ".venv-node/bin/node"), "tests/contracts/clients/typescript-sdk/sign_in.mjs"],
}


class Program:
    """A client that runs, line by line."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def says(self, word: str) -> str:
        """The rest of the next line, which begins with this word."""
        assert self._process.stdout
        line = self._process.stdout.readline().strip()
        assert line.split(" ")[0] == word, line
        return line.removeprefix(word).strip()

    def store(self, text: str) -> None:
        assert self._process.stdin
        self._process.stdin.write(f"{text}\n")
        self._process.stdin.flush()


@contextmanager
def started(words: Sequence[str], url: str) -> Iterator[Program]:
    with subprocess.Popen([*words, url], cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            yield Program(process)
        finally:
            process.kill()


@pytest.fixture
def guarded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[House, str]]:
    """A server with an address, whose access tokens end soon, and the key of a person."""
    monkeypatch.setattr("kernel.security.sign_in.TOKEN_SECONDS", SECONDS)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    config = Config(data=tmp_path / "data", model=None, public=f"http://127.0.0.1:{port}")
    with house(config, port) as running:
        key = running.key()
        running.told()
        yield running, key


def look(browser: Browser) -> None:
    """The page is accessible and fits, dark and light, on a screen and on a phone."""
    for dark in (True, False):
        for width in (320, 1280):
            browser.look(dark=dark, width=width)
            wide = browser.run("return document.documentElement.scrollWidth - document.documentElement.clientWidth")
            assert (browser.violations(), wide) == ([], 0)


def grants(server: House) -> list[tuple[str, str, str]]:
    now = "2026-01-02T00:00:00.000Z"
    return [(key.name, key.scope, key.state(now)) for key in api_keys.read(server.data) if key.login]


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_logs_in_is_refreshed_revoked_and_refused(
    browser: Browser, guarded: tuple[House, str], client: str
) -> None:
    server, key = guarded
    address = f"http://127.0.0.1:{server.port}"
    with started(CLIENTS[client], f"{address}/mcp") as program:
        browser.open(program.says("open"))
        assert "A program asks to be let in" in browser.text("main")
        look(browser)
        browser.write("#key", key)
        browser.click(".login button")
        browser.wait("h1", f"Let {client} in?")
        look(browser)
        browser.click("input[name=write]")
        browser.click("button[value=allow]")
        browser.wait("body", "Close this page.")
        assert "add_memory" in program.says("tools").split()
        program.store("opens/six")
        assert program.says("called").lower() == "false"
        assert grants(server) == [(client, "write", "active")]

        time.sleep(SECONDS + 0.1)
        program.store("opens/seven")
        assert program.says("called").lower() == "false"

        browser.open(f"{address}/ui/keys")
        browser.click("tbody tr:last-child form[action='/ui/do/revoke-key'] button")
        browser.wait("tbody tr:last-child", "revoked")
        server.told()
        assert grants(server) == [(client, "write", "revoked")]
        program.store("opens/eight")
        browser.open(program.says("open"))
        browser.wait("h1", f"Let {client} in?")
        browser.click("button[value=refuse]")
        browser.wait("body", "Close this page.")
        assert "access_denied" in program.says("failed")
        assert grants(server) == [(client, "write", "revoked")]
    assert server.tool("read_memory", {"path": "opens/seven"}, key).status == 200


def test_a_page_of_another_site_leads_to_consent_in_a_session(browser: Browser, guarded: tuple[House, str]) -> None:
    server, key = guarded
    address = f"http://127.0.0.1:{server.port}"
    with started(CLIENTS["Python"], f"{address}/mcp") as program:
        asked = program.says("open")
        browser.open(f"{address}/ui/login")
        browser.write("#key", key)
        browser.click(".login button")
        browser.wait("h1", "Overview")
        browser.open(
            f"data:text/html,<a href='{asked.replace('&', '&amp;').replace('%', '%25').replace('#', '%23')}'>go on</a>"
        )
        browser.click("a")
        browser.wait("h1", "Let Python in?")
        browser.click("button[value=refuse]")
        browser.wait("body", "Close this page.")
        assert "access_denied" in program.says("failed")
