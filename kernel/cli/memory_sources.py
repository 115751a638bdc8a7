"""Who answers the commands for memories: a server on this data directory, one by its URL, or the file itself."""

import argparse
import asyncio
import http.client
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from kernel.cli import client_entries, local_client
from kernel.core.config import Config
from kernel.core.data_dir import MAIN
from kernel.core.errors import Fault

if TYPE_CHECKING:
    from handlers.console.printing import Style

_SECONDS = 60
_MOST_BYTES = 1 << 28  # of an answer: the listener may be any program
_UNKNOWN = "Whether it was done is not known: look before you try again."
Send = Callable[[str, bytes, "Style"], tuple[int, bytes]]


class _Error(msgspec.Struct):
    message: str = ""


class _Failed(msgspec.Struct):
    error: _Error


class Shown(msgspec.Struct):
    """The parts of a memory that an edit needs."""

    id: str
    text: str
    version: str
    edit: bool


class Source(NamedTuple):
    """Answers commands by `send(command, body, style)`, which sends no request twice."""

    send: Send

    def ask(self, command: str, asked: dict[str, Any], style: "Style") -> str:
        """Return the output of a command; raises Fault."""
        status, body = self.send(command, msgspec.json.encode(asked), style)
        if status == http.HTTPStatus.OK:
            return body.decode("utf-8", "replace")
        try:
            message = msgspec.json.decode(body, type=_Failed).error.message
        except (msgspec.DecodeError, UnicodeDecodeError):
            message = f"The server answers {status}, and not as Quipu does."
        raise Fault("invalid", message)

    def shown(self, id_: str) -> Shown:
        """Return one memory as it is; raises Fault."""
        return msgspec.json.decode(self.ask("show", {"id": id_}, "json"), type=Shown)


def source_of(arguments: argparse.Namespace, config: Config) -> Source:
    """Return the one that --url names, else the database, the server of the data directory, or the file."""
    if arguments.url is not None:
        return Source(_at_url(arguments.url, arguments.key))
    if arguments.key:
        raise Fault("invalid", "--key is for --url: a server of this data directory needs none from here.")
    server = None if config.store else local_client.find(str(config.data))
    on_file = _on_file(config)

    def send(command: str, body: bytes, style: "Style") -> tuple[int, bytes]:
        if server is None:
            return on_file(command, body, style)
        try:
            answer = local_client.ask(server, command, body, style, config.tenant)
        except OSError as error:
            reason = "has not answered in time" if isinstance(error, TimeoutError) else "has hung up"
            raise Fault("busy", f"The server on port {server[1]} {reason}. {_UNKNOWN}") from None
        return on_file(command, body, style) if answer is None else answer

    return Source(send)


def _on_file(config: Config) -> Send:
    def send(command: str, body: bytes, style: "Style") -> tuple[int, bytes]:
        from handlers.console.commands import local_caller, run_command
        from handlers.console.printing import printed
        from kernel.operations.replica import is_replica
        from kernel.server import app

        caller = local_caller(config.data, config.tenant)
        if command != "add" or config.tenant != MAIN:
            app.require_database(config)
        kernel = app.open_kernel(config._replace(follow=is_replica(config.data)))
        try:
            result = asyncio.run(run_command(kernel.dispatch, caller, command, body))
        finally:
            kernel.store.close()
        return 200, printed(command, result, style).encode("utf-8", "replace")

    return send


def _at_url(url: str, key: str) -> Send:
    parts = client_entries.parse_url(url)
    bearer = client_entries.checked_key(sys.stdin.readline().strip() if key == "-" else key)
    opened = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    headers = {"content-type": "application/json", **({"authorization": f"Bearer {bearer}"} if bearer else {})}

    def send(command: str, body: bytes, style: "Style") -> tuple[int, bytes]:
        connection = opened(parts.hostname or "", parts.port, timeout=_SECONDS)
        try:
            connection.connect()
        except (OSError, ValueError) as error:  # the latter for a host that can be no name
            reason = getattr(error, "strerror", None) or error
            raise Fault("busy", f"No answer from {url}: {reason}.") from None
        try:
            connection.request("POST", f"{parts.path.rstrip('/')}/memories/{command}?as={style}", body, headers)
            answer = connection.getresponse()
            return answer.status, answer.read(_MOST_BYTES)
        except (OSError, ValueError, http.client.HTTPException) as error:
            raise Fault("busy", f"{url} has not answered: {error}. {_UNKNOWN}") from None
        finally:
            connection.close()

    return send
