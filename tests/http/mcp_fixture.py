"""Two small dialects that use every feature of MCP, a store for them, and applications that serve them."""

import argparse
import asyncio
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec
import uvicorn

from kernel.calls.dialect import Dialect, Offers
from kernel.calls.dispatch import Dispatch, catch_faults
from kernel.calls.tenants import Bounds, OpenTenant, Tenants
from kernel.calls.tools import (
    Hints,
    InputRequired,
    Interaction,
    Prompt,
    PromptArgument,
    PromptMessage,
    Reply,
    Resource,
    ResourceContents,
    Resources,
    ResourceTemplate,
    Tool,
    exclusive,
    read,
    write,
)
from kernel.core.config import Config
from kernel.core.errors import Code, Fault
from kernel.core.limits import Limits
from kernel.engines.migrations import migrate
from kernel.engines.sqlite.connection import Connection
from kernel.engines.sqlite.database import SqliteDatabase
from kernel.http.edge import AccessControl
from kernel.http.fast_path import protocol
from kernel.http.mcp import Endpoint
from kernel.mcp.server import EVERYTHING, Profile, Service, profiles
from kernel.mcp.stdio import serve
from kernel.operations.shared_store import in_database, open_shared_store
from kernel.security.auth import Auth, Challenge
from kernel.security.permissions import FULL_ACCESS, Grant
from kernel.store import statements
from kernel.store.context import StoreContext
from kernel.store.engine import Database
from kernel.store.store import Store
from tests.postgres.stores import placed

KEY = b"the key of the fixture"
LIMITS = Limits(body=300_000)
SHORT = Hints(title="Echo", short=True)
STARTED = threading.Event()
RELEASED = threading.Event()
MARKS: list[str] = []


class Words(msgspec.Struct):
    text: str


class Nothing(msgspec.Struct):
    pass


class Failing(msgspec.Struct):
    code: Code = "invalid"


class Amount(msgspec.Struct, forbid_unknown_fields=True):
    region: Annotated[str, msgspec.Meta(extra_json_schema={"x-mcp-header": "Region"})] = ""
    count: Annotated[int | None, msgspec.Meta(extra_json_schema={"x-mcp-header": "Count", "type": "integer"})] = None
    strict: Annotated[bool | None, msgspec.Meta(extra_json_schema={"x-mcp-header": "Strict", "type": "boolean"})] = None


class EchoResult(msgspec.Struct):
    text: str


class Kept(msgspec.Struct):
    by: str


def echo(tx: Any, request: Words) -> EchoResult:
    """Says it back."""
    return EchoResult(request.text)


def keep(tx: Any, request: Words) -> Kept:
    """Says who wrote."""
    return Kept(tx.call_context.actor)


def count(tx: Any, request: Nothing) -> int:
    """Answers with a number, which is no object."""
    return 3


def show(tx: Any, request: Nothing) -> list[dict[str, Any]]:
    """Answers with ready content blocks."""
    return [{"type": "text", "text": "shown"}, {"type": "image", "data": "AAAA", "mimeType": "image/png"}]


def fail(tx: Any, request: Failing) -> EchoResult:
    """Fails as asked."""
    raise Fault(request.code, f"It is {request.code}.")


def crash(tx: Any, request: Nothing) -> EchoResult:
    """Has a bug."""
    raise RuntimeError("a secret")


def region(tx: Any, request: Amount) -> EchoResult:
    """Takes arguments that headers repeat."""
    return EchoResult(f"{request.region} {request.count} {request.strict}")


def hold(tx: Any, request: Nothing) -> EchoResult:
    """Holds the writer until it is released."""
    STARTED.set()
    RELEASED.wait(10)
    return EchoResult("released")


def mark(tx: Any, request: Words) -> EchoResult:
    """Leaves a mark once the writer comes to it."""
    MARKS.append(request.text)
    return EchoResult(request.text)


def speak(tx: Any, request: Nothing, turn: Interaction) -> EchoResult:
    """Reports, then waits until it is released."""
    turn.progress(1, None, None)
    RELEASED.wait(10)
    turn.progress(2, None, None)
    return EchoResult("released")


def shout(tx: Any, request: Nothing) -> EchoResult:
    """Prints, as libraries do, and asks the system to print."""
    print("aside", flush=True)
    subprocess.run(["/bin/sh", "-c", "cat; echo apart"], check=True)
    return EchoResult("done")


def report(tx: Any, request: Words, turn: Interaction) -> EchoResult:
    """Reports three steps, the last backwards, and logs at two levels."""
    turn.progress(1, 3, "one")
    turn.progress(0, 3, "back")
    turn.progress(float("nan"), None, None)
    turn.log("debug", {"detail": request.text})
    turn.progress(2, None, None)
    turn.log("error", request.text)
    return EchoResult(request.text)


def silent(tx: Any, request: Words, turn: Interaction) -> EchoResult:
    """Could speak and does not."""
    return EchoResult(request.text)


def ask(tx: Any, request: Words, turn: Interaction) -> EchoResult | InputRequired:
    """Asks for a name twice, then greets."""
    names = [*(turn.state or []), *(answer["content"]["name"] for answer in turn.answers.values())]
    if len(names) == 2:
        return EchoResult(f"{request.text} {names[0]} and {names[1]}")
    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    params = {"message": "Who?", "mode": "form", "requestedSchema": schema}
    return InputRequired({f"name-{len(names)}": {"method": "elicitation/create", "params": params}}, names)


def demand(tx: Any, request: Nothing, turn: Interaction) -> EchoResult | InputRequired:
    """Wants a model, the roots and a page that the user opens."""
    sampling = {"messages": [{"role": "user", "content": {"type": "text", "text": "Hi"}}], "maxTokens": 1}
    page = {"message": "Open", "mode": "url", "url": "https://example.invalid/"}
    return InputRequired(
        {
            "model": {"method": "sampling/createMessage", "params": sampling},
            "roots": {"method": "roots/list"},
            "page": {"method": "elicitation/create", "params": page},
        }
    )


def ramble(tx: Any, request: Nothing, turn: Interaction) -> EchoResult | InputRequired:
    """Asks with a state that is not JSON."""
    return InputRequired({}, object())


def greeting(tx: Any, arguments: Mapping[str, str]) -> list[PromptMessage]:
    return [PromptMessage("user", {"type": "text", "text": f"Greet {arguments['name']}"})]


def dialogue(tx: Any, arguments: Mapping[str, str], turn: Interaction) -> list[PromptMessage] | InputRequired:
    if not turn.answers:
        schema = {"type": "object", "properties": {"name": {"type": "string"}}}
        params = {"message": "Who?", "mode": "form", "requestedSchema": schema}
        return InputRequired({"name": {"method": "elicitation/create", "params": params}}, "asked")
    name = turn.answers["name"]["content"]["name"]
    return [PromptMessage("assistant", {"type": "text", "text": f"{turn.state} {name}"})]


def garbled(tx: Any, arguments: Mapping[str, str]) -> Any:
    return [PromptMessage("user", {"type": "text", "text": object()})]


def page(tx: Any, cursor: str | None) -> tuple[list[Resource], str | None]:
    if cursor is None:
        return [Resource("first://a", "a", "A", "The first", "text/plain", 1, "2026-01-02T03:04:05Z")], "more"
    if cursor != "more":
        raise Fault("invalid", "Unknown cursor")
    return [Resource("first://b", "b", media="application/octet-stream")], None


def contents(tx: Any, uri: str) -> list[ResourceContents] | None:
    if uri == "first://broken":
        raise RuntimeError("a secret")
    known = {
        "first://a": ResourceContents("first://a", "text/plain", "A"),
        "first://b": ResourceContents("first://b", "x/y", b"\0B"),
    }
    return [known[uri]] if uri in known else None


def other_page(tx: Any, cursor: str | None) -> tuple[list[Resource], str | None]:
    return ([], "again") if cursor is None else ([Resource("first://second/c", "c")], None)


def other_contents(tx: Any, uri: str) -> list[ResourceContents] | None:
    return [ResourceContents(uri, "text/plain", "C")]


def complete(tx: Any, ref: str, argument: str, value: str, known: Mapping[str, str]) -> list[str]:
    return [f"{ref} {argument} {value}{number} {len(known)}" for number in range(150)]


def say(tool: Tool, result: Any) -> Reply:
    if tool.name == "show":
        return Reply(b"shown", "text/plain", content=msgspec.json.encode(result))
    text = result.text if isinstance(result, EchoResult) else f'"{result}"'
    return Reply(text.encode(), "text/plain", structured=msgspec.json.encode(result))


def apologise(fault: Fault) -> Reply:
    return Reply(f"Sorry: {fault.message}".encode(), "text/plain", fault.code, structured=b'{"never":"shown"}')


FIRST = Dialect(
    "first",
    "The first of two.",
    (
        read(echo, SHORT),
        write(keep, Hints(destructive=True)),
        read(count, SHORT),
        read(show),
        exclusive(fail, Hints(idempotent=True)),
        read(crash, SHORT),
        read(region, SHORT),
        write(hold),
        write(mark),
        read(speak, interactive=True),
        read(shout),
        read(report, interactive=True),
        read(silent, interactive=True),
        read(ask, interactive=True),
        read(demand, interactive=True),
        read(ramble, interactive=True),
    ),
    say,
    apologise,
    offers=Offers(
        Resources("first://", page, contents, (ResourceTemplate("first://{name}", "any", "Any", "Any of them"),)),
        (
            Prompt(
                "greeting",
                "Greets a person.",
                greeting,
                (PromptArgument("name", "Whom", True), PromptArgument("tone")),
                "Greeting",
            ),
            Prompt("dialogue", "Asks first.", dialogue, interactive=True),
            Prompt("garbled", "Answers with what is not JSON.", garbled),
        ),
        complete,
    ),
)


def whisper(tx: Any, request: Words) -> EchoResult:
    """Says it back, in the second dialect."""
    return EchoResult(request.text)


SECOND = Dialect(
    "second",
    "The second of two.",
    (read(whisper, SHORT),),
    say,
    apologise,
    offers=Offers(Resources("first://second/", other_page, other_contents)),
)
PLAIN = Dialect("plain", "", (read(whisper, SHORT),), say, apologise)


class Served(NamedTuple):
    """A server on the loopback interface, and the parts behind it."""

    port: int
    dispatch: Dispatch

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"


def _database(config: Config, world: StoreContext) -> Database:
    if config.store:
        return open_shared_store(config, world)[0]
    db = Connection(config.file, world, readonly=False)
    migrate(db)
    db.close()
    return SqliteDatabase(config.file, world)


@contextmanager
def opened(folder: Path, *dialects: Dialect) -> Iterator[Dispatch]:
    """A dispatch over a fresh store."""
    config = placed(Config(folder, model=None))
    world = in_database(config, StoreContext({key: statement.text for key, statement in statements.load().items()}))
    store = Store(_database(config, world), catch_faults)
    store.start()
    try:
        yield Dispatch(store, dialects)
    finally:
        store.close()


def service(dispatch: Dispatch, profile: Profile = EVERYTHING, reach: Grant = FULL_ACCESS) -> Service:
    return Service(dispatch.tools, dispatch.dialects, profile=profile, seal_key=KEY, grant=reach)


def unlocked(dispatch: Dispatch) -> AccessControl:
    """Doors that let everybody in, to one store."""
    nowhere = Path("/nonexistent")

    def opens(name: str) -> OpenTenant:
        raise AssertionError(name)

    return AccessControl(Auth(nowhere), Challenge(), Tenants(dispatch, opens, Bounds(1)))


@contextmanager
def served(folder: Path) -> Iterator[Served]:
    """Serve both dialects on /mcp and the plain dialect on /mcp/plain, by uvicorn in a thread."""
    with opened(folder, FIRST, SECOND) as dispatch, opened(folder, PLAIN) as plain:
        both = Endpoint(profiles(cache(partial(service, dispatch))), LIMITS, unlocked(dispatch))
        alone = Endpoint(profiles(cache(partial(service, plain))), LIMITS, unlocked(plain))

        async def app(scope: Any, receive: Any, send: Any) -> None:
            await (alone if scope["path"] == "/mcp/plain" else both)(scope, receive, send)

        config = uvicorn.Config(
            app,
            port=0,
            lifespan="off",
            ws="none",
            log_level="warning",
            interface="asgi3",
            http=protocol({b"/mcp": both.direct, b"/mcp/plain": alone.direct}),
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=asyncio.run, args=(server.serve(),))
        thread.start()
        while not server.started:
            thread.join(0.01)
        yield Served(server.servers[0].sockets[0].getsockname()[1], dispatch)
        server.should_exit = True
        thread.join()


def main() -> None:
    """Serves both dialects over standard input and output."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    with opened(parser.parse_args().folder, FIRST, SECOND) as dispatch:
        serve(service(dispatch), dispatch, limits=LIMITS)
        print("after the end", flush=True)


if __name__ == "__main__":
    main()
