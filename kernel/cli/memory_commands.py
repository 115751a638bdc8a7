"""The commands for memories. They ask the server of the data directory, or that at a URL, or work on the file.

The text of a memory is typed as an option, on standard input, or in an editor.
"""

import argparse
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec

from kernel.cli import local_client, output, witness
from kernel.core.config import Config
from kernel.core.errors import Fault
from kernel.core.text import count_of_memories

if TYPE_CHECKING:
    from handlers.console.printing import Style

_OK = 200
_UNAUTHORIZED = 401
_MOST_BYTES = 1 << 28  # of an answer: the listener may be any program
_MEDIA: "Mapping[Style, str]" = {"json": "application/x-ndjson", "text": "text/plain", "colour": "text/plain"}
_UNKNOWN = "Whether it was done is not known: look before you try again."
_EMPTY = "nothing is stored yet; `quipu add TEXT` adds a memory"
_UNREADABLE = "nothing is stored that this key may read"
_ELSEWHERE = "Exports, replicas and backups elsewhere are not checked: delete those that are older than this."
_STDIN = "-"
_PREFIX = "quipu-edit-"
# Status and body of the answer to a command with a body, a style and a mark; it sends no request twice.
Send = Callable[[str, bytes, "Style", str], tuple[int, bytes]]


class _Error(msgspec.Struct):
    message: str = ""


class _Failed(msgspec.Struct):
    error: _Error


class _Editable(msgspec.Struct):
    id: str
    text: str
    version: str
    edit: bool


def run(arguments: argparse.Namespace, config: Config) -> int:
    """Run a command for memories; return 1 if nothing was found."""
    request = _request(arguments)
    for name, value in request.items():
        for text in cast("list[object]", value) if isinstance(value, list) else [value]:
            if isinstance(text, str):
                _check_text(name, text)
    send = _sender(arguments, config)
    if arguments.command == "forget" and (arguments.id is None or arguments.about is not None):
        return _forget_about(arguments, send)
    style: Style = "colour" if output.has_colours(sys.stdout, config.environment) else "text"
    style = "json" if arguments.json else style
    if arguments.command == "add":
        request["text"] = _text_to_add(arguments.text, config)
    if arguments.command == "edit":
        output_text = _edit(send, request, style, config)
    else:
        output_text = _ask(send, arguments.command, request, style)
    print(output_text, end="")
    if not output_text:
        held = arguments.command == "recall" and _ask(send, "recall", {**request, "expired": True}, style)
        empty = _UNREADABLE if arguments.key else _EMPTY
        other = "nothing found" if _ask(send, "list", {"limit": 1}, style) else empty
        output.note("nothing that holds today; --expired shows what did" if held else other)
    return 0 if output_text else 1


def _forget_about(arguments: argparse.Namespace, send: Send) -> int:
    """Erase the memories about a text, after a question; return 1 if there are none, or if bytes of them are left."""
    from handlers.console.erasing import Erasable
    from handlers.console.printing import printed
    from kernel.operations.erase import Receipt

    if arguments.id is not None or arguments.about is None:
        raise Fault("invalid", "forget takes the id of a memory, or --about TEXT, and not both.")
    erasable = msgspec.json.decode(_ask(send, "erasable", {"about": arguments.about}, "json"), type=Erasable)
    if not erasable.memories:
        output.note("nothing found")
        return 1
    output.note(printed("erasable", erasable, "text").rstrip())
    rest = f" {erasable.others} other hits are less near, and stay." if erasable.others else ""
    these = count_of_memories(len(erasable.memories))
    output.note(f"To be erased for good, with all history: {these}. No undo brings anything back.{rest}")
    if not arguments.yes:
        output.confirm("Erase them?", "--about")
    ids = [memory.id for memory in erasable.memories]
    erasing = {"ids": ids, "immutable": arguments.immutable, "about": arguments.about}
    receipt = msgspec.json.decode(_ask(send, "erase", erasing, "json"), type=Receipt)
    output.show(receipt, printed("erase", receipt, "text").rstrip(), as_json=arguments.json)
    output.note(_ELSEWHERE)
    return 1 if receipt.left else 0


def _request(arguments: argparse.Namespace) -> dict[str, Any]:
    match arguments.command:
        case "recall":
            if not " ".join(arguments.query).strip():
                raise Fault("invalid", "query: is empty; `quipu list` shows the newest memories.")
            query, at = " ".join(arguments.query), output.moment("--as-of", arguments.as_of or "")
            asking = {"query": query, "limit": arguments.limit, "as_of": at, "expired": arguments.expired}
            return {**asking, **_filters(arguments)}
        case "list":
            return {"limit": arguments.limit, **_filters(arguments)}
        case "add":
            values = {"dialect": arguments.dialect, "name": arguments.name, "until": _end(arguments.until)}
            return {"text": arguments.text or "", **values}
        case "edit":
            return {"id": arguments.id, "text": arguments.text, "until": _end(arguments.until)}
        case "forget":
            return {"id": arguments.id, "immutable": arguments.immutable, "observation": arguments.observation}
        case "stats":
            return {}
        case _:
            return {"id": arguments.id}


def _end(until: str | None) -> str | None:
    return until if until is None else output.coming_moment("--until", until)


def _filters(arguments: argparse.Namespace) -> dict[str, Any]:
    return {
        "dialects": arguments.dialect,
        "actor": arguments.actor,
        "after": output.moment("--since", arguments.since or ""),
    }


def _check_text(name: str, text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Fault("invalid", f"{name}: these bytes are no text in UTF-8; nothing was written.") from None


def _ask(send: Send, command: str, request: dict[str, Any], style: "Style") -> str:
    mark = os.urandom(16).hex()
    status, body = send(command, msgspec.json.encode(request), style, mark)
    if status == _OK:
        output, news = witness.judged(body, mark, ".")
        tell(send, news)
        return local_client.in_local_time(output).decode("utf-8", "replace")
    try:
        message = msgspec.json.decode(body, type=_Failed).error.message
    except (msgspec.DecodeError, UnicodeDecodeError):
        message = f"The server answers {status}, and not as Quipu does."
    if status == _UNAUTHORIZED:
        message = f"{message.removesuffix('.')}. Give it by --key; --key - reads it from standard input."
    raise Fault("invalid", message)


def tell(send: Send, news: bytes) -> None:
    """Send the news of places that memories name, if there are any; the question is answered without them."""
    if news:
        with suppress(Fault):
            send("witness", news, "json", "")


def _edit(send: Send, request: dict[str, Any], style: "Style", config: Config) -> str:
    """Change a memory; if that is refused, a file keeps the new text."""
    memory = msgspec.json.decode(_ask(send, "show", {"id": request["id"]}, "json"), type=_Editable)
    if not memory.edit:
        raise Fault("invalid", f"No tool edits {memory.id}.")
    text: str | None = request["text"]
    until: str | None = request["until"]
    if text is None and until is None:
        text = _from_editor(memory.text, config)
    elif text == _STDIN:
        text = _from_stdin()
    try:
        return _ask(send, "edit", {"id": memory.id, "text": text, "version": memory.version, "until": until}, style)
    except Fault as fault:
        if text is None or not text.strip():
            raise
        raise Fault(fault.code, f"{fault.message.removesuffix('.')}. What you wrote is in {_new_file(text)}.") from None


def _sender(arguments: argparse.Namespace, config: Config) -> Send:
    if arguments.url is not None:
        return _at_url(arguments.url, arguments.key)
    if arguments.key:
        raise Fault("invalid", "--key is for --url: a server of this data directory needs none from here.")
    return sender_to_data(config)


def sender_to_data(config: Config) -> Send:
    server = None if config.store else local_client.find(str(config.data))
    on_file = _on_file(config)

    def send(command: str, body: bytes, style: "Style", mark: str) -> tuple[int, bytes]:
        if server is None:
            return on_file(command, body, style, mark)
        try:
            answer = local_client.ask(server, command, body, style, config.tenant, mark)
        except OSError as error:
            reason = "has not answered in time" if isinstance(error, TimeoutError) else "has hung up"
            raise Fault("busy", f"The server on port {server[1]} {reason}. {_UNKNOWN}") from None
        return on_file(command, body, style, mark) if answer is None else answer

    return send


def _on_file(config: Config) -> Send:
    def send(command: str, body: bytes, style: "Style", mark: str) -> tuple[int, bytes]:
        # Half a second, which a command beside a server does without.
        import asyncio

        from handlers.console.commands import local_caller, run_command
        from handlers.console.printing import printed
        from kernel.operations.replica import is_replica
        from kernel.server import app

        caller = local_caller(config.data, config.tenant)
        if command != "add":
            app.require_database(config)
        kernel = app.open_kernel(config._replace(follow=is_replica(config.data)))
        try:
            result = asyncio.run(run_command(kernel.dispatch, caller, command, body, mark, plain=style == "json"))
        finally:
            kernel.store.close()
        return _OK, printed(command, result, style, in_seconds=True).encode("utf-8", "replace")

    return send


def _at_url(url: str, key: str) -> Send:
    import http.client

    from kernel.cli import client_entries
    from kernel.cli.exchange import exchange

    parts = client_entries.parse_url(url)
    root = parts.path.partition("/mcp")[0].rstrip("/")  # the address of a client will do
    bearer = client_entries.typed_key(key)
    connect = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    headers = {"content-type": "application/json", **({"authorization": f"Bearer {bearer}"} if bearer else {})}

    def send(command: str, body: bytes, style: "Style", mark: str) -> tuple[int, bytes]:
        seconds, path = local_client.seconds_for(command), f"{root}{local_client.path(command, style, mark)}"
        connection = connect(parts.hostname or "", parts.port, timeout=seconds)
        try:
            connection.connect()
        except (OSError, ValueError) as error:  # the latter for a host that can be no name
            reason = getattr(error, "strerror", None) or error
            raise Fault("busy", f"No answer from {url}: {reason}.") from None
        try:
            answer = exchange(connection, "POST", path, body, headers, seconds=seconds, most=_MOST_BYTES)
        except TimeoutError:
            raise Fault("busy", f"{url} has not answered in time. {_UNKNOWN}") from None
        except (OSError, ValueError, http.client.HTTPException) as error:
            raise Fault("busy", f"{url} has not answered: {error}. {_UNKNOWN}") from None
        is_ours = "x-request-id" in answer.headers and (not answer.body or answer.media_type == _MEDIA[style])
        if answer.status == _OK and not is_ours:
            raise Fault("invalid", f"{url} answers, and not as Quipu does: another program listens there.")
        return answer.status, answer.body

    return send


def _text_to_add(argument: str | None, config: Config) -> str:
    if argument is not None and argument != _STDIN:
        text = argument
    else:
        text = _from_editor("", config) if argument is None and sys.stdin.isatty() else _from_stdin()
    if not text.strip():
        raise Fault("invalid", "text: is empty; nothing was written.")
    return text


def _from_stdin() -> str:
    try:
        return sys.stdin.buffer.read().decode()
    except UnicodeDecodeError as error:
        raise Fault("invalid", f"text: byte {error.start} is no text in UTF-8; nothing was written.") from None


def _from_editor(before: str, config: Config) -> str:
    """Return a text as a person has edited it, without the line end that editors add at the end of a file."""
    import shlex  # most commands need no editor
    import subprocess

    environment, is_windows = config.environment, sys.platform == "win32"
    chosen = environment.get("VISUAL", "").strip() or environment.get("EDITOR", "").strip()
    if not chosen and not sys.stdin.isatty():
        raise Fault("invalid", "There is no terminal for an editor: --text TEXT gives the text, - standard input.")
    command = chosen or ("notepad" if is_windows else "vi")
    try:
        words = shlex.split(command, posix=not is_windows)  # on Windows a backslash is part of a path
    except ValueError as error:
        raise Fault("invalid", f"Cannot run the editor {command}: {error}; EDITOR names another.") from None
    file = _new_file(before)
    try:
        status = subprocess.run([*words, str(file)], check=False).returncode  # noqa: S603  # chosen by the user
    except OSError as error:
        file.unlink()
        raise Fault("invalid", f"Cannot run the editor {command}: {error.strerror}; EDITOR names another.") from None
    if status:
        raise Fault("invalid", f"The editor has ended with status {status}; nothing was written. See {file}.")
    try:
        text = file.read_bytes().decode()
    except UnicodeDecodeError as error:
        raise Fault("invalid", f"{file}: byte {error.start} is no text in UTF-8; nothing was written.") from None
    file.unlink()
    return text if before.endswith("\n") else text.removesuffix("\n").removesuffix("\r")


def _new_file(text: str) -> Path:
    import tempfile

    descriptor, name = tempfile.mkstemp(prefix=_PREFIX, suffix=".md")
    with os.fdopen(descriptor, "wb") as file:
        file.write(text.encode())
    return Path(name)
