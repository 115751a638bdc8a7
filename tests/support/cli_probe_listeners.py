"""Calls, values and checks that several tests of probe listeners share."""

import http.server
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress


@contextmanager
def answering(status: int, body: bytes = b"", media: str = "") -> Iterator[int]:
    """Serve every POST with one response, of this content type if any; the port."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.send_response(status)
            if media:
                self.send_header("content-type", media)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:  # pyrefly: ignore[bad-override]
            return

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def dripping(begin: bytes, piece: bytes, pause: float = 0.05, seconds: float = 3.0) -> Iterator[int]:
    """Answer every connection with `begin`, and then with `piece` again and again for some seconds; the port."""

    def answer(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            connection.recv(65536)
            connection.sendall(begin)
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                connection.sendall(piece)
                time.sleep(pause)

    def accept() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=answer, args=(listener.accept()[0],), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=accept, daemon=True).start()
        try:
            yield listener.getsockname()[1]
        finally:
            listener.shutdown(socket.SHUT_RDWR)
