// Nothing depends on this script: it adds keys, buttons that copy, and changes that appear by themselves.
"use strict";
const rows = [...document.querySelectorAll("[data-row]")];
let at = -1;
// As the server does: what is invisible or reorders a line is shown by its number.
const visible = (text) => text.replace(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, (one) => `⟨U+${one.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`);

for (const button of document.querySelectorAll("[data-copy]")) {
  if (!navigator.clipboard) break;
  button.hidden = false;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(button.dataset.copy);
    const label = button.textContent;
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = label; }, 1500);
  });
}

// Times are in the zone of the browser, which the server learns from a cookie for the next page.
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
const local = (at, clock = {}) => new Intl.DateTimeFormat("en-GB", { weekday: "short", day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", timeZoneName: "short", ...clock }).format(new Date(at)).replaceAll(",", "");
if (zone && document.documentElement.dataset.zone !== zone) {
  document.cookie = `quipu_zone=${zone}; path=/ui; max-age=31536000; samesite=strict`;
  for (const time of document.querySelectorAll("time[datetime]")) {
    const year = new Date(time.dateTime).getFullYear();
    time.textContent = local(time.dateTime, year === new Date().getFullYear() ? {} : { year: "numeric" });
  }
}

function go(step) {
  if (!rows.length) return;
  rows[at]?.classList.remove("here");
  at = Math.min(rows.length - 1, Math.max(0, at + step));
  rows[at].classList.add("here");
  rows[at].scrollIntoView({ block: "nearest" });
  rows[at].querySelector("a")?.focus({ preventScroll: true });
}

// The theme and the keys of the keyboard are remembered by the browser alone.
const root = document.documentElement;
const kept = (name) => { try { return localStorage.getItem(name) ?? ""; } catch { return ""; } };
const keep = (name, value) => { try { localStorage.setItem(name, value); } catch { /* it is not remembered */ } };
if (kept("theme")) root.dataset.theme = kept("theme");
const choice = (text, id, options, value, act) => {
  const label = document.createElement("label"), field = document.createElement("select");
  label.htmlFor = field.id = id;
  label.textContent = text + " ";
  for (const [name, shown] of options) field.append(new Option(shown, name, false, name === value));
  field.addEventListener("change", () => act(field.value));
  document.querySelector("[data-theme-choice]")?.append(label, field, " ");
};
choice("Theme", "theme", [["", "system"], ["light", "light"], ["dark", "dark"]], kept("theme"), (value) => { keep("theme", value); root.dataset.theme = value; });
choice("Shortcuts", "use-keys", [["", "on"], ["off", "off"]], kept("keys"), (value) => keep("keys", value));

const pages = { n: "/ui/new", b: "/ui/browse", o: "/ui", s: "/ui/search", t: "/ui/timeline", l: "/ui/calls", a: "/ui/audit", r: "/ui/review", c: "/ui/connect" };
let going = false;
document.addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k" && palette) { event.preventDefault(); openPalette(); return; }
  const typing = event.target.closest("input, textarea, select");
  if (event.ctrlKey || event.metaKey || event.altKey || typing || kept("keys") === "off") {
    if (typing && event.key === "Escape") event.target.blur();
    return;
  }
  if (going && pages[event.key]) { location.assign(pages[event.key]); return; }
  going = event.key === "g";
  if (event.key === "/") { event.preventDefault(); document.getElementById("find")?.focus(); }
  if (event.key === "j") go(1);
  if (event.key === "k") go(-1);
  if (event.key === "e") {
    const edit = document.getElementById("edit");
    if (edit) { event.preventDefault(); edit.open = true; document.getElementById("edited").focus(); }
  }
  if (event.key === "u") document.querySelector("form[action='/ui/do/undo'] button")?.focus();
  if (event.key === "Escape") history.back();
  if (event.key === "?") {
    const help = document.getElementById("keys-help");
    if (help) { help.open = true; help.scrollIntoView(); help.querySelector("summary").focus(); }
  }
  if (event.key === "y") document.querySelector("[data-copy]:not([hidden])")?.click();
});

// The palette: pages, the buttons of this page, and the memories that a search finds.
const palette = document.getElementById("palette");
const command = document.getElementById("command"), options = document.getElementById("commands");
let asked = 0, chosen = 0;
const fixed = () => [
  ...[...document.querySelectorAll("nav[aria-label='Pages'] a")].map((link) => [link.textContent, "page", () => location.assign(link.href)]),
  ...[...document.querySelectorAll("main a.button, main .title button, .actions summary")].map((one) => [one.textContent.trim(), "here", () => one.click()]),
  ...(document.querySelector("main") ? [["New memory", "page", () => location.assign("/ui/new")], ["Import", "page", () => location.assign("/ui/import")]] : []),
];
function choose(step) {
  const all = [...options.children];
  chosen = Math.max(0, Math.min(all.length - 1, chosen + step));
  all.forEach((one, at) => one.setAttribute("aria-selected", String(at === chosen)));
  command.setAttribute("aria-activedescendant", all[chosen]?.id ?? "");
  all[chosen]?.scrollIntoView({ block: "nearest" });
}
function list(entries) {
  const seen = new Set();
  options.replaceChildren(...entries.filter(([name]) => !seen.has(name) && seen.add(name)).map(([name, kind, act], at) => {
    const one = document.createElement("li"), small = document.createElement("span");
    one.id = `command-${at}`;
    one.role = "option";
    one.dir = "auto";
    small.textContent = ` ${kind}`;
    one.append(visible(name), small);
    one.addEventListener("click", () => { palette.close(); act(); });
    return one;
  }));
  chosen = 0;
  choose(0);
}
async function suggest() {
  const words = command.value.trim(), number = ++asked, low = words.toLowerCase();
  const search = [`Search for ${words}`, "search", () => location.assign("/ui/search?" + new URLSearchParams({ q: words }))];
  const matching = fixed().filter(([name]) => name.toLowerCase().includes(low));
  list(words ? [...matching, search] : matching);
  if (words.length < 3) return;
  await new Promise((done) => setTimeout(done, 200));
  if (number !== asked) return;
  const answer = await fetch("/ui/search.json?" + new URLSearchParams({ q: words })).catch(() => null);
  if (!answer?.ok || number !== asked) return;
  const found = (await answer.json()).memories.map((hit) => [hit.text.slice(0, 90).replace(/\s+/g, " "), hit.id, () => location.assign("/ui/memory?" + new URLSearchParams({ id: hit.id }))]);
  list([...matching, ...found, search]);
}
function openPalette() {
  if (palette.open) return;
  command.value = "";
  palette.showModal();
  suggest();
}
if (palette) {
  command.addEventListener("input", suggest);
  command.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") { event.preventDefault(); choose(event.key === "ArrowDown" ? 1 : -1); }
    if (event.key === "Enter") { event.preventDefault(); options.children[chosen]?.click(); }
  });
  palette.addEventListener("click", (event) => { if (event.target === palette) palette.close(); });
}

// A dropped file is looked into at once.
for (const drop of document.querySelectorAll("[data-drop]")) {
  const file = drop.querySelector("input");
  drop.addEventListener("dragover", (event) => { event.preventDefault(); drop.classList.add("over"); });
  drop.addEventListener("dragleave", () => drop.classList.remove("over"));
  drop.addEventListener("drop", (event) => { event.preventDefault(); file.files = event.dataTransfer.files; file.form.requestSubmit(); });
}

// A banner that was dismissed stays away from this browser.
for (const banner of document.querySelectorAll("[data-dismiss]")) {
  const name = `dismissed ${banner.dataset.dismiss}`, button = banner.querySelector("button");
  banner.hidden = kept(name) !== "";
  button.hidden = false;
  button.addEventListener("click", () => { keep(name, "yes"); banner.hidden = true; });
}

// The address that `quipu ui` opens has a code, which goes to the server in a form.
const byCode = document.getElementById("by-code");
if (byCode && location.hash) {
  byCode.elements.code.value = location.hash.slice(1);
  history.replaceState(null, "", location.pathname);
  byCode.submit();
}

// The list of changes of the overview follows the server while the page is looked at.
const live = document.querySelector("[data-live]");
if (live) {
  let last = Number(live.dataset.last);
  const ask = async () => {
    const answer = document.hidden ? null : await fetch("/ui.json").catch(() => null);
    const newest = answer?.ok ? (await answer.json()).changes[0]?.number : last;
    if (newest === last || newest === undefined) return;
    const asked = new XMLHttpRequest(), status = document.createElement("p");
    status.className = "dim";
    status.role = "status";
    asked.addEventListener("load", () => {
      live.replaceChildren(...(asked.response?.querySelector("[data-live]")?.childNodes ?? []), status);
      status.textContent = `New changes appear here. The last call is ${last = newest}.`;
    });
    asked.responseType = "document"; // parsed without a script, as trusted types want it
    asked.open("GET", "/ui");
    asked.send();
  };
  setInterval(ask, 3000);
}

// The page of calls is drawn anew by each event of the server; Connect waits for the first.
const calls = document.querySelector("[data-calls]");
if (calls) {
  const row = (cells) => {
    const made = document.createElement("tr");
    for (const [text, kind, unit] of cells) {
      const cell = document.createElement("td");
      if (kind === "link") {
        const link = document.createElement("a");
        link.href = "/ui/calls?" + new URLSearchParams({ number: text });
        link.textContent = text;
        cell.append(link);
      } else {
        cell.textContent = visible(String(text));
        if (kind) { cell.className = kind; cell.dataset.unit = unit; }
      }
      made.append(cell);
    }
    return made;
  };
  const fill = (id, rows) => {
    const head = document.querySelector(`#${id} [aria-sort]`), value = (row) => row.cells[head.cellIndex].textContent;
    const sign = head?.ariaSort === "descending" ? -1 : 1;
    if (head) rows.sort((row, other) => sign * value(row).localeCompare(value(other), "en", { numeric: true }));
    document.querySelector(`#${id} tbody`)?.replaceChildren(...rows);
  };
  let paused = false;
  const button = calls.querySelector("[data-pause]");
  if (button) {
    button.hidden = false;
    button.addEventListener("click", () => { paused = !paused; button.textContent = paused ? "Go on" : "Pause"; });
  }
  const n = "number";
  new EventSource(calls.dataset.calls).addEventListener("message", (event) => {
    if (paused) return;
    const model = JSON.parse(event.data);
    fill("newest", model.calls.map((c) => row([[c.number, "link"], [local(c.at, { second: "2-digit" })], [c.tool], [`${c.client} ${c.agent}`], [c.outcome], [c.milliseconds.toFixed(1), n, "ms"], [c.bytes_in, n, "bytes in"], [c.bytes_out, n, "out"]])));
    fill("counts", model.counts.map((c) => row([[c.client], [c.tool], [c.calls, n, "calls"], [c.failed, n, "failed"], [(c.milliseconds / c.calls).toFixed(1), n, "ms each"], [local(c.last, { second: "2-digit" })]])));
    const last = model.counts.find((c) => !c.client.endsWith("console"));
    const waiting = document.querySelector("[data-waiting]");
    if (waiting && last) waiting.textContent = visible(`${last.client} called ${last.tool} at ${local(last.last)}.`);
  });
}
