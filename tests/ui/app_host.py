"""A host of MCP Apps: a page with the official bridge, and a way from it to a server."""

import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

_HERE = Path(__file__).parent
_MODULES = _HERE / "node_modules"
_PASSED_ON = ("content-type", "accept", "mcp-protocol-version", "mcp-method", "mcp-name")
_MEDIA = {".js": "text/javascript", ".mjs": "text/javascript", ".html": "text/html; charset=utf-8"}


@contextmanager
def hosting(port: int) -> Iterator[str]:
    """The address of a host for the server on a port of this machine."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            if path == "/mcp":  # no stream of the server's own
                self._answer(405, b"", "text/plain")
                return
            file = _HERE / "app_host.html"
            if path.startswith("/modules/"):
                file = (_MODULES / path.removeprefix("/modules/")).resolve()
            if not file.is_relative_to(_HERE) or not file.is_file():
                self._answer(404, b"", "text/plain")
                return
            self._answer(200, file.read_bytes(), _MEDIA.get(file.suffix, "application/octet-stream"))

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            headers = {name: self.headers[name] for name in _PASSED_ON if name in self.headers}
            line = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
            line.request("POST", self.path, body, headers)
            answer = line.getresponse()
            self._answer(answer.status, answer.read(), answer.headers.get("content-type", "text/plain"))
            line.close()

        def _answer(self, status: int, body: bytes, media: str) -> None:
            self.send_response(status)
            self.send_header("content-type", media)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:  # pyrefly: ignore[bad-override]
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
