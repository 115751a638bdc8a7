"""The page of calls: counts by default, single calls and texts where they are asked for, and its stream."""

import http.client
import json
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from kernel.core.config import Config, KeptCalls
from kernel.core.ids import utc_now
from kernel.security import api_keys
from tests.security.authenticated_server import House, house
from tests.support.http_console import TYPED
from tests.support.http_console_live import call_as

SECRET_WORDS = "the launch is on Tuesday"


@contextmanager
def live(folder: Path, keeps: KeptCalls = "counts") -> Iterator[House]:
    with house(Config(data=folder / "data", ui_calls=keeps)) as running:
        yield running


def calls(server: House, key: str = "", query: str = "") -> Any:
    answer = server.ask("GET", f"/ui/calls.json{query}", key)
    assert answer.status == 200, answer.body
    return json.loads(answer.body)


def add(server: House, path: str, key: str = "", **headers: str) -> None:
    body = json.dumps({"path": path, "content": SECRET_WORDS}).encode()
    given = {"content-type": "application/json", "accept": "application/json", **headers}
    assert server.ask("POST", "/tools/add_memory", key, body, given).status == 200


def test_calls_are_only_counted_unless_more_is_asked_for(tmp_path: Path) -> None:
    with live(tmp_path) as server:
        assert server.application is not None
        add(server, "before")
        assert server.application.kernel.dispatch.observers == []
        assert calls(server)["counts"] == []
        add(server, "one")
        add(server, "two")
        server.tool("add_memory", {"path": "one", "content": "again"})
        found = calls(server)
        (count,) = found["counts"]
        shown = {name: count[name] for name in ("dialect", "tool", "client", "calls", "failed")}
        assert shown == {"dialect": "paths", "tool": "add_memory", "client": "anonymous", "calls": 3, "failed": 1}
        assert (found["keeps"], found["calls"]) == ("counts", [])
        assert SECRET_WORDS.encode() not in server.ask("GET", "/ui/calls").body


def test_single_calls_are_kept_without_their_texts(tmp_path: Path) -> None:
    with live(tmp_path, "calls") as server:
        add(server, "one", **{"user-agent": "claude-code/2.1"})
        (call,) = calls(server)["calls"]
        assert (call["tool"], call["agent"], call["outcome"]) == ("add_memory", "claude-code/2.1", "ok")
        assert call["bytes_in"] == len(json.dumps({"path": "one", "content": SECRET_WORDS}))
        assert call["bytes_out"] > 0
        one = calls(server, query="?number=1")["call"]
        assert (one["arguments"], one["answer"]) == (None, None)
        shown = server.ask("GET", "/ui/calls?number=1").body
        assert b"claude-code/2.1" in shown
        assert SECRET_WORDS.encode() not in shown
        assert server.ask("GET", "/ui/calls?number=99").status == 404


def test_texts_are_kept_only_where_they_are_asked_for_and_shown_to_admins(tmp_path: Path) -> None:
    with live(tmp_path, "texts") as server:
        admin, reader = server.key("admin"), server.key("read")
        server.told()
        add(server, "one", admin)
        one = calls(server, admin, "?number=1")
        assert json.loads(one["call"]["arguments"]) == {"path": "one", "content": SECRET_WORDS}
        assert one["call"]["answer"]
        assert one["calls"][0]["arguments"] is None
        assert calls(server, reader, "?number=1")["call"]["arguments"] is None
        assert SECRET_WORDS.encode() in server.ask("GET", "/ui/calls?number=1", admin).body
        assert SECRET_WORDS.encode() not in server.ask("GET", "/ui/calls?number=1", reader).body


def test_what_is_searched_in_the_console_is_its_own_call(tmp_path: Path) -> None:
    with live(tmp_path, "calls") as server:
        server.ask("GET", "/ui/search?q=x")
        assert [(call["client"], call["tool"]) for call in calls(server)["calls"]] == [("console", "recall")]


def test_calls_of_other_tenants_and_dialects_are_not_shown(tmp_path: Path) -> None:
    with live(tmp_path, "calls") as server:
        admin, other = server.key("admin"), server.key("admin", tenant="other")
        limited = server.key("read", dialects=("brain",))
        server.told()
        add(server, "one", admin)
        assert len(calls(server, admin)["calls"]) == 1
        for key in (other, limited):
            found = calls(server, key)
            assert (found["counts"], found["calls"]) == ([], [])
            assert server.ask("GET", "/ui/calls.json?number=1", key).status == 404


@pytest.mark.slow
def test_kept_calls_and_counts_are_bounded(tmp_path: Path) -> None:
    with live(tmp_path, "calls") as server:
        for number in range(1100):
            call_as(server, f"client {number}", "list_memories", {})
        assert server.application is not None
        found = calls(server, query="?number=1100")
        assert found["call"]["number"] == 1100
        assert server.ask("GET", "/ui/calls.json?number=100").status == 404
        assert server.ask("GET", "/ui/calls.json?number=101").status == 200
        assert "others" in {count["client"] for count in found["counts"]}


class Stream:
    """The stream of a page, as a browser reads it."""

    def __init__(self, server: House, cookie: str = "", key: str = "") -> None:
        self._line = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
        given = {"cookie": cookie, "authorization": key and f"Bearer {key}"}
        self._line.request("GET", "/ui/live", headers={name: value for name, value in given.items() if value})
        self.answer = self._line.getresponse()

    def event(self) -> Any:
        """The next event; None at the end of the stream."""
        while line := self.answer.readline():
            if line.startswith(b"data: "):
                return json.loads(line.removeprefix(b"data: "))
        return None

    def close(self) -> None:
        self._line.close()


def test_stream_tells_what_is_called(tmp_path: Path) -> None:
    with live(tmp_path, "calls") as server, closing(Stream(server)) as stream:
        assert (stream.answer.status, stream.answer.headers["content-type"]) == (200, "text/event-stream")
        assert stream.event()["calls"] == []
        add(server, "one")
        assert [call["tool"] for call in stream.event()["calls"]] == ["add_memory"]


def test_stream_ends_within_a_second_of_the_revocation_of_its_key(tmp_path: Path) -> None:
    with live(tmp_path) as server:
        key = server.key("read")
        server.told()
        headers = {"origin": f"http://127.0.0.1:{server.port}", "sec-fetch-site": "same-origin", "content-type": TYPED}
        entered = server.ask("POST", "/ui/do/login", body=f"key={key}".encode(), headers=headers)
        cookie = entered.headers["set-cookie"].partition(";")[0]
        with closing(Stream(server, cookie)) as stream:
            stream.event()
            api_keys.revoke(server.data, api_keys.parse(key), utc_now())
            revoked = time.monotonic()
            assert stream.event() is None
            assert time.monotonic() - revoked < 1.5  # a second, and the delay of a busy machine
        assert server.ask("GET", "/ui/live", headers={"cookie": cookie}).status == 303


def test_a_stream_shows_no_call_after_the_server_knows_that_its_key_is_revoked(tmp_path: Path) -> None:
    with live(tmp_path, "calls") as server, ExitStack() as stack:
        keys, other = [server.key("read") for _ in range(4)], server.key("write")
        server.told()
        headers = {"origin": f"http://127.0.0.1:{server.port}", "sec-fetch-site": "same-origin", "content-type": TYPED}
        several = list[Stream]()
        for key in keys:  # each looks at its key at another moment
            entered = server.ask("POST", "/ui/do/login", body=f"key={key}".encode(), headers=headers)
            cookie = entered.headers["set-cookie"].partition(";")[0]
            several.append(stack.enter_context(closing(Stream(server, cookie))))
            several[-1].event()
            time.sleep(0.1)
        for key in keys:
            api_keys.revoke(server.data, api_keys.parse(key), utc_now())
        while server.ask("GET", "/tools", keys[-1]).status == 200:
            time.sleep(0.01)
        assert server.tool("add_memory", {"path": "late", "content": "x"}, other).status == 200
        assert [stream.event() for stream in several] == [None] * 4


def test_streams_are_few_and_make_room_when_they_end(tmp_path: Path) -> None:
    with live(tmp_path) as server, ExitStack() as stack:
        several: Sequence[Stream] = [stack.enter_context(closing(Stream(server))) for _ in range(8)]
        assert [stream.answer.status for stream in several] == [200] * 8
        refused = Stream(server)
        assert refused.answer.status == 503
        refused.close()
        several[0].close()
        end = time.monotonic() + 10
        while (again := Stream(server)).answer.status != 200:
            again.close()
            assert time.monotonic() < end
            time.sleep(0.05)
        again.close()


def test_streams_of_one_key_leave_room_for_those_of_others(tmp_path: Path) -> None:
    with live(tmp_path) as server, ExitStack() as stack:
        many, other = server.key("read"), server.key("read")
        server.told()
        for _ in range(8):
            assert stack.enter_context(closing(Stream(server, key=many))).answer.status == 200
        assert stack.enter_context(closing(Stream(server, key=many))).answer.status == 503
        assert stack.enter_context(closing(Stream(server, key=other))).answer.status == 200
