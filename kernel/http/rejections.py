"""The responses to requests that end before an application sees them."""

from collections.abc import Iterable

from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from kernel.core.limits import Header

_REJECTIONS = {
    400: (b"invalid", b"Malformed HTTP request"),
    408: (b"timeout", b"Request timed out"),
    413: (b"too_large", b"Body too large"),
    429: (b"rate_limited", b"Too many requests, try again later."),
    431: (b"headers_too_large", b"Headers too large"),
    501: (b"not_implemented", b"CONNECT is not supported"),
    503: (b"busy", b"Too many connections, try again."),
}
_RETRIED = (429, 503)
# The client may still be sending when it is rejected with one of these.
REJECTED_WHILE_SENDING = (400, 413, 431, 501)


def rejection(status: int, headers: Iterable[Header]) -> bytes:
    """Return the whole response with this status, after which the connection closes."""
    body = b'{"error":{"code":"%b","message":"%b"}}' % _REJECTIONS[status]
    retry = b"retry-after: 1\r\n" if status in _RETRIED else b""
    common = b"".join([b"%b: %b\r\n" % header for header in headers])
    return b"%b%b%bcontent-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n\r\n%b" % (
        STATUS_LINE[status],
        common,
        retry,
        len(body),
        body,
    )
