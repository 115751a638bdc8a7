"""The MCP App of recall in Chromium, with the official bridge as its host."""

import json
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from kernel.core.config import Config
from tests.security.authenticated_server import House, house
from tests.security.hostile_texts import HOSTILE, store_everywhere
from tests.support.ui_console import FOREIGN_ELEMENTS, fill
from tests.ui.app_host import hosting
from tests.ui.browser import Browser

pytestmark = pytest.mark.ui

FRAME = "#view"
ALL = {"serverTools": {}, "openLinks": {}, "updateModelContext": {"text": {}}, "message": {"text": {}}}
VIEW_BYTES = 20_000
# The parts of the file itself: its own script, style and bars are no foreign elements.
MADE = FOREIGN_ELEMENTS.replace('style, math, script:not([src])"', 'math"').replace('each.name === "style"', "false")


@pytest.fixture
def full(tmp_path: Path) -> Iterator[House]:
    with house(Config(data=tmp_path / "data")) as running:
        fill(running)
        yield running


def begin(
    browser: Browser,
    address: str,
    query: Mapping[str, Any],
    capabilities: Mapping[str, Any] = ALL,
    **context: object,
) -> dict[str, Any]:
    browser.open(address)
    browser.wait_for("body[data-ready]")
    return browser.run("return begin(...arguments)", query, {"theme": "light", **context}, capabilities)


def recorded(browser: Browser, name: str, last: str = "") -> Any:
    """Return the records of the host, once its last entry holds `last`: its messages arrive a little later."""
    end = time.monotonic() + 30
    while True:
        entries = browser.run("return record[arguments[0]]", name)
        if (entries and last in str(entries[-1])) or time.monotonic() > end:
            return entries
        time.sleep(0.05)


def press(browser: Browser, label: str, row: str = "") -> None:
    """Presses the button of a label, perhaps in one row."""
    browser.run(
        "const rows = [...document.querySelectorAll('li')].filter((row) => row.textContent.includes(arguments[1]));"
        "const found = [...(arguments[1] ? rows[0] : document).querySelectorAll('button')];"
        "found.find((one) => one.textContent === arguments[0]).click()",
        label,
        row,
    )


def test_view_begins_and_shows_what_recall_found(browser: Browser, full: House) -> None:
    with hosting(full.port) as address:
        record = begin(browser, address, {"query": "green tea in the morning", "detail": "text", "explain": True})
        assert record["extensions"] == {"io.modelcontextprotocol/skills": {}, "io.modelcontextprotocol/ui": {}}
        assert record["uri"] == "ui://quipu/recall.html"
        assert record["view"]["mimeType"] == "text/html;profile=mcp-app"
        assert record["view"]["ui"] == {"csp": {}, "permissions": {"clipboardWrite": {}}, "prefersBorder": False}
        assert record["view"]["bytes"] <= VIEW_BYTES
        assert record["app"]["info"] == {"name": "quipu-recall", "version": "1"}
        assert record["app"]["capabilities"] == {"availableDisplayModes": ["inline", "fullscreen"]}
        with browser.inside(FRAME):
            browser.wait("#status", "found by")
            assert browser.texts(".id")[0] == "paths/home/tea"
            assert "Ada drinks green tea" in browser.text("li .text")
            assert browser.text("li mark").lower() in {"green", "tea", "in", "the", "morning"}
            assert "meaning 0." in browser.text("li .bar + .dim")
            assert "paths · replace_memory · anonymous" in browser.text("li .dim:nth-of-type(4)")
            assert browser.violations() == []
        sizes = recorded(browser, "sizes")
        assert sizes
        assert 100 < sizes[-1]["height"] < 5000
        check_quiet(browser, address)


def test_theme_and_colours_are_those_of_the_host(browser: Browser, full: House) -> None:
    colours = {"--color-background-primary": "#101820", "--color-text-primary": "#fafafa"}
    with hosting(full.port) as address:
        begin(browser, address, {"query": "tea"}, theme="dark", styles={"variables": colours})
        with browser.inside(FRAME):
            browser.wait("#status", "found")
            style = "const s = getComputedStyle(document.body); return [s.backgroundColor, s.color, s.colorScheme]"
            assert browser.run(style) == ["rgb(16, 24, 32)", "rgb(250, 250, 250)", "dark"]
            assert browser.violations() == []
        browser.run("bridge.setHostContext({theme: 'light', styles: {variables: {}}})")
        with browser.inside(FRAME):
            browser.wait_for(":root[data-theme=light]")
        check_quiet(browser, address)


def test_memory_is_read_whole_corrected_and_forgotten_through_the_host(browser: Browser, full: House) -> None:
    long = "Green tea. " + "It grows on hills far away. " * 40
    full.tool("add_memory", {"path": "long", "content": long})
    with hosting(full.port) as address:
        begin(browser, address, {"query": "green tea"})
        with browser.inside(FRAME):
            browser.wait("#status", "found")
            press(browser, "Show whole", "paths/long")
            browser.wait("#hits", long[-60:].strip())
            press(browser, "Wrong", "paths/home/tea")
            browser.write("textarea", "Ada drinks black tea.")
            press(browser, "Save", "paths/home/tea")
            browser.wait("#status", "paths/home/tea is corrected")
            press(browser, "Forget", "paths/long")
            press(browser, "Cancel", "paths/long")
            press(browser, "Forget", "paths/long")
            browser.click(".asked .danger")
            browser.wait("#status", "paths/long is forgotten")
            press(browser, "Why these?")
            browser.wait("#hits", "meaning 0.")
        names = [call["name"] for call in recorded(browser, "calls")]
        assert names == ["recall", "replace_memory", "drop_memory", "recall"]
        told = "The user corrected paths/home/tea: Ada drinks black tea.\nThe user struck out paths/long."
        assert recorded(browser, "contexts", "struck out")[-1] == told
    assert full.tool("read_memory", {"path": "long"}).status == 404
    assert json.loads(full.tool("read_memory", {"path": "home/tea"}).body)["content"] == "Ada drinks black tea."


def test_parts_beside_a_text_are_shown_with_all_of_it(browser: Browser, full: House) -> None:
    note = {"db": "core", "title": "Quokkas", "content": "Quokkas smile.", "key_points": ["<b>small</b>"]}
    key = json.loads(full.tool("save_note", {**note, "category": "animals"}).body)["id"]
    with hosting(full.port) as address:
        begin(browser, address, {"query": "quokkas smile"})
        with browser.inside(FRAME):
            browser.wait("#status", "found")
            press(browser, "Show whole", f"brain:core/{key}")
            browser.wait("#hits", 'key_points: ["<b>small</b>"]')
            browser.wait("#hits", "category: animals")


def test_more_hits_come_with_the_cursor(browser: Browser, full: House) -> None:
    for number in range(15):
        full.tool("add_memory", {"path": f"cup/{number}", "content": f"Cup {number} of {number * 7} is for tea"})
    with hosting(full.port) as address:
        begin(browser, address, {"query": "tea cup", "limit": 5})
        with browser.inside(FRAME):
            browser.wait("#status", "5 found")
            press(browser, "More")
            browser.wait("#status", "10 found")
            assert len(set(browser.texts(".id"))) == 10


def test_refusal_of_the_server_is_shown(browser: Browser, full: House) -> None:
    with hosting(full.port) as address:
        begin(browser, address, {"query": "tea"})
        full.tool("drop_memory", {"path": "home/tea"})
        with browser.inside(FRAME):
            browser.wait("#status", "found")
            press(browser, "Forget", "paths/home/tea")
            browser.click(".asked .danger")
            browser.wait("#status", "home/tea")
            assert not browser.texts(".gone")


def test_host_without_tools_of_the_server_gets_no_buttons(browser: Browser, full: House) -> None:
    with hosting(full.port) as address:
        begin(browser, address, {"query": "tea"}, {"message": {"text": {}}})
        with browser.inside(FRAME):
            browser.wait("#status", "found")
            assert {"Forget", "Show whole", "Why these?"} & set(browser.texts("button")) == set()
            press(browser, "Wrong", "paths/home/tea")
            browser.write("textarea", "It is coffee")
            press(browser, "Save", "paths/home/tea")
            browser.wait("#status", "asked to correct")
        assert "paths/home/tea is wrong. What is right: It is coffee." in recorded(browser, "messages")[0]
        begin(browser, address, {"query": "tea"}, {})
        with browser.inside(FRAME):
            browser.wait("#status", "found")
            assert {"Forget", "Wrong", "Show whole", "Why these?"} & set(browser.texts("button")) == set()


def test_links_are_opened_by_the_host(browser: Browser, full: House) -> None:
    full.tool(
        "add_memory",
        {"path": "link", "content": "The tea shop is https://tea.example/shop?x=1 and javascript:alert(1)"},
    )
    with hosting(full.port) as address:
        begin(browser, address, {"query": "tea shop", "detail": "text"})
        with browser.inside(FRAME):
            browser.wait("#status", "found")
            assert browser.texts("button.link") == ["https://tea.example/shop?x=1"]
            browser.click("button.link")
        assert recorded(browser, "links", "tea.example") == ["https://tea.example/shop?x=1"]


def test_cancelled_call_and_end_of_the_view(browser: Browser, full: House) -> None:
    with hosting(full.port) as address:
        begin(browser, address, {"query": "tea"})
        assert browser.run("return bridge.teardownResource({})") == {}
        browser.run("return bridge.sendToolCancelled({reason: 'by the user'})")
        with browser.inside(FRAME):
            browser.wait("#status", "Cancelled: by the user")


def test_hostile_texts_make_no_element_in_the_view(browser: Browser, tmp_path: Path) -> None:
    with house(Config(data=tmp_path / "data")) as hostile:
        for text in HOSTILE:
            store_everywhere(hostile, text)
        with hosting(hostile.port) as address:
            given = {"query": "", "detail": "text", "limit": 100, "max_tokens": 100_000, "quarantined": True}
            begin(browser, address, given)
            with browser.inside(FRAME):
                browser.wait("#status", "found")
                shown = 0
                while "More" in browser.texts("#tools button"):
                    shown = len(browser.run("return [...document.querySelectorAll('li')].map(() => 1)"))
                    press(browser, "More")
                    browser.wait_for(f"li:nth-of-type({shown + 1})")
                assert len(browser.run("return [...document.querySelectorAll('li')].map(() => 1)")) > 4 * len(HOSTILE)
                assert browser.run(MADE) == []
                assert browser.title == "Host"
                assert browser.run("return document.title") == "Recall"
                text = browser.run("return document.body.innerText")
                assert "⟨U+202E⟩" in text
                assert not {"\u202e", "\u2066", "\u200b", "\ufeff"} & set(text)
            check_quiet(browser, address)


def check_quiet(browser: Browser, address: str) -> None:
    """Nothing was refused by the policy, and nothing was asked of another server than the host."""
    wrong = [entry["message"] for entry in browser.logged("browser") if entry["level"] == "SEVERE"]
    assert [message for message in wrong if "405" not in message] == []
    assert [url for url in browser.requested() if not url.startswith((address, "data:", "about:"))] == []
