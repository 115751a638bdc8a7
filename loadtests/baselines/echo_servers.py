"""Small servers to compare with: bare ASGI, Quipu with an echo tool, the official SDK.

All of them run on the same uvicorn with the same settings: uvloop, httptools, no logs, the garbage collector tamed.
"""

import argparse
import gc
import signal
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec
import uvicorn

Scope = Mapping[str, Any]
Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
TOOL = "echo"


class Text(msgspec.Struct):
    """What goes into the echo tool, and what comes out."""

    text: str


class _Params(msgspec.Struct):
    name: str
    arguments: Text


class _Call(msgspec.Struct):
    jsonrpc: Literal["2.0"]
    id: int
    method: str
    params: _Params


class _Block(msgspec.Struct):
    text: str
    type: str = "text"


class _Content(msgspec.Struct):
    content: list[_Block]
    isError: bool = False
    resultType: str = "complete"


class _Reply(msgspec.Struct):
    id: int
    result: _Content
    jsonrpc: str = "2.0"


async def bare(scope: Scope, receive: Receive, send: Send) -> None:
    """The least that can be called an echo: one typed decode, one typed encode."""
    message = await receive()
    if scope["method"] != "POST":
        return await _send(send, b"{}")
    call = _decode(message["body"])
    return await _send(send, _encode(_Reply(call.id, _Content([_Block(call.params.arguments.text)]))))


_decode = msgspec.json.Decoder(_Call).decode
_encode = msgspec.json.Encoder().encode


async def _send(send: Send, body: bytes) -> None:
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def echo(tx: Any, request: Text) -> Text:
    """Says what it is told."""
    return request


def quipu(**settings: Any) -> tuple[Any, Callable[[], None]]:
    """Quipu with nothing but an echo tool, and how to close it."""
    from kernel.calls.dialect import Dialect
    from kernel.calls.tools import Hints, Reply, Tool, read
    from kernel.core.config import Config
    from kernel.core.errors import Fault
    from kernel.server.app import open_kernel
    from kernel.server.asgi import Application

    def reply(tool: Tool, result: Text) -> Reply:
        return Reply(result.text.encode(), "text/plain")

    def fail(fault: Fault) -> Reply:
        return Reply(fault.message.encode(), "text/plain", fault.code)

    tool = read(echo, Hints("Echo", idempotent=True, short=True, typed=False))
    dialect = Dialect("echo", "An echo.", (tool,), reply, fail)
    folder = tempfile.TemporaryDirectory()
    kernel = open_kernel(Config(Path(folder.name), model=None, **settings), (dialect,))

    def close() -> None:
        served.close()
        folder.cleanup()

    served = Application(kernel)
    return served, close


def sdk() -> Any:
    """The official SDK's low-level server, stateless, answering in JSON."""
    from mcp import types
    from mcp.server.lowlevel import Server

    schema = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}

    async def listed(ctx: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[types.Tool(name=TOOL, description="An echo.", input_schema=schema)])

    async def called(ctx: Any, params: Any) -> types.CallToolResult:
        text = params.arguments["text"]
        return types.CallToolResult(content=[types.TextContent(type="text", text=text)])

    server: Any = Server("bench", on_list_tools=listed, on_call_tool=called)
    return server.streamable_http_app(json_response=True, stateless_http=True)


def run(app: Any, port: int, *, lifespan: Literal["on", "off"] = "off", http: Any = "httptools") -> None:
    """Serves on the settings that every peer has, until told to stop; Quipu with the protocol class it serves with."""
    config = uvicorn.Config(
        app,
        host="127.0.0.1",
        port=port,
        loop="uvloop",
        http=http,
        ws="none",
        lifespan=lifespan,
        interface="asgi3",
        access_log=False,
        log_level="warning",
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=75,
    )
    # Uvicorn raises the signal that stopped it once more at its end; what follows `run` must still happen.
    signal.signal(signal.SIGTERM, lambda *_: None)
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
    uvicorn.Server(config).run()


def main() -> None:
    """Serves one of the peers."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("peer", choices=("bare", "quipu", "sdk"))
    parser.add_argument("--port", type=int, required=True)
    for name in ("metrics", "log_calls", "traces"):
        parser.add_argument(f"--{name}", action="store_true")
    arguments = parser.parse_args()
    if arguments.peer == "quipu":
        from kernel.http.fast_path import protocol
        from kernel.server import logs

        logs.set_up(as_json=True, calls=arguments.log_calls)
        app, close = quipu(metrics=arguments.metrics, log_calls=arguments.log_calls, traces=arguments.traces)
        run(app, arguments.port, http=protocol(app.fast_routes))
        close()
    elif arguments.peer == "sdk":
        run(sdk(), arguments.port, lifespan="on")
    else:
        run(bare, arguments.port)


if __name__ == "__main__":
    main()
