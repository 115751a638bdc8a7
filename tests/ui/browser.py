"""Chromium without a window, driven over the WebDriver protocol, with its log and its requests."""

import base64
import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.unit.sql.code import ROOT

_ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # the name of an element in WebDriver
_UNPACKED = ROOT / ".venv-chromium"
AXE = Path(__file__).parent / "node_modules" / "axe-core" / "axe.min.js"
_PATIENCE = 30.0
_MOST_TABS = 150
TAB, ENTER, DOWN, CONTROL = "\ue004", "\ue007", "\ue015", "\ue009"  # as WebDriver names keys
_INTO_SIGHT = "arguments[0].scrollIntoView({block: 'center'})"
_SECOND_FRAME = "requestAnimationFrame(() => requestAnimationFrame(done))"
_PASSING = {"stale element reference", "no such element"}
_GONE = "Node with given id does not belong to the document"  # chromedriver's unknown error for the same


class Refused(Exception):
    """A failure of the driver; `error` is its code."""

    def __init__(self, error: str, message: str) -> None:
        super().__init__(f"{error}: {message}")
        self.error = error


class Browser:
    """One window of Chromium."""

    def __init__(self, client: httpx.Client, session: str) -> None:
        self._client = client
        self._session = session

    def open(self, address: str) -> None:
        """Loads a page."""
        self._send("POST", "/url", {"url": address})

    def open_painted(self, address: str) -> None:
        """Loads a page, and waits until it has been painted: Chromium drops the keys before."""
        self.open(address)
        self.run(f"return new Promise((done) => {_SECOND_FRAME})")

    @property
    def address(self) -> str:
        """The address of the page."""
        return self._send("GET", "/url")

    @property
    def title(self) -> str:
        """The title of the page."""
        return self._send("GET", "/title")

    def text(self, selector: str = "body") -> str:
        """The visible text of the first element of a selector."""
        return self._on(selector, "GET", "text")

    def texts(self, selector: str) -> list[str]:
        """The visible texts of all elements of a selector."""
        return [self._send("GET", f"/element/{one}/text") for one in self._all(selector)]

    def click(self, selector: str) -> None:
        """Clicks the first element of a selector."""
        self._on(selector, "POST", "click", {})

    def write(self, selector: str, text: str) -> None:
        """Replaces the content of a field."""
        self._on(selector, "POST", "clear", {})
        self._on(selector, "POST", "value", {"text": text})

    def choose(self, selector: str, file: Path) -> None:
        """Chooses a file in a field."""
        self._on(selector, "POST", "value", {"text": str(file)})

    @contextmanager
    def inside(self, selector: str) -> Iterator[None]:
        """Looks in a frame from now on."""
        self._send("POST", "/frame", {"id": {_ELEMENT: self._find(selector)}})
        try:
            yield
        finally:
            self._send("POST", "/frame", {"id": None})

    def press(self, keys: str) -> None:
        """Presses keys one after another, wherever the focus is."""
        steps = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        self.act([{"type": "key", "id": "keys", "actions": steps}])

    def act(self, actions: Any) -> None:
        """Performs actions of WebDriver."""
        self._send("POST", "/actions", {"actions": actions})

    def tab_to(self, selector: str) -> None:
        """Presses Tab until an element has the focus."""
        wanted, pressed = self._find(selector), 0
        while self._send("GET", "/element/active")[_ELEMENT] != wanted:
            assert pressed < _MOST_TABS, f"Tab does not reach {selector}"
            self.press(TAB)
            pressed += 1

    def tap(self, selector: str) -> None:
        """Touches the middle of an element with a finger, wherever it has to be scrolled to."""
        target = {_ELEMENT: self._find(selector)}
        self._send("POST", "/execute/sync", {"script": _INTO_SIGHT, "args": [target]})
        finger = {"id": "finger", "type": "pointer", "parameters": {"pointerType": "touch"}}
        steps = [{"type": "pointerMove", "x": 0, "y": 0, "origin": target}, {"type": "pointerDown", "button": 0}]
        self.act([{**finger, "actions": [*steps, {"type": "pointerUp", "button": 0}]}])

    def run(self, script: str, *arguments: Any) -> Any:
        """Return the result of a script of the test; its promise is awaited."""
        return self._send("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def cdp(self, command: str, **parameters: Any) -> Any:
        """A command of the DevTools protocol."""
        return self._send("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def logged(self, kind: str) -> list[dict[str, Any]]:
        """Return the log since the last time: `browser` is the console, `performance` the requests."""
        return self._send("POST", "/se/log", {"type": kind})

    def requested(self) -> list[str]:
        """The addresses that were requested since the last time."""
        messages = [json.loads(entry["message"])["message"] for entry in self.logged("performance")]
        return [one["params"]["request"]["url"] for one in messages if one["method"] == "Network.requestWillBeSent"]

    def look(self, *, dark: bool = False, width: int = 1280, height: int = 900, scripts: bool = True) -> None:
        """The theme and the size of the window, and whether scripts of pages run."""
        theme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.cdp("Emulation.setEmulatedMedia", features=[theme])
        self.cdp(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500
        )
        self.cdp("Emulation.setScriptExecutionDisabled", value=not scripts)

    def violations(self) -> list[str]:
        """Return the faults that axe-core finds in the page: WCAG 2.2 AA and best practices."""
        self.run(AXE.read_text(encoding="utf-8"))
        found = self.run("return axe.run(document, {resultTypes: ['violations']})")
        return [f"{one['id']}: {node['html'][:200]}" for one in found["violations"] for node in one["nodes"]]

    def picture(self, file: Path) -> None:
        """Writes the window as PNG."""
        file.write_bytes(base64.b64decode(self._send("GET", "/screenshot")))

    def wait(self, selector: str, words: str) -> None:
        """Waits until the text of an element holds words."""
        end = time.monotonic() + _PATIENCE
        while words not in self.text(selector):
            assert time.monotonic() < end, f"{selector} shows {self.text(selector)!r}"
            time.sleep(0.1)

    def wait_for(self, selector: str) -> None:
        """Waits until there is an element."""
        end = time.monotonic() + _PATIENCE
        while not self._all(selector):
            assert time.monotonic() < end, f"there is no {selector}"
            time.sleep(0.05)

    def _on(self, selector: str, method: str, what: str, body: Any = None) -> Any:
        """Asks for something of an element, again where its page is just going away."""
        end = time.monotonic() + _PATIENCE
        while True:
            try:
                return self._send(method, f"/element/{self._find(selector)}/{what}", body)
            except Refused as refused:
                passing = refused.error in _PASSING or _GONE in str(refused)
                if not passing or time.monotonic() > end:
                    raise
                time.sleep(0.05)

    def _find(self, selector: str) -> str:
        return self._send("POST", "/element", {"using": "css selector", "value": selector})[_ELEMENT]

    def _all(self, selector: str) -> Sequence[str]:
        found = self._send("POST", "/elements", {"using": "css selector", "value": selector})
        return [one[_ELEMENT] for one in found]

    def _send(self, method: str, path: str, body: Any = None) -> Any:
        answer = self._client.request(method, f"/session/{self._session}{path}", json=body)
        value = answer.json()["value"]
        if answer.status_code != 200:
            raise Refused(value["error"], value["message"])
        return value


def programs() -> tuple[str, str] | None:
    """The driver and the browser: those on the PATH, or those that `make test-ui` has unpacked."""
    driver = shutil.which("chromedriver")
    browser = next((found for name in ("chromium", "google-chrome") if (found := shutil.which(name))), None)
    if driver and browser:
        return driver, browser
    unpacked = (_UNPACKED / "chromedriver", _UNPACKED / "chromium")
    return (str(unpacked[0]), str(unpacked[1])) if all(file.exists() for file in unpacked) else None


@contextmanager
def browsing(driver: str, browser: str, home: Path) -> Iterator[Browser]:
    """A browser of its own, with a fresh profile."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    environment = {**os.environ, "HOME": str(home), "TMPDIR": str(home)}
    process = subprocess.Popen([driver, f"--port={port}", "--silent"], env=environment, stdout=subprocess.DEVNULL)
    # A page to begin with: the shell without a window opens none by itself.
    arguments = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "about:blank"]
    wanted = {
        "goog:chromeOptions": {"binary": browser, "args": arguments},
        "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
    }
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=120) as client:
            _await_driver(client, process)
            made = client.post("/session", json={"capabilities": {"alwaysMatch": wanted}}).json()["value"]
            assert "sessionId" in made, made
            session = made["sessionId"]
            yield Browser(client, session)
            client.delete(f"/session/{session}")
    finally:
        process.terminate()
        process.wait(30)


def _await_driver(client: httpx.Client, process: "subprocess.Popen[bytes]") -> None:
    end = time.monotonic() + _PATIENCE
    while process.poll() is None and time.monotonic() < end:
        try:
            client.get("/status")
        except httpx.TransportError:
            time.sleep(0.05)
        else:
            return
    raise AssertionError("chromedriver did not start")
