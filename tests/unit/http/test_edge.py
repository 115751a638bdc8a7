"""Every request beside the fast path is refused or answered at one place, in one form."""

import asyncio
import json
from typing import Any

import pytest

from kernel.core.errors import NO_MEMORY, Fault
from kernel.core.limits import Limits, Refusal
from kernel.http.edge import HttpResponse, error_response, read_arguments, refusal_response, respond, send_response

LIMITS = Limits(body=10)
HOST = (b"host", b"127.0.0.1")


def sent_by(work: Any) -> list[Any]:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(work(send))
    return sent


def test_a_response_has_the_length_and_type_of_its_body() -> None:
    start, body = sent_by(lambda send: send_response(send, HttpResponse(200, b"{}", ((b"etag", b'"1"'),))))
    assert start == {
        "type": "http.response.start",
        "status": 200,
        "headers": ((b"content-type", b"application/json"), (b"content-length", b"2"), (b"etag", b'"1"')),
    }
    assert body == {"type": "http.response.body", "body": b"{}"}


def test_a_response_without_a_body_has_no_type() -> None:
    start, _ = sent_by(lambda send: send_response(send, HttpResponse(202, b"")))
    assert start["headers"] == ((b"content-length", b"0"),)


def test_a_refused_request_closes_its_connection() -> None:
    response = refusal_response(Refusal(413, "Body too large"))
    assert json.loads(response.body) == {"error": {"code": "too_large", "message": "Body too large"}}
    assert (b"connection", b"close") in response.headers


@pytest.mark.parametrize(
    ("error", "message"),
    [(Fault("not_found", "No such page."), "No such page."), (MemoryError(), NO_MEMORY)],
)
def test_an_error_of_the_answer_is_a_refusal(error: Exception, message: str) -> None:
    def refusal(failure: Any, _headers: Any) -> HttpResponse:
        return error_response(500, failure.code, failure.message)

    async def answer(_headers: Any) -> HttpResponse:
        raise error

    scope = {"headers": [HOST]}
    _, body = sent_by(lambda send: respond(scope, send, LIMITS, answer, refusal))
    assert json.loads(body["body"])["error"]["message"] == message


def arguments(body: bytes, **headers: bytes) -> bytes | Refusal:
    async def receive() -> Any:
        return {"type": "http.request", "body": body}

    fields = {name.replace("_", "-").encode(): value for name, value in headers.items()}
    return asyncio.run(read_arguments(fields, receive, LIMITS))


def test_arguments_are_the_body_or_empty() -> None:
    json_type = {"content_type": b"application/json"}
    assert arguments(b"", content_length=b"0") == b"{}"
    assert arguments(b'{"a":1}', content_length=b"7", **json_type) == b'{"a":1}'
    assert arguments(b" " * 11, transfer_encoding=b"chunked", **json_type) == Refusal(413, "Body too large or too slow")
