"""`quipu health` against healthy, unhealthy and absent servers."""

import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from kernel.cli.main import main
from kernel.http.fast_path import HEALTHY


@contextmanager
def answering(status: int, body: bytes = HEALTHY, media: str = "application/json") -> Iterator[int]:
    """Serve every request with one status and body; the port."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status if self.path == "/healthz" else 404)
            self.send_header("content-type", media)
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


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_healthy_server_exits_zero_without_output(host: str, capsys: pytest.CaptureFixture[str]) -> None:
    with answering(200) as port:
        assert main(["health", "--host", host, "--port", str(port)]) == 0
    assert capsys.readouterr() == ("", "")


def test_other_status_exits_one(capsys: pytest.CaptureFixture[str]) -> None:
    with answering(503) as port:
        assert main(["health", "--port", str(port)]) == 1
    assert capsys.readouterr().err == f"quipu: the server on port {port} answers 503\n"


@pytest.mark.parametrize(
    ("body", "media"),
    [
        (b"ok", "text/plain"),
        (HEALTHY, "application/octet-stream"),
        (b"ok", "application/json"),
        (b'{"status":"starting"}', "application/json"),
        (b"\xff", "application/json"),
    ],
)
@pytest.mark.parametrize("command", ["health", "ui"])
def test_other_program_that_answers_200_exits_one(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: str, body: bytes, media: str
) -> None:
    monkeypatch.setattr("webbrowser.open", lambda _link: False)
    with answering(200, body, media) as port:
        assert main([command, "--port", str(port)]) == 1
    assert capsys.readouterr() == ("", f"quipu: the server on port {port} is not Quipu\n")


def test_absent_server_exits_one(capsys: pytest.CaptureFixture[str]) -> None:
    with answering(200) as port:
        pass
    assert main(["health", "--port", str(port)]) == 1
    assert capsys.readouterr().err == f"quipu: no answer on port {port}: Connection refused\n"
