"""The console in Chromium: the first five minutes, with and without JavaScript, and the findings of axe-core."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest

from handlers.console.console import PAGES
from kernel.core.config import Config
from kernel.core.ids import utc_now
from kernel.security import api_keys
from tests.security.authenticated_server import House, house
from tests.security.hostile_texts import GRAPH, HOSTILE, store_everywhere
from tests.support.security_console import memories_of
from tests.support.ui_console import ANIMALS, FOREIGN_ELEMENTS, fill, outdated
from tests.ui import pictures
from tests.ui.browser import CONTROL, DOWN, ENTER, Browser
from tests.unit.sql.code import ROOT

pytestmark = pytest.mark.ui

SHOTS = ROOT / "docs" / "images"
BY_SESSION = ["/ui/timeline?by=session", "/ui/timeline?session=s-1"]
ZONE = "return Intl.DateTimeFormat().resolvedOptions().timeZone"
ADDRESSED = {"overview", "memory", "authorize"}  # pages with an address of their own
LISTED = ["/ui", *(f"/ui/{name}" for name in PAGES if name not in ADDRESSED), "/ui/login"]


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[House]:
    with house(Config(data=tmp_path / "data")) as running:
        yield running


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, House]]:
    """Three servers: an empty one, one with a diary, and one full of hostile texts."""
    folder = tmp_path_factory.mktemp("stores")
    with (
        house(Config(data=folder / "empty")) as empty,
        house(Config(data=folder / "full", ui_calls="texts", metrics=True)) as full,
        house(Config(data=folder / "hostile", ui_calls="texts", environment=GRAPH)) as hostile,
    ):
        fill(full)
        outdated(full)
        for text in HOSTILE:
            store_everywhere(hostile, text)
        yield {"empty": empty, "full": full, "hostile": hostile}


def at(server: House, path: str) -> str:
    return f"http://127.0.0.1:{server.port}{path}"


def check_quiet(browser: Browser, server: House) -> None:
    """Nothing was refused by the policy of the pages, and nothing was asked of another server."""
    wrong = [entry["message"] for entry in browser.logged("browser") if entry["level"] in {"SEVERE", "WARNING"}]
    assert wrong == []
    elsewhere = [url for url in browser.requested() if not url.startswith((at(server, "/"), "data:", "about:"))]
    assert elsewhere == []


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without scripts"])
def test_first_five_minutes(browser: Browser, empty: House, scripts: bool) -> None:
    browser.look(scripts=scripts)
    browser.open(at(empty, "/"))
    assert browser.address == at(empty, "/ui")
    browser.wait("main", "Nothing is stored yet")
    browser.click("main a[href='/ui/connect']")
    browser.wait("main", "quipu setup --client claude-code")
    browser.wait("main", "Waiting for the first call of a client.")
    empty.tool("list_memories", {})
    if not scripts:
        browser.open(at(empty, "/ui/connect"))
    browser.wait("main", "anonymous called list_memories")

    browser.open(at(empty, "/ui"))
    empty.tool("add_memory", {"path": "home/car", "content": "My automobile goes to the garage in May."})
    if not scripts:
        browser.open(at(empty, "/ui"))
    browser.wait("[data-live]", "paths/home/car")

    browser.write("#find", "vehicle maintenance")
    browser.click(".find button")
    browser.wait(".hits .tag", "likely")
    browser.click(".why summary")
    browser.wait(".why", "meaning")
    assert browser.texts(".hits .id") == ["paths/home/car"]

    browser.click(".hits a")
    browser.click("#edit summary")
    browser.write("#edited", "My automobile goes to the garage in June.")
    browser.click("#edit form button")
    browser.wait(".notice", "Saved.")
    browser.wait(".text", "My automobile goes to the garage in June.")
    browser.wait(".diff .removed", "garage in May")
    browser.wait(".diff .added", "garage in June")

    browser.click("#forget summary")
    browser.click("#forget form button")
    browser.wait("main", "This memory is not there any more")
    browser.open(at(empty, "/ui/audit"))
    browser.wait("tbody tr:first-child", "drop_memory")
    browser.click("tbody tr:first-child button")
    browser.wait(".text", "My automobile goes to the garage in June.")
    browser.look()
    check_quiet(browser, empty)


def test_keys_of_the_keyboard(browser: Browser, stores: dict[str, House]) -> None:
    full = stores["full"]
    browser.look()
    browser.open_painted(at(full, "/ui/timeline"))
    browser.press("gs")
    assert browser.address == at(full, "/ui/search")
    browser.press("jj")
    rows = browser.run("return [...document.querySelectorAll('[data-row]')].map((row) => row.className)")
    assert [row.endswith("here") for row in rows[:3]] == [False, True, False]
    browser.press("/")
    assert browser.run("return document.activeElement.id") == "find"
    browser.open_painted(at(full, "/ui/memory?id=paths/home/car"))
    browser.press("e")
    assert browser.run("return document.activeElement.id") == "edited"


def press_with_control(browser: Browser, key: str) -> None:
    kinds = [("keyDown", CONTROL), ("keyDown", key), ("keyUp", key), ("keyUp", CONTROL)]
    steps = [{"type": kind, "value": value} for kind, value in kinds]
    browser.act([{"type": "key", "id": "keys", "actions": steps}])


def test_palette_leads_to_pages_and_to_memories(browser: Browser, stores: dict[str, House]) -> None:
    full = stores["full"]
    browser.open_painted(at(full, "/ui/timeline"))
    press_with_control(browser, "k")
    browser.wait("#commands", "New memory")
    assert browser.violations() == []
    browser.press("audit" + ENTER)
    browser.wait("h1", "Audit")
    press_with_control(browser, "k")
    browser.press("vehicle maintenance")
    browser.wait("#commands", "My automobile goes to the garage")
    assert browser.texts("#commands [aria-selected=true]")[0].endswith("paths/home/car")
    browser.press(DOWN + DOWN * 20 + ENTER)
    browser.wait("h1", "Search")
    press_with_control(browser, "k")
    browser.press("garage")
    browser.wait("#commands", "paths/home/car")
    browser.press(ENTER)
    browser.wait("h1", "My automobile goes to the garage")
    check_quiet(browser, full)


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without scripts"])
def test_a_file_is_imported_and_taken_back(browser: Browser, empty: House, tmp_path: Path, scripts: bool) -> None:
    file = tmp_path / "memory.jsonl"
    file.write_text('{"type":"entity","name":"Zoe","entityType":"person","observations":["Zoe plays the cello."]}\n')
    browser.look(scripts=scripts)
    browser.open(at(empty, "/ui"))
    browser.click(".title a[href='/ui/import']")
    browser.choose("#file", file)
    browser.click("form[action='/ui/do/import'] button")
    browser.wait("main", "memory.jsonl is taken for server-memory")
    if scripts:
        assert browser.violations() == []
    browser.click("form[action='/ui/do/import-kept'] button")
    browser.wait(".notice", "Imported.")
    browser.open(at(empty, "/ui/search?q=cello"))
    browser.wait(".hits", "Zoe plays the cello.")
    browser.open(at(empty, "/ui/audit"))
    browser.click("tbody tr:first-child button")
    browser.wait(".notice", "Undone.")
    browser.open(at(empty, "/ui/search"))
    browser.wait("main", "Nothing is stored yet")
    browser.look()
    check_quiet(browser, empty)


def test_a_file_that_is_dropped_is_looked_into(browser: Browser, empty: House) -> None:
    browser.open(at(empty, "/ui/import"))
    browser.run("""
const data = new DataTransfer();
data.items.add(new File(['{"type":"entity","name":"Zoe","entityType":"person","observations":[]}'], "memory.jsonl"));
document.querySelector("[data-drop]").dispatchEvent(new DragEvent("drop", { dataTransfer: data, cancelable: true }));
""")
    browser.wait("main", "memory.jsonl is taken for server-memory")


def reach(browser: Browser, *, by_taps: bool = False) -> tuple[Callable[[str], None], ...]:
    """Return the ways to an element, to what it leads to, and to its tick: by Tab and keys, or by a finger."""
    if by_taps:
        return browser.tap, browser.tap, browser.tap

    def pressed(key: str) -> Callable[[str], None]:
        return lambda selector: (browser.tab_to(selector), browser.press(key))[1]

    return browser.tab_to, pressed(ENTER), pressed(" ")


@pytest.mark.parametrize(
    ("scripts", "width"),
    [(True, 1280), (False, 1280), (True, 390), (False, 390)],
    ids=["desk", "no scripts", "phone", "phone without scripts"],
)
def test_walk_with_the_keyboard_alone_or_by_taps(
    browser: Browser, empty: House, tmp_path: Path, scripts: bool, width: int
) -> None:
    """A desk has the keyboard alone, a phone taps, and keys for texts alone."""
    outdated(empty)
    fill(empty)
    file = tmp_path / "memory.jsonl"
    file.write_text('{"type":"entity","name":"Zoe","entityType":"person","observations":["Zoe plays the cello."]}\n')
    browser.look(scripts=scripts, width=width)
    to, enter, pick = reach(browser, by_taps=width == pictures.WIDTHS[1])
    browser.open(at(empty, "/ui"))
    to("#find")
    browser.press("when is the automobil in the garrage" + ENTER)
    browser.wait(".hits", "My automobile goes to the garage in May.")
    enter(".hits a")
    browser.wait("h1", "My automobile goes to the garage")
    enter("#edit summary")
    to("#edited")
    browser.press(" Really.")
    enter("#edit form button")
    browser.wait(".notice", "Saved.")
    enter("form:has(#from) button")
    browser.wait("form:has(#from) + .diff", "Really.")

    enter("nav a[href='/ui/search']")
    browser.wait("h1", "Search")
    for number in (1, 2, 3):
        pick(f".hits li:nth-child({number}) input")
    enter("button[formaction='/ui/do/forget-selected']")
    browser.wait("main", "Undo all 3")
    enter("form[action='/ui/do/undo-several'] button")
    browser.wait(".notice", "Undone.")

    enter("nav a[href='/ui/browse']")
    enter(".tree a[href='/ui/browse?space=paths']")
    enter(".tree a[href$='home%2F']")
    browser.wait(".calls", "paths/home/tea")

    enter("nav a[href='/ui/review']")
    browser.wait("h1", "Review")
    enter(".chip[href='/ui/review?project=web']")
    browser.wait(".chip[aria-current]", "web")
    for number in (1, 2):
        pick(f"input[form=stale][name=pick{number}]")
    enter("#stale button")
    browser.wait(".notice", "count as they are now")
    assert browser.texts(".card:has(input[form=stale]) .id") == ["paths/web/writer"]

    enter(".brand")
    browser.wait("h1", "Overview")
    enter(".title a[href='/ui/import']")
    browser.wait("h1", "Import")
    if width > pictures.WIDTHS[1]:  # a tap opens the choice of the system
        to("#file")
    browser.choose("#file", file)
    enter("form[action='/ui/do/import'] button")
    browser.wait("main", "memory.jsonl is taken for server-memory")
    enter("form[action='/ui/do/import-kept'] button")
    browser.wait(".notice", "Imported.")

    enter(".brand")
    browser.wait("h1", "Overview")
    browser.requested()
    enter("form[action='/ui/do/export'] button")
    browser.wait("h1", "Overview")  # a download leaves the page
    assert at(empty, "/ui/do/export") in browser.requested()

    enter("nav a[href='/ui/connect']")
    browser.wait("main", "quipu setup --client claude-code")
    enter(".card:nth-child(3) summary")
    browser.wait(".card:nth-child(3)", "quipu setup --client cursor")
    empty.tool("list_memories", {})
    if not scripts:
        browser.open(at(empty, "/ui/connect"))
    browser.wait("main", "called list_memories")
    enter("nav a[href='/ui/keys']")
    browser.wait("h1", "Keys")
    to("#name")
    browser.press("laptop")
    enter("form[action='/ui/do/create-key'] button")
    browser.wait("main", "From now on every client needs a key")
    browser.look()
    check_quiet(browser, empty)


@pytest.mark.parametrize(("scripts", "width"), [(True, 1280), (False, 390)], ids=["desk", "phone without scripts"])
def test_memories_are_ordered_moved_and_brought_back_with_the_keyboard(
    browser: Browser, empty: House, scripts: bool, width: int
) -> None:
    fill(empty)
    browser.look(scripts=scripts, width=width)
    to, enter, pick = reach(browser)

    browser.open(at(empty, "/ui/browse?space=paths&under=home/"))
    browser.wait("tbody tr:first-child", "paths/home/car")
    if width > pictures.WIDTHS[1]:  # cards have no columns
        enter("thead a")
        enter("thead a")
        browser.wait("[aria-sort=descending]", "Memory")
        browser.wait("tbody tr:first-child", "paths/home/car")
        assert browser.violations() == []
    for number in (1, 2):
        pick(f"tbody tr:nth-child({number}) input")
    enter("#several summary")
    to("#folder")
    browser.press("flat" + ENTER)
    browser.wait("main", "Undo all 2")
    browser.open(at(empty, "/ui/browse?space=paths&under=flat/"))
    browser.wait(".calls", "paths/flat/tea")
    browser.open(at(empty, "/ui/audit"))
    enter("tbody tr:first-child form button")
    browser.wait(".notice", "Undone.")
    browser.open(at(empty, "/ui/browse?space=paths&under=flat/"))
    assert len(browser.texts("tbody tr")) == 1
    browser.look()
    check_quiet(browser, empty)


def test_weaker_hits_are_behind_a_fold(browser: Browser, empty: House) -> None:
    for name, text in ANIMALS:
        empty.tool("add_memory", {"path": name, "content": text})
    browser.open(at(empty, "/ui/search?q=Where+does+the+walrus+live"))
    assert browser.texts(".hits .id") == ["paths/seal", "paths/walrus", ""]
    assert browser.violations() == []
    browser.tab_to(".folded summary")
    browser.press(ENTER)
    assert browser.texts(".folded .id") == ["paths/otter"]


def test_a_dismissed_banner_stays_away(browser: Browser, empty: House) -> None:
    browser.open(at(empty, "/ui"))
    browser.wait(".banner", "No key is needed here")
    browser.click(".banner button")
    browser.open(at(empty, "/ui/connect"))
    assert "No key is needed here" not in browser.text("main")
    browser.run("localStorage.clear()")


def test_calls_appear_as_they_are_made(browser: Browser, tmp_path: Path) -> None:
    with house(Config(data=tmp_path / "data", ui_calls="calls")) as server:
        browser.open(at(server, "/ui/calls"))
        server.tool("add_memory", {"path": "\u202eone", "content": "One"})
        server.tool("add_memory", {"path": "one", "content": "One"})
        browser.wait("#newest tbody tr:nth-child(2)", "add_memory")
        browser.wait("#counts tbody", "add_memory")
        browser.click("[data-pause]")
        browser.wait("[data-pause]", "Go on")
        server.tool("list_memories", {})
        browser.click("#newest tbody tr:first-child a")
        browser.wait("h2", "Request 2: add_memory")
        browser.wait("#newest tbody", "list_memories")
        check_quiet(browser, server)


def test_theme_and_keys_are_remembered(browser: Browser, stores: dict[str, House]) -> None:
    full = stores["full"]
    ground = "return getComputedStyle(document.documentElement).backgroundColor"
    browser.open(at(full, "/ui"))
    light = browser.run(ground)
    browser.run("const t = document.getElementById('theme'); t.value = 'dark'; t.dispatchEvent(new Event('change'))")
    dark = browser.run(ground)
    assert dark != light
    browser.open_painted(at(full, "/ui/audit"))
    assert browser.run(ground) == dark
    assert browser.violations() == []
    browser.press("?")
    assert browser.run("return document.getElementById('keys-help').open") is True
    browser.press("u")
    assert browser.run("return document.activeElement.textContent") == "Undo"
    browser.run("const k = document.getElementById('use-keys'); k.value = 'off'; k.dispatchEvent(new Event('change'))")
    browser.open_painted(at(full, "/ui/audit"))
    browser.press("u")
    assert browser.run("return document.activeElement.tagName") == "BODY"
    browser.run("localStorage.clear()")
    check_quiet(browser, full)


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
def test_the_first_key_keeps_its_maker_logged_in(browser: Browser, empty: House, scripts: bool) -> None:
    browser.look(scripts=scripts)
    browser.open(at(empty, "/ui/keys"))
    assert "No key is needed here" in browser.text("main")
    browser.write("#name", "laptop")
    browser.click("form[action='/ui/do/create-key'] button")
    browser.wait("main", "From now on every client needs a key")
    assert "No key is needed here" not in browser.text("main")
    if scripts:
        assert browser.violations() == []
    for page, words in (("keys", "laptop"), ("health", "Health"), ("", "Overview")):
        browser.open(at(empty, f"/ui/{page}".removesuffix("/")))
        assert words in browser.text("main")
        assert "No key is needed here" not in browser.text("main")


def test_session_of_a_key_begins_with_the_form_and_ends_with_its_revocation(browser: Browser, tmp_path: Path) -> None:
    with house(Config(data=tmp_path / "data")) as keyed:
        key = keyed.key("read")
        keyed.told()
        browser.open(at(keyed, "/ui/search"))
        assert browser.address == at(keyed, "/ui/login")
        assert browser.violations() == []
        browser.write("#key", "quipu_00000000_" + "A" * 43)
        browser.click(".login button")
        browser.wait(".login", "unknown")
        browser.write("#key", key)
        browser.click(".login button")
        browser.wait("h1", "Overview")
        assert browser.run("return document.cookie") in {"", "quipu_zone=" + browser.run(ZONE)}
        assert browser.texts("form[method=post] button") == ["Log out"]
        api_keys.revoke(keyed.data, api_keys.parse(key), utc_now())
        keyed.told()
        browser.open(at(keyed, "/ui"))
        assert browser.address == at(keyed, "/ui/login")
        browser.logged("browser")  # the wrong key was answered with 401


def test_code_in_the_address_logs_in_and_leaves_the_address(browser: Browser, tmp_path: Path) -> None:
    with house(Config(data=tmp_path / "data")) as keyed:
        key = keyed.key("read")
        keyed.told()
        origin = at(keyed, "")
        headers = {"origin": origin, "content-type": "application/x-www-form-urlencoded"}
        made = json.loads(keyed.ask("POST", "/ui/do/code", key, b"", headers).body)["code"]
        browser.look()
        browser.open("about:blank")
        browser.open(at(keyed, f"/ui/login#{made}"))
        browser.wait("h1", "Overview")
        assert browser.address == at(keyed, "/ui")
        assert browser.texts("form[method=post] button") == ["Log out"]
        assert [address for address in browser.requested() if made in address.partition("#")[0]] == []
        check_quiet(browser, keyed)
        browser.click("form[method=post] button")
        browser.open("about:blank")
        browser.open(at(keyed, f"/ui/login#{made}"))
        browser.wait(".login", "was used")
        assert browser.address == at(keyed, "/ui/do/login")
        assert browser.violations() == []
        browser.logged("browser")  # the used code was answered with 401


def memories(server: House) -> list[str]:
    """The addresses of up to two memories of each space."""
    spaces: dict[str, list[str]] = {}
    for id_ in sorted(memories_of(server)):
        spaces.setdefault(id_.partition("/")[0], []).append(id_)
    chosen = [id_ for several in spaces.values() for id_ in several[:2]]
    return [f"/ui/memory?{urlencode({'id': id_})}" for id_ in chosen]


def test_times_are_in_the_zone_of_the_browser_from_the_first_page_on(
    browser: Browser, stores: dict[str, House]
) -> None:
    browser.cdp("Emulation.setTimezoneOverride", timezoneId="Asia/Tokyo")
    for zone in ("GMT+9", "JST"):  # of the script, and of the server once the cookie has told it
        browser.open(at(stores["full"], "/ui/audit"))
        assert {text[-len(zone) :] for text in browser.texts("td time")} == {zone}
    browser.cdp("Emulation.setTimezoneOverride", timezoneId="")
    browser.cdp("Network.clearBrowserCookies")


def test_nothing_is_wrapped_cut_off_or_empty_over_500_memories(browser: Browser, tmp_path: Path) -> None:
    with house(Config(data=tmp_path / "data", ui_calls="texts", metrics=True)) as server:
        pictures.fill(server.port, server.data)
        wrong = {(page, look): problems for page, look, problems in pictures.looks(browser, at(server, ""))}
    assert {where: problems for where, problems in wrong.items() if problems} == {}


# Two looks of a kind show each page in both colours and at both widths; EVERY_LOOK=1 takes all four.
LOOKS = [
    (kind, dark, width)
    for number, kind in enumerate(("empty", "full", "hostile"))
    for dark in (False, True)
    for width in (1280, 320)
    if os.environ.get("EVERY_LOOK") or (number + dark + (width == 320)) % 2 == 0
]


@pytest.mark.parametrize(
    ("kind", "dark", "width"),
    LOOKS,
    ids=lambda value: {True: "dark", False: "light"}.get(value, str(value)),
)
def test_pages_are_accessible(browser: Browser, stores: dict[str, House], kind: str, dark: bool, width: int) -> None:
    server = stores[kind]
    browser.look(dark=dark, width=width)
    kept = json.loads(server.ask("GET", "/ui/calls.json").body)["calls"]
    calls = [f"/ui/calls?number={call['number']}" for call in kept[:1]]
    more = ["/ui/search?q=alert+tea&words=1", "/ui/browse?space=paths", *BY_SESSION, *calls, *memories(server)[::3]]
    wrong: dict[str, list[str]] = {}
    for path in [*LISTED, *(more if kind != "empty" else [])]:
        browser.open(at(server, path))
        found = browser.violations()
        wide = browser.run("return document.documentElement.scrollWidth - document.documentElement.clientWidth")
        if found or wide:
            wrong[path] = [*found, f"{wide} pixels too wide"]
    assert wrong == {}
    check_quiet(browser, server)


def test_hostile_texts_make_no_element(browser: Browser, stores: dict[str, House]) -> None:
    hostile = stores["hostile"]
    browser.look()
    for path in [*LISTED, "/ui/search?q=alert&quarantined=1", "/ui/timeline?before=500", *memories(hostile)]:
        browser.open(at(hostile, path))
        assert browser.title.endswith("· Quipu")
        assert (path, browser.run(FOREIGN_ELEMENTS)) == (path, [])
    check_quiet(browser, hostile)


def test_page_of_another_site_can_neither_send_forms_nor_frame(browser: Browser, empty: House, tmp_path: Path) -> None:
    empty.tool("add_memory", {"path": "kept", "content": "as it was"})
    version = json.loads(empty.ask("GET", "/ui/memory.json?id=paths/kept").body)["version"]
    page = tmp_path / "evil.html"
    page.write_text(
        f"<form method=post action='{at(empty, '/ui/do/forget')}'><input name=id value=paths/kept>"
        f"<input name=version value={version}><button>x</button></form><iframe src='{at(empty, '/ui')}'></iframe>"
    )
    browser.look()
    browser.open(page.as_uri())
    assert browser.run("try { return frames[0].document.title } catch { return 'closed' }") == "closed"
    browser.click("button")
    assert b"as it was" in empty.ask("GET", "/ui/memory.json?id=paths/kept").body
    browser.logged("browser")
    browser.requested()


@pytest.mark.parametrize(
    ("name", "path", "dark"),
    [
        ("overview", "/ui", False),
        ("search", "/ui/search?q=when+is+my+car+in+the+garrage", False),
        ("memory", "/ui/memory?id=paths/home/tea", True),
    ],
)
def test_pictures_of_the_documentation(
    browser: Browser, stores: dict[str, House], tmp_path: Path, name: str, path: str, dark: bool
) -> None:
    browser.look(dark=dark, width=1100)
    browser.open(at(stores["full"], path))
    if name == "memory":
        browser.run("document.getElementById('origin').scrollIntoView()")
    folder = SHOTS if os.environ.get("RECORD") else tmp_path
    folder.mkdir(exist_ok=True)
    browser.picture(folder / f"console-{name}.png")
    assert (folder / f"console-{name}.png").stat().st_size > 10_000
