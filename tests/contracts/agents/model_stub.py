"""A model that understands everything: it keeps its input, and answers one word in the form of Gemini's API."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_ANSWER: dict[str, Any] = {
    "candidates": [{"content": {"role": "model", "parts": [{"text": "Understood."}]}, "finishReason": "STOP"}],
    "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2},
}


class ModelStub:
    """Listens on a port of this machine until it is closed."""

    def __init__(self) -> None:
        received: list[str] = []

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                received.append(self.rfile.read(int(self.headers["content-length"] or 0)).decode())
                data, streamed = json.dumps(_ANSWER).encode(), "stream" in self.path
                body = b"data: " + data + b"\n\n" if streamed else data
                self.send_response(200)
                self.send_header("content-type", "text/event-stream" if streamed else "application/json")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the name of the base class
                """Nothing: only the table is printed."""

        self.received = received
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        """Ends it."""
        self._server.shutdown()
        self._server.server_close()
