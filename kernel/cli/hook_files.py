"""The hooks of clients: their form for each client, written into its file, shown, and taken out without a trace."""

import argparse
import difflib
import json
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

from kernel.calls.dispatch import catch_faults
from kernel.cli import client_entries, hook_client
from kernel.cli.client_entries import text_of
from kernel.cli.clients import BY_NAME, Client, ConfigPath, config_file, locate
from kernel.cli.config_files import parse, read_json, remove_json, set_json
from kernel.cli.output import note, show
from kernel.core.config import DEFAULT_PORT, Config
from kernel.core.data_dir import write_private
from kernel.core.errors import Fault
from kernel.core.lazy_regex import regex
from kernel.core.ordinary_files import read_bytes

_BACKUPS = 50  # copies of a file that are looked at
_KEY_FILE = "hook.key"

Level = Literal["none", "prime", "recall"]
LEVELS: tuple[Level, ...] = ("none", "prime", "recall")
Form = Literal["exec", "shell", "flat", "plugin"]
Entries = Mapping[str, Any]  # our entry for each event, under the client's name of the event

_SECONDS = 5  # before a client ends a hook, which ends itself long before
_OURS = regex(r"\bhook (session-start|first-prompt|post-compact|session-end) --client [a-z]+\b")
_HOOKS = "hooks"
MARK = "// Written by `quipu setup --hooks`; `quipu hook remove` deletes it.\n"
# It starts `quipu hook`, as other clients do: there the folder is read, and the server is known by its proof.
_PLUGIN = Path(__file__).with_name("opencode_plugin.js")


class HookClient(NamedTuple):
    """A client with hooks: its names in `setup` and in `quipu hook`, its file, and its events by level."""

    name: str
    short: str
    path: ConfigPath
    form: Form
    prime: Mapping[str, str]  # the client's name of an event -> ours
    recall: Mapping[str, str]
    fixed: Mapping[str, Any] = {}  # members that the file must have
    unit: int = 1  # of a timeout, in a second
    remark: str = ""

    @property
    def title(self) -> str:
        return BY_NAME[self.name].title

    def events(self, level: Level) -> Mapping[str, str]:
        return {} if level == "none" else self.prime if level == "prime" else {**self.prime, **self.recall}


HOOK_CLIENTS: tuple[HookClient, ...] = (
    HookClient(
        "claude-code",
        "claude",
        ConfigPath(".claude/settings.json", "CLAUDE_CONFIG_DIR"),
        "exec",
        {"SessionStart": "session-start", "PostCompact": "post-compact"},
        {"UserPromptSubmit": "first-prompt"},
    ),
    HookClient(
        "codex",
        "codex",
        ConfigPath(".codex/hooks.json", "CODEX_HOME"),
        "shell",
        {"SessionStart": "session-start"},
        {"UserPromptSubmit": "first-prompt"},
        remark="Codex asks once whether you trust the hook: see /hooks there.",
    ),
    HookClient(
        "cursor",
        "cursor",
        ConfigPath(".cursor/hooks.json"),
        "flat",
        {"sessionStart": "session-start"},
        {"beforeSubmitPrompt": "first-prompt"},
        {"version": 1},
    ),
    HookClient(
        "gemini-cli",
        "gemini",
        ConfigPath(".gemini/settings.json"),
        "shell",
        {"SessionStart": "session-start"},
        {"BeforeAgent": "first-prompt"},
        unit=1000,
    ),
    HookClient(
        "opencode",
        "opencode",
        ConfigPath(".config/opencode/plugins/quipu.js"),
        "plugin",
        {"session": "session-start"},
        {"chat.message": "first-prompt"},
    ),
)


def of_client(name: str) -> HookClient:
    for client in HOOK_CLIENTS:
        if name in (client.name, client.short):
            return client
    raise Fault("invalid", f"{name} has no hooks that Quipu knows: {', '.join(hooks.name for hooks in HOOK_CLIENTS)}")


def _clients(arguments: argparse.Namespace) -> Sequence[HookClient]:
    return [of_client(arguments.client)] if arguments.client else HOOK_CLIENTS


def apply(name: str, level: Level, arguments: argparse.Namespace, config: Config, platform: str = sys.platform) -> None:
    """Show the changes in the file of a client's hooks, and change it unless --print is given."""
    client = of_client(name)
    file = locate(client.path, config.environment, platform)
    before = text_of(file)
    options = _options(arguments, config, platform)
    words, env = client_entries.this_program(config)
    program = [*(["env", *(f"{key}={value}" for key, value in env.items())] if env else ()), *words]
    if client.form == "plugin":
        after = (
            plugin(client, level, program, options) if level != "none" else "" if before.startswith(MARK) else before
        )
        if before and not before.startswith(MARK):
            raise Fault("invalid", f"{file} was not changed: it is not a file of Quipu")
    else:
        new_entries = entries(client, level, program, options, platform)
        try:
            plain = before if own(before) == new_entries else _original(file, before, client)
            after = put(plain, client, new_entries)
        except Fault as fault:
            raise Fault(fault.code, f"{file} was not changed: {fault.message}") from None
    _change(client, file, before, after, arguments)


def remove(arguments: argparse.Namespace, config: Config, platform: str = sys.platform) -> int:
    """Take the hooks out of the files of all clients, or of a single client."""
    for client in _clients(arguments):
        _remove(client, arguments, config, platform)
    return 0


def remove_of(name: str, arguments: argparse.Namespace, config: Config, platform: str) -> None:
    for client in HOOK_CLIENTS:
        if client.name == name and installed(client, locate(client.path, config.environment, platform)):
            _remove(client, arguments, config, platform)


def _remove(client: HookClient, arguments: argparse.Namespace, config: Config, platform: str) -> None:
    file = locate(client.path, config.environment, platform)
    before = text_of(file)
    plain = before if client.form == "plugin" else _original(file, before, client)
    _change(client, file, before, "" if before.startswith(MARK) else plain, arguments)


def status(arguments: argparse.Namespace, config: Config, platform: str = sys.platform) -> None:
    for client in _clients(arguments):
        file = locate(client.path, config.environment, platform)
        events = installed(client, file)
        row = {"client": client.name, "file": str(file), "events": events}
        show(row, f"{client.name:15} {', '.join(events) or 'no hooks':40} {file}", as_json=arguments.json)


def installed(client: HookClient, file: Path) -> list[str]:
    """Return the events for which a client calls Quipu; none if its file cannot be read."""
    try:
        text = text_of(file)
        if client.form == "plugin":
            recall = [*client.recall.values()] if '"first-prompt"' in text else []
            return [*client.prime.values(), *recall] if text.startswith(MARK) else []
        return events_of(own(text))
    except Fault:
        return []


def _original(file: Path, text: str, client: HookClient) -> str:
    """Return the text without our entries: the copy of the file that becomes this text with them, if there is any."""
    ours = own(text)
    if not ours:
        return text
    plain = take(text)
    for copy in _earlier(file):
        with suppress(Fault):
            if not own(copy) and put(copy, client, ours) == text:
                return copy
    return plain


def _earlier(file: Path) -> Sequence[str]:
    """Return the texts of the copies that `setup` has made of a file, and an empty text if each had our entries."""
    copies = sorted(file.parent.glob(f"{file.name}.*.bak"), reverse=True)[:_BACKUPS]
    texts = [text for copy in copies if (text := _text_at(copy)) is not None]
    ours = [catch_faults(own, text) for text in texts]
    return texts if any(isinstance(entries, Fault) or not entries for entries in ours) else [*texts, ""]


def _text_at(file: Path) -> str | None:
    try:
        return read_bytes(file).decode(errors="replace")
    except OSError:
        return None


def _change(client: HookClient, file: Path, before: str, after: str, arguments: argparse.Namespace) -> None:
    lines = difflib.unified_diff(before.splitlines(True), after.splitlines(True), str(file), str(file), n=1)
    diff = "".join(line if line.endswith("\n") else f"{line}\n" for line in lines).removesuffix("\n")
    row = {"client": client.name, "file": str(file), "changed": before != after}
    show(row, diff or f"{client.title}: {file} is up to date", as_json=arguments.json)
    if before == after or getattr(arguments, "shown", False):
        return
    if after:
        client_entries.replace_content(file, before.encode(), after.encode())
    else:
        file.unlink()
    if after and client.remark:
        note(client.remark)


def _options(arguments: argparse.Namespace, config: Config, platform: str) -> Sequence[str]:
    """Return the options for address, file of the key and data directory, unless they are the defaults."""
    address = (arguments.url or config.public or f"http://127.0.0.1:{config.port}").removesuffix("/")
    url = address.partition("/mcp")[0]
    if not (url.startswith("https://") or client_entries.is_local(url)):
        raise Fault("invalid", f"{url}: hooks go to this machine or to an https address")
    words = [] if url == f"http://127.0.0.1:{DEFAULT_PORT}" else ["--url", url]
    if arguments.key:
        words += ["--key-file", str(_write_key(config, client_entries.checked_key(arguments.key)))]
    # A server of this machine proves by its data directory that it is the user's own.
    return words if url.startswith("https://") else [*words, *client_entries.data_option(config, platform)]


def _write_key(config: Config, key: str) -> Path:
    """Write a key into a file that only the user can read, since a command line is shown to everybody; return it."""
    file = (config.data / _KEY_FILE).absolute()
    if _text_at(file) != key:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_private(file, key.encode("ascii"))
    return file


def rekey_command(client: Client, config: Config, platform: str = sys.platform) -> str:
    """Return the command that adds a key to a client's entry for this server, which the first key locks out, and keeps
    its address and hooks; empty if there is no such entry.
    """
    try:
        file = config_file(client, config.environment, platform)
        entry = client_entries.find_entry(client, file, client_entries.NAME)
    except Fault:
        return ""
    url = client_entries.url_of(entry or {})
    if not (client_entries.is_local(url, config.port) or (config.public and url.startswith(f"{config.public}/"))):
        return ""
    hooks: list[str] = []
    for member in HOOK_CLIENTS:
        file = locate(member.path, config.environment, platform)
        if member.name == client.name and (events := installed(member, file)):
            hooks = ["--hooks", "recall" if {*member.recall.values()} & {*events} else "prime"]
    return shlex.join(["quipu", "setup", "--client", client.name, "--url", url, *hooks, "--key", "-"])


def entries(client: HookClient, level: Level, program: Sequence[str], options: Sequence[str], platform: str) -> Entries:
    """Return our entry for each event of a level; `program` starts Quipu, `options` follow the event."""
    return {
        name: _entry(client, [*program, "hook", event, "--client", client.short, *options], platform)
        for name, event in client.events(level).items()
    }


def plugin(client: HookClient, level: Level, program: Sequence[str], options: Sequence[str]) -> str:
    """Return the file for opencode, which has functions in the place of commands."""
    values = {
        "@PROGRAM@": [*program],
        "@OPTIONS@": [*options],
        "@EVENTS@": [*client.events(level).values()],
    }
    code = _PLUGIN.read_text(encoding="utf-8")
    for name, value in values.items():
        code = code.replace(name, json.dumps(value))
    return MARK + code


def own(text: str) -> Entries:
    """Return our entries in a file; raises Fault if it cannot be read."""
    return {
        event: our_items[0]
        for event, items in _hooks_in(text).items()
        if isinstance(items, list) and (our_items := [item for item in cast("list[Any]", items) if _is_ours(item)])
    }


def _hooks_in(text: str) -> dict[str, Any]:
    document = read_json(text)
    hooks: Any = cast("dict[str, Any]", document).get(_HOOKS) if isinstance(document, dict) else None
    return cast("dict[str, Any]", hooks) if isinstance(hooks, dict) else {}


def events_of(our_entries: Entries) -> list[str]:
    return [match[1] for entry in our_entries.values() if (match := _OURS.search(_command(entry)))]


def put(text: str, client: HookClient, new_entries: Entries) -> str:
    """Return the file with exactly these entries of ours; the rest stays. Raises Fault if it cannot be edited."""
    if own(text) == new_entries:
        return text
    text = take(text)
    if not new_entries:
        return text
    for key, value in client.fixed.items():
        if key not in (read_json(text) or {}):
            text = set_json(text, (key,), value)
    for event, entry in new_entries.items():
        items: Any = _hooks_in(text).get(event)
        count = len(cast("list[Any]", items)) if isinstance(items, list) else 0
        text = set_json(text, (_HOOKS, event, count), entry)
    return text


def take(text: str) -> str:
    """Return the file without our entries, and without the lists that held nothing else."""
    for event in own(text):
        hooks = _hooks_in(text)
        places = [at for at, item in enumerate(hooks[event]) if _is_ours(item)]
        if len(places) == len(hooks[event]):
            text = remove_json(text, (_HOOKS, event) if len(hooks) > 1 else (_HOOKS,))
        else:
            for at in reversed(places):
                text = remove_json(text, (_HOOKS, event, at))
    root = parse(text)
    empty = root is not None and root.value == {} and not text[root.start + 1 : root.end - 1].strip()
    return f"{text[: root.start]}{{}}{text[root.end :]}" if root and empty else text


def _entry(client: HookClient, words: Sequence[str], platform: str) -> Any:
    if client.form == "exec":
        handler = {"type": "command", "command": words[0], "args": list(words[1:]), "timeout": _SECONDS}
        return {_HOOKS: [handler]}
    line = subprocess.list2cmdline(words) if platform == "win32" else shlex.join(words)
    if client.form == "flat":
        return {"command": line, "timeout": _SECONDS}
    name_field = {"name": "quipu"} if client.short == "gemini" else {}
    return {_HOOKS: [{**name_field, "type": "command", "command": line, "timeout": _SECONDS * client.unit}]}


def _is_ours(item: Any) -> bool:
    return _OURS.search(_command(item)) is not None


def _command(item: Any) -> str:
    """Return the command line of an entry of any form that has a single handler."""
    if not isinstance(item, dict):
        return ""
    entry = cast("dict[str, Any]", item)
    inner: Any = entry.get(_HOOKS)
    if isinstance(inner, list):
        handlers = cast("list[Any]", inner)
        return _command(handlers[0]) if len(handlers) == 1 else ""
    args: Any = entry.get("args")
    words = [str(word) for word in cast("list[Any]", args)] if isinstance(args, list) else []
    return " ".join([str(entry.get("command", "")), *words])


assert {client.short for client in HOOK_CLIENTS} == set(hook_client.CLIENTS)
