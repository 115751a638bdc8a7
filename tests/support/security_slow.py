"""Calls, values and checks that several tests of slow share."""

from tests.security.sockets import request

WHOLE = request()


HALF_HEAD = b"POST /tools/recall HTTP/1.1\r\nHost: localhost\r\nContent-Ty"


HALF_BODY = request(body=b'{"query":', Content_Length="1000")
