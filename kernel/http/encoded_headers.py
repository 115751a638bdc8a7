"""Headers as they are sent."""

from collections.abc import Sequence

from kernel.core.limits import Header


class CommonHeaders:
    """The headers of every response as bytes; uvicorn makes a new list each second, for the date."""

    def __init__(self) -> None:
        self._headers: Sequence[Header] = ()
        self._encoded = b""

    def encoded(self, headers: Sequence[Header]) -> bytes:
        """Return the lines of `headers`."""
        if headers is not self._headers:
            self._headers = headers
            self._encoded = encode(headers)
        return self._encoded


def encode(headers: Sequence[Header]) -> bytes:
    """Return the lines of these headers."""
    return b"".join([b"%b: %b\r\n" % header for header in headers])
