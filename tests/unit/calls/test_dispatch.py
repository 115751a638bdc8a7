"""A call is decoded, run in its mode and rendered by its dialect; details of bugs appear only in the log."""

import asyncio
import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import pytest
from msgspec import Meta

from kernel.calls.arguments import argument_error
from kernel.calls.dialect import Dialect
from kernel.calls.dispatch import Dispatch, catch_faults
from kernel.calls.tools import (
    ArgumentError,
    Hints,
    Hooks,
    InputRequired,
    Interaction,
    Precheck,
    Reply,
    Tool,
    exclusive,
    read,
    write,
)
from kernel.core.errors import Fault
from kernel.store.context import StoreContext
from kernel.store.store import Store
from tests.conftest import TESTER, Call
from tests.unit.store_fixtures import STATEMENTS, flush, names, thing_store

TEXT = "text/plain"


class Thing(msgspec.Struct, forbid_unknown_fields=True):
    name: Annotated[str, Meta(max_length=8)] = "thing"
    kind: Literal["plain", "fancy"] = "plain"


class Text(msgspec.Struct):
    text: str


def put(tx: Any, request: Thing) -> Text:
    """Adds a thing."""
    tx.run("thing.add", name=request.name)
    return Text(request.name)


def put_many(tx: Any, requests: Sequence[Thing]) -> list[Any]:
    flush(tx, [request.name for request in requests if request.name != "no"])
    return [Fault("conflict", "No.") if request.name == "no" else Text(f"{request.name}!") for request in requests]


def put_exclusive(tx: Any, request: Thing) -> Text:
    """Adds a thing in its own transaction."""
    return put(tx, request)


def identity(tx: Any, request: Thing) -> Text:
    """The call context and the thread."""
    return Text(f"{'/'.join(tx.writer)} {threading.current_thread().name}")


def identity_short(tx: Any, request: Thing) -> Text:
    """The same, short."""
    return identity(tx, request)


def listing(tx: Any, request: Thing) -> Text:
    """Every thing."""
    return Text(" ".join(names(tx)))


def write_in_read(tx: Any, request: Thing) -> Text:
    """Writes, though it is a read."""
    tx.run("thing.rename", name="changed")
    return Text("")


def write_in_short_read(tx: Any, request: Thing) -> Text:
    """Writes on the event loop."""
    return write_in_read(tx, request)


def bug_short(tx: Any, request: Thing) -> Text:
    """Has a bug on the event loop."""
    raise ZeroDivisionError("secret detail")


def fail(tx: Any, request: Thing) -> Text:
    """Has a bug after some work."""
    put(tx, request)
    raise ZeroDivisionError("secret detail")


def refuse(tx: Any, request: Thing) -> Text:
    """Refuses after some work."""
    put(tx, request)
    raise Fault("blocked", "Not this one.", "BLOCKED")


def unprintable(tx: Any, request: Thing) -> Text:
    """Returns a value that its dialect cannot render."""
    put(tx, request)
    return Text("unprintable")


def bad_texts(tx: Any, request: Thing) -> Text:
    """Has a bug in its texts hook."""
    return Text("")


def ask_name(tx: Any, request: Thing, interaction: Interaction) -> Text | InputRequired:
    """Asks for a name."""
    return Text(interaction.answers["name"]) if interaction.answers else InputRequired({"name": {}}, state=1)


def endless(tx: Any, request: Thing) -> Text:
    """Never ends."""
    BEGUN.set()
    tx.one("thing.forever", int)
    return Text("")


def seen(tx: Any, request: Thing) -> Text:
    """Reads, and counts the access."""
    if request.kind == "fancy":
        raise Fault("blocked", "Not this one.")
    return Text(f"saw {request.name}")


def count(tx: Any, request: Thing, result: Text) -> None:
    tx.run("thing.add", name=f"{'/'.join(tx.writer)}: {result.text}")
    if request.name == "bug":
        raise ZeroDivisionError("secret detail")


def seen_short(tx: Any, request: Thing) -> Text:
    """The same, short."""
    return seen(tx, request)


def letters(tx: Any, request: Thing) -> Text:
    """Every thing, after the letters of the name have become things."""
    return Text(" ".join(names(tx)))


def letters_of_all(tx: Any, request: Thing) -> Text:
    """`letters`, none of which may be missing."""
    return letters(tx, request)


def missing_letters(tx: Any, request: Thing) -> list[str] | None:
    if request.name == "?":
        raise Fault("blocked", "No access.")
    there = names(tx)
    return [letter for letter in request.name if letter not in there] or None


def add_first(tx: Any, request: Thing, found: list[str]) -> bool:
    if found[0] == "!":
        raise Fault("storage", "No space.")
    if found[0] != "~":
        tx.run("thing.add", name=found[0])
    return len(found) > 1 or found[0] == "~"


PRECHECK = Precheck(missing_letters, add_first, lambda found: found)
BEGUN = threading.Event()


def broken_texts(_request: Thing) -> list[str]:
    raise ZeroDivisionError


def reply(tool: Tool, result: Text) -> Reply:
    if result.text == "unprintable":
        raise UnicodeError("no words")
    return Reply(result.text.encode(), TEXT)


def fail_reply(fault: Fault) -> Reply:
    return Reply(f"Sorry: {fault.message}".encode(), TEXT, fault.code)


THINGS = Dialect(
    "things",
    "Things.",
    (
        write(put),
        exclusive(put_exclusive),
        read(identity),
        read(identity_short, Hints(short=True)),
        read(listing),
        read(write_in_read),
        write(fail),
        write(refuse),
        write(unprintable),
        write(bad_texts, hooks=Hooks(texts=broken_texts)),
        write(ask_name, interactive=True),
        read(endless),
        read(write_in_short_read, Hints(short=True)),
        read(bug_short, Hints(short=True)),
        read(letters, Hints(short=True), hooks=Hooks(precheck=PRECHECK)),
        read(letters_of_all, hooks=Hooks(precheck=PRECHECK._replace(required=True))),
        read(seen, hooks=Hooks(after_read=count)),
        read(seen_short, Hints(short=True), hooks=Hooks(after_read=count)),
    ),
    reply,
    fail_reply,
)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    running = thing_store(tmp_path / "things.db", readers=1)
    running.start()
    yield running
    running.close()


@pytest.fixture
def dispatch(store: Store) -> Dispatch:
    return Dispatch(store, (THINGS,))


@pytest.fixture
def call(dispatch: Dispatch, caller: Callable[[Dispatch], Call]) -> Call:
    return caller(dispatch)


def text(text: str) -> Reply:
    return Reply(text.encode(), TEXT)


def failure(code: Any, message: str) -> Reply:
    return Reply(f"Sorry: {message}".encode(), TEXT, code)


def test_write_is_rendered_by_its_dialect_and_readable(call: Call) -> None:
    assert call("put", name="a") == text("a")
    assert call("put_exclusive", name="b") == text("b")
    assert call("listing") == text("a b")


def test_reads_run_on_a_reader_and_short_ones_inline(call: Call) -> None:
    assert call("identity", by="ada") == text("things/identity/ada quipu-reader-0")
    assert call("identity_short", by="ada") == text(f"things/identity_short/ada {threading.current_thread().name}")


@pytest.mark.parametrize("tool", ["write_in_read", "write_in_short_read"])
def test_read_that_writes_is_refused(call: Call, tool: str) -> None:
    call("put", name="a")
    assert call(tool) == failure("storage", "Cannot write to storage.")
    assert call("listing") == text("a")


@pytest.mark.parametrize("tool", ["seen", "seen_short"])
def test_after_read_write_runs_before_the_next_write(call: Call, tool: str) -> None:
    assert call(tool, name="a", by="ada") == text("saw a")
    assert call("put", name="b") == text("b")
    assert call("listing") == text(f"things/{tool}/ada: saw a b")


def test_failed_read_has_no_after_read_write(call: Call) -> None:
    assert call("seen", kind="fancy") == failure("blocked", "Not this one.")
    assert call("put", name="b") == text("b")
    assert call("listing") == text("b")


def test_bug_in_an_after_read_write_is_logged_and_spoils_no_answer(
    call: Call, caplog: pytest.LogCaptureFixture
) -> None:
    assert call("seen", name="bug") == text("saw bug")
    assert call("put", name="b") == text("b")
    assert call("listing") == text("b")
    assert "ZeroDivisionError" in caplog.text


def test_fault_is_rendered_and_rolled_back(call: Call) -> None:
    assert call("refuse") == failure("blocked", "Not this one.")
    assert call("listing") == text("")


@pytest.mark.parametrize("tool", ["fail", "unprintable", "bug_short", "bad_texts"])
def test_bug_is_an_internal_error_logged_once_with_detail(
    call: Call, tool: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert call(tool) == failure("internal", "Internal error.")
    assert call("listing") == text("")
    (record,) = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert record.exc_info
    assert record.getMessage().startswith("call ")


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b'{"name": 1}', "Invalid arguments: expected `string`, got `integer` - at `name`"),
        (b'{"name": "much too long"}', "Invalid arguments: expected `string` of length <= 8 - at `name`"),
        (b'{"kind": "odd"}', "Invalid arguments: invalid enum value 'odd', choose from fancy, plain - at `kind`"),
        (b'{"size": 1}', "Invalid arguments: contains unknown field `size`; put takes name, kind"),
        (b"[]", "Invalid arguments: expected `object`, got `array`; expects object with name, kind"),
        (b'{"name": "a"', "Invalid arguments: not valid JSON"),
        (b'{"name": "\xff"}', "Invalid arguments: not valid JSON"),
        (b"[" * 100_000, "Invalid arguments: expected `object`, got `array`; expects object with name, kind"),
    ],
    ids=lambda value: value[:24].decode(errors="replace") if isinstance(value, bytes) else "",
)
def test_wrong_arguments_are_invalid_and_name_the_field(
    dispatch: Dispatch, runner: asyncio.Runner, raw: bytes, message: str
) -> None:
    assert runner.run(dispatch.call(dispatch.tools["put"], raw, TESTER)) == failure("invalid", message)


class Inner(msgspec.Struct, forbid_unknown_fields=True):
    size: int


class Outer(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    inner: Inner | None = None
    sizes: list[int] = []


@pytest.mark.parametrize(
    ("raw", "problem", "field", "message"),
    [
        (b"{}", "missing", "name", "Object missing required field `name`"),
        (b'{"name":"a","inner":{}}', "missing", "inner.size", "Object missing required field `size`"),
        (b'{"name":"a","b`c":1}', "unknown", "b`c", "Object contains unknown field `b`c`"),
        (b'{"name":"a","inner":{"size":1,"x\\n - at `$.y`":1}}', "unknown", "inner.x\n - at `$.y`", None),
        (b'{"name":null}', "wrong", "name", "Expected `string`, got `null`"),
        (b'{"name":"a","sizes":[1,"b"]}', "wrong", "sizes[1]", "Expected `integer`, got `string`"),
        (b"[]", "wrong", "", "Expected `object`, got `array`"),
        (b"{", "unreadable", "", "not valid JSON"),
    ],
)
def test_argument_error_has_field_and_problem(raw: bytes, problem: Any, field: str, message: str | None) -> None:
    tool = read(identity)
    with pytest.raises(msgspec.MsgspecError) as raised:
        msgspec.json.decode(raw, type=Outer)
    found = argument_error(tool, raised.value)
    said = found.message if message is None else message
    assert found == ArgumentError(tool, problem, field, said, tool.request, hint=found.hint)


def test_dialect_can_word_argument_errors(store: Store, caller: Callable[[Dispatch], Call]) -> None:
    def own(found: ArgumentError) -> Fault:
        return Fault("invalid", f"{found.tool.name} wants {found.field}")

    call = caller(Dispatch(store, (THINGS._replace(argument_fault=own),)))
    assert call("put", name=1) == failure("invalid", "put wants name")
    assert call("identity_short", size=1) == failure("invalid", "identity_short wants size")


def test_bug_in_the_wording_of_argument_errors_is_an_internal_error(
    store: Store, caller: Callable[[Dispatch], Call], caplog: pytest.LogCaptureFixture
) -> None:
    def own(found: ArgumentError) -> Fault:
        raise KeyError(found.field)

    call = caller(Dispatch(store, (THINGS._replace(argument_fault=own),)))
    assert call("put", name=1) == failure("internal", "Internal error.")
    assert "KeyError" in caplog.text


class Add(msgspec.Struct, tag="add", tag_field="action"):
    name: str


class Show(msgspec.Struct, tag="show", tag_field="action"):
    write_in_read: bool = False


def shelf(tx: Any, request: Add | Show) -> Text:
    """Adds or shows."""
    if isinstance(request, Add) or request.write_in_read:
        tx.run("thing.add", name="a")
    return Text(threading.current_thread().name)


def test_read_arm_of_a_bundled_tool_runs_as_a_read(store: Store, caller: Callable[[Dispatch], Call]) -> None:
    call = caller(Dispatch(store, (THINGS._replace(tools=(write(shelf, read_arms=(Show,)), read(listing))),)))
    assert call("shelf", action="show") == text("quipu-reader-0")
    assert b"reader" not in call("shelf", action="add", name="a").body
    assert call("shelf", action="show", write_in_read=True) == failure("storage", "Cannot write to storage.")
    assert call("listing") == text("a")


def test_interactive_tool_requires_input_and_then_answers(call: Call) -> None:
    def ignore(*_: object) -> None:
        raise AssertionError

    assert call("ask_name", turn=Interaction({}, None, {}, ignore, ignore)) == InputRequired({"name": {}}, 1)
    assert call("ask_name", turn=Interaction({"name": "Illa"}, 1, {}, ignore, ignore)) == text("Illa")


def test_batched_calls_get_separate_answers(store: Store, runner: asyncio.Runner) -> None:
    dispatch = Dispatch(store, (THINGS._replace(tools=(write(put, hooks=Hooks(batch=put_many)),)),))
    begun, ended = threading.Event(), threading.Event()

    def hold(_tx: Any) -> None:
        begun.set()
        assert ended.wait(20)

    async def flood() -> list[Any]:
        holder = threading.Thread(target=store.write_sync, args=(hold,))
        holder.start()
        assert begun.wait(20)
        calls = [
            asyncio.ensure_future(dispatch.call(dispatch.tools["put"], msgspec.json.encode({"name": name}), TESTER))
            for name in ("a", "no", "b")
        ]
        await asyncio.sleep(0)
        ended.set()
        holder.join()
        return await asyncio.gather(*calls)

    assert runner.run(flood()) == [text("a!"), failure("conflict", "No."), text("b!")]
    assert store.read_sync(names) == ["a", "b"]


def test_fault_names_the_called_tool(store: Store, caller: Callable[[Dispatch], Call]) -> None:
    def named(fault: Fault) -> Reply:
        return Reply(fault.tool.encode(), TEXT, fault.code)

    call = caller(Dispatch(store, (THINGS._replace(fail=named),)))

    replies = [call("refuse"), call("put", name=1), call("write_in_short_read"), call("identity_short", kind="odd")]
    assert [reply.body for reply in replies] == [b"refuse", b"put", b"write_in_short_read", b"identity_short"]


def test_prepare_runs_on_a_reader_and_can_change_the_request(
    tmp_path: Path, caller: Callable[[Dispatch], Call]
) -> None:
    def ahead(settings: Any, request: Thing) -> Callable[[Any], Thing] | None:
        if request.name == "broken":
            raise ZeroDivisionError

        def work(tx: Any) -> Thing:
            if request.name == "no":
                raise Fault("blocked", "No.")
            return Thing(f"{settings['GREETING']}{threading.current_thread().name[-8:-2]}{len(names(tx))}"[:20])

        return work if request.kind == "fancy" else None

    store = thing_store(tmp_path / "ahead.db", StoreContext(STATEMENTS, settings={"GREETING": "hi "}))
    store.start()
    call = caller(Dispatch(store, (THINGS._replace(tools=(write(put, hooks=Hooks(prepare=ahead)), read(listing))),)))
    assert call("put", name="plain") == text("plain")
    assert call("put", name="a", kind="fancy") == text("hi reader1")
    assert call("put", name="no", kind="fancy") == failure("blocked", "No.")
    assert call("put", name="broken") == failure("internal", "Internal error.")
    assert call("listing") == text("plain hi reader1")
    store.close()


def test_closed_store_is_busy(tmp_path: Path, caller: Callable[[Dispatch], Call]) -> None:
    store = thing_store(tmp_path / "closed.db")
    store.start()
    store.close()
    call = caller(Dispatch(store, (THINGS,)))
    busy = failure("busy", "The server is busy, try again.")
    assert [call("put"), call("identity")] == [busy, busy]


def test_disconnect_cancels_only_its_own_read(dispatch: Dispatch, runner: asyncio.Runner) -> None:
    BEGUN.clear()

    async def leave() -> Any:
        task = asyncio.ensure_future(dispatch.call(dispatch.tools["endless"], b"{}", TESTER))
        assert await asyncio.to_thread(BEGUN.wait, 20)
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return await dispatch.call(dispatch.tools["listing"], b"{}", TESTER)

    assert runner.run(leave()) == text("")


def test_dispatch_read_raises_the_fault(dispatch: Dispatch, runner: asyncio.Runner) -> None:
    def missing(_tx: Any) -> None:
        raise Fault("not_found", "No.")

    with pytest.raises(Fault, match="No"):
        runner.run(dispatch.read(THINGS, missing, TESTER))


def test_catch_faults_returns_values_or_faults(caplog: pytest.LogCaptureFixture) -> None:
    fault = Fault("conflict", "No.")

    def throw(error: Exception) -> Fault:
        raise error

    assert catch_faults(max, 1, 2) == 2
    assert catch_faults(throw, fault) is fault
    assert catch_faults(throw, OverflowError()).code == "invalid"
    assert catch_faults(throw, KeyError("secret")).message == "Internal error."
    assert [record.levelname for record in caplog.records] == ["WARNING", "ERROR"]


def test_writes_work_without_a_model(tmp_path: Path, caller: Callable[[Dispatch], Call]) -> None:
    store = thing_store(tmp_path / "plain.db", StoreContext(STATEMENTS))
    store.start()
    tool = write(put, hooks=Hooks(texts=lambda request: [request.name]))
    assert caller(Dispatch(store, (THINGS._replace(tools=(tool,)),)))("put", name="a") == text("a")
    store.close()


def test_precheck_writes_before_the_read(call: Call) -> None:
    assert call("letters", name="a") == text("a")
    assert call("letters", name="abcd") == text("a b c d")
    assert call("letters", name="") == text("a b c d")


def test_fault_in_a_precheck_is_the_answer(call: Call) -> None:
    assert call("letters", name="?") == failure("blocked", "No access.")
    assert call("letters_of_all", name="a!") == failure("storage", "No space.")
    assert call("listing") == text("a")


def test_a_read_answers_from_what_is_stored_where_the_disk_fails_its_precheck(call: Call) -> None:
    assert call("letters", name="ab!") == text("a b")


def test_precheck_rounds_are_limited(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernel.calls.dispatch._PRECHECK_ROUNDS", 3)
    assert call("letters", name="~") == failure("busy", "What is being read changes all the time, try again.")
