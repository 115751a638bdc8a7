"""The commands that ask a server end in time if its answer does not, and take no other program for Quipu."""

import re

import pytest

from kernel.cli import local_client
from kernel.cli.main import main
from kernel.cli.probe import handshake
from tests.support.cli_probe_listeners import answering, dripping

pytestmark = pytest.mark.slow

ENDLESS = pytest.mark.parametrize(
    ("begin", "piece"),
    [
        pytest.param(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n", b"x", id="body"),
        pytest.param(b"HTTP/1.1 200 OK\r\n", b"a: b\r\n", id="headers"),
        pytest.param(b"HTTP/1.1 200 OK\r\na: ", b"b", id="one header"),
        pytest.param(b"", b"HTTP/1.1 100 Continue\r\n\r\n", id="continue"),
    ],
)
SECONDS = 0.3


@ENDLESS
def test_probe_of_a_server_without_an_end_times_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], begin: bytes, piece: bytes
) -> None:
    monkeypatch.setattr("kernel.cli.probe._TIMEOUT_SECONDS", SECONDS)
    with dripping(begin, piece) as port:
        assert main(["health", "--port", str(port)]) == 1
        assert capsys.readouterr().err == f"quipu: no answer on port {port}: timed out\n"
        with pytest.raises(TimeoutError):
            handshake(f"http://127.0.0.1:{port}/mcp")


@ENDLESS
def test_command_at_the_url_of_a_server_without_an_end_times_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], begin: bytes, piece: bytes
) -> None:
    monkeypatch.setattr("kernel.cli.local_client._SECONDS", SECONDS)
    with dripping(begin, piece) as port:
        assert main(["recall", "horse", "--url", f"http://127.0.0.1:{port}"]) == 1
    assert re.fullmatch(r"quipu: \S+ has not answered in time\. Whether it was done .*\n", capsys.readouterr().err)


@ENDLESS
def test_server_of_the_data_directory_without_an_end_times_out(
    monkeypatch: pytest.MonkeyPatch, begin: bytes, piece: bytes
) -> None:
    monkeypatch.setattr("kernel.cli.local_client._SECONDS", SECONDS)
    with dripping(begin, piece) as port, pytest.raises(TimeoutError):
        local_client.ask(("127.0.0.1", port, "token"), "recall", b"{}", "text")


@pytest.mark.parametrize("media", ["text/plain", "application/x-ndjson", "text/html"])
@pytest.mark.parametrize("style", [[], ["--json"]])
def test_program_that_answers_everything_is_not_quipu(
    capsys: pytest.CaptureFixture[str], media: str, style: list[str]
) -> None:
    with answering(200, b"ok", media) as port:
        assert main(["recall", "horse", "--url", f"http://127.0.0.1:{port}", *style]) == 1
    output, errors = capsys.readouterr()
    assert (output, errors) == (
        "",
        f"quipu: http://127.0.0.1:{port} answers, and not as Quipu does: another program listens there.\n",
    )
