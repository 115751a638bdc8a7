"""A call is decoded, run as its mode says and answered in its dialect's words; bugs stay in the log."""

import asyncio
import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import pytest
from msgspec import Meta

from kernel.dispatch import Dispatch, catch_faults
from kernel.errors import Fault
from kernel.schema import argument_error, error_message
from kernel.store.context import StoreContext
from kernel.store.store import Store
from kernel.tools import (
    ArgumentError,
    Dialect,
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
from tests.conftest import TESTER, Call
from tests.unit.store_fixtures import STATEMENTS, flush, names, thing_store

TEXT = "text/plain"


class Thing(msgspec.Struct, forbid_unknown_fields=True):
    name: Annotated[str, Meta(max_length=8)] = "thing"
    kind: Literal["plain", "fancy"] = "plain"


class Said(msgspec.Struct):
    text: str


def put(tx: Any, request: Thing) -> Said:
    """Adds a thing."""
    tx.run("thing.add", name=request.name)
    return Said(request.name)


def put_many(tx: Any, requests: Sequence[Thing]) -> list[Any]:
    flush(tx, [request.name for request in requests if request.name != "no"])
    return [Fault("conflict", "No.") if request.name == "no" else Said(f"{request.name}!") for request in requests]


def put_alone(tx: Any, request: Thing) -> Said:
    """Adds a thing in a transaction of its own."""
    return put(tx, request)


def who(tx: Any, request: Thing) -> Said:
    """Who is calling, on which thread."""
    return Said(f"{'/'.join(tx.call_context)} {threading.current_thread().name}")


def who_short(tx: Any, request: Thing) -> Said:
    """The same in no time."""
    return who(tx, request)


def listing(tx: Any, request: Thing) -> Said:
    """Every thing."""
    return Said(" ".join(names(tx)))


def sneak(tx: Any, request: Thing) -> Said:
    """Writes, though it is a read."""
    tx.run("thing.rename", name="changed")
    return Said("")


def sneak_short(tx: Any, request: Thing) -> Said:
    """Writes on the event loop."""
    return sneak(tx, request)


def bug_short(tx: Any, request: Thing) -> Said:
    """Has a bug on the event loop."""
    raise ZeroDivisionError("secret detail")


def fail(tx: Any, request: Thing) -> Said:
    """Has a bug after some work."""
    put(tx, request)
    raise ZeroDivisionError("secret detail")


def refuse(tx: Any, request: Thing) -> Said:
    """Refuses after some work."""
    put(tx, request)
    raise Fault("blocked", "Not this one.", "BLOCKED")


def unprintable(tx: Any, request: Thing) -> Said:
    """Gives what its dialect cannot say."""
    put(tx, request)
    return Said("unprintable")


def bad_texts(tx: Any, request: Thing) -> Said:
    """Cannot say what it will embed."""
    return Said("")


def wonder(tx: Any, request: Thing, turn: Interaction) -> Said | InputRequired:
    """Asks for a name."""
    return Said(turn.answers["name"]) if turn.answers else InputRequired({"name": {}}, state=1)


def endless(tx: Any, request: Thing) -> Said:
    """Never ends."""
    BEGUN.set()
    tx.one("thing.forever", int)
    return Said("")


def seen(tx: Any, request: Thing) -> Said:
    """Reads, and counts that it did."""
    if request.kind == "fancy":
        raise Fault("blocked", "Not this one.")
    return Said(f"saw {request.name}")


def count(tx: Any, request: Thing, result: Said) -> None:
    tx.run("thing.add", name=f"{'/'.join(tx.call_context)}: {result.text}")
    if request.name == "bug":
        raise ZeroDivisionError("secret detail")


def seen_short(tx: Any, request: Thing) -> Said:
    """The same in no time."""
    return seen(tx, request)


def letters(tx: Any, request: Thing) -> Said:
    """Every thing, after the letters of the name have become things."""
    return Said(" ".join(names(tx)))


def lacking(tx: Any, request: Thing) -> list[str] | None:
    if request.name == "?":
        raise Fault("blocked", "Nobody may look.")
    there = names(tx)
    return [letter for letter in request.name if letter not in there] or None


def add_first(tx: Any, request: Thing, found: list[str]) -> bool:
    if found[0] == "!":
        raise Fault("storage", "Nobody can write.")
    if found[0] != "~":
        tx.run("thing.add", name=found[0])
    return len(found) > 1 or found[0] == "~"


FIRST = Precheck(lacking, add_first, lambda found: found)
BEGUN = threading.Event()


def broken_texts(_request: Thing) -> list[str]:
    raise ZeroDivisionError


def reply(tool: Tool, result: Said) -> Reply:
    if result.text == "unprintable":
        raise UnicodeError("no words")
    return Reply(result.text.encode(), TEXT)


def apology(fault: Fault) -> Reply:
    return Reply(f"Sorry: {fault.message}".encode(), TEXT, fault.code)


THINGS = Dialect(
    "things",
    "Things.",
    (
        write(put),
        exclusive(put_alone),
        read(who),
        read(who_short, Hints(short=True)),
        read(listing),
        read(sneak),
        write(fail),
        write(refuse),
        write(unprintable),
        write(bad_texts, hooks=Hooks(texts=broken_texts)),
        write(wonder, interactive=True),
        read(endless),
        read(sneak_short, Hints(short=True)),
        read(bug_short, Hints(short=True)),
        read(letters, Hints(short=True), hooks=Hooks(precheck=FIRST)),
        read(seen, hooks=Hooks(after_read=count)),
        read(seen_short, Hints(short=True), hooks=Hooks(after_read=count)),
    ),
    reply,
    apology,
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


def said(text: str) -> Reply:
    return Reply(text.encode(), TEXT)


def sorry(code: Any, message: str) -> Reply:
    return Reply(f"Sorry: {message}".encode(), TEXT, code)


def test_write_is_rendered_by_its_dialect_and_readable(call: Call) -> None:
    assert call("put", name="a") == said("a")
    assert call("put_alone", name="b") == said("b")
    assert call("listing") == said("a b")


def test_reads_run_on_a_reader_and_short_ones_inline(call: Call) -> None:
    assert call("who", by="ada") == said("things/who/ada quipu-reader-0")
    assert call("who_short", by="ada") == said(f"things/who_short/ada {threading.current_thread().name}")


@pytest.mark.parametrize("tool", ["sneak", "sneak_short"])
def test_read_that_writes_is_refused(call: Call, tool: str) -> None:
    call("put", name="a")
    assert call(tool) == sorry("storage", "Cannot write to storage.")
    assert call("listing") == said("a")


@pytest.mark.parametrize("tool", ["seen", "seen_short"])
def test_after_read_write_runs_before_the_next_write(call: Call, tool: str) -> None:
    assert call(tool, name="a", by="ada") == said("saw a")
    assert call("put", name="b") == said("b")
    assert call("listing") == said(f"things/{tool}/ada: saw a b")


def test_failed_read_has_no_after_read_write(call: Call) -> None:
    assert call("seen", kind="fancy") == sorry("blocked", "Not this one.")
    assert call("put", name="b") == said("b")
    assert call("listing") == said("b")


def test_bug_in_an_after_read_write_is_logged_and_spoils_no_answer(
    call: Call, caplog: pytest.LogCaptureFixture
) -> None:
    assert call("seen", name="bug") == said("saw bug")
    assert call("put", name="b") == said("b")
    assert call("listing") == said("b")
    assert "ZeroDivisionError" in caplog.text


def test_fault_is_rendered_and_rolled_back(call: Call) -> None:
    assert call("refuse") == sorry("blocked", "Not this one.")
    assert call("listing") == said("")


@pytest.mark.parametrize("tool", ["fail", "unprintable", "bug_short", "bad_texts"])
def test_bug_is_an_internal_error_logged_once_with_detail(
    call: Call, tool: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert call(tool) == sorry("internal", "Internal error.")
    assert call("listing") == said("")
    (record,) = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert record.exc_info
    assert record.getMessage().startswith("call ")


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b'{"name": 1}', "Invalid arguments: expected `str`, got `int` - at `name`"),
        (b'{"name": "much too long"}', "Invalid arguments: expected `str` of length <= 8 - at `name`"),
        (b'{"kind": "odd"}', "Invalid arguments: invalid enum value 'odd' - at `kind`"),
        (b'{"size": 1}', "Invalid arguments: contains unknown field `size`"),
        (b"[]", "Invalid arguments: expected `object`, got `array`"),
        (b'{"name": "a"', "Invalid arguments: not valid JSON"),
        (b'{"name": "\\ud800"}', "Invalid arguments: not valid JSON"),
        (b'{"name": "\xff"}', "Invalid arguments: not valid JSON"),
        (b"[" * 100_000, "Invalid arguments: expected `object`, got `array`"),
    ],
    ids=lambda value: value[:24].decode(errors="replace") if isinstance(value, bytes) else "",
)
def test_wrong_arguments_are_invalid_and_name_the_field(
    dispatch: Dispatch, runner: asyncio.Runner, raw: bytes, message: str
) -> None:
    assert runner.run(dispatch.call(dispatch.tools["put"], raw, TESTER)) == sorry("invalid", message)


def test_missing_arguments_are_named() -> None:
    class Needing(msgspec.Struct):
        name: str

    with pytest.raises(msgspec.ValidationError) as raised:
        msgspec.json.decode(b"{}", type=Needing)
    assert error_message(raised.value) == "Invalid arguments: missing required field `name`"


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
        (b'{"name":null}', "wrong", "name", "Expected `str`, got `null`"),
        (b'{"name":"a","sizes":[1,"b"]}', "wrong", "sizes[1]", "Expected `int`, got `str`"),
        (b"[]", "wrong", "", "Expected `object`, got `array`"),
        (b"{", "unreadable", "", "Invalid arguments: not valid JSON"),
    ],
)
def test_argument_error_has_field_and_problem(raw: bytes, problem: Any, field: str, message: str | None) -> None:
    tool = read(who)
    with pytest.raises(msgspec.MsgspecError) as raised:
        msgspec.json.decode(raw, type=Outer)
    found = argument_error(tool, raised.value)
    assert found == ArgumentError(tool, problem, field, found.message if message is None else message)


def test_dialect_can_word_argument_errors(store: Store, caller: Callable[[Dispatch], Call]) -> None:
    def own(found: ArgumentError) -> Fault:
        return Fault("invalid", f"{found.tool.name} wants {found.field}")

    call = caller(Dispatch(store, (THINGS._replace(argument_fault=own),)))
    assert call("put", name=1) == sorry("invalid", "put wants name")
    assert call("who_short", size=1) == sorry("invalid", "who_short wants size")


def test_bug_in_the_wording_of_argument_errors_is_an_internal_error(
    store: Store, caller: Callable[[Dispatch], Call], caplog: pytest.LogCaptureFixture
) -> None:
    def own(found: ArgumentError) -> Fault:
        raise KeyError(found.field)

    call = caller(Dispatch(store, (THINGS._replace(argument_fault=own),)))
    assert call("put", name=1) == sorry("internal", "Internal error.")
    assert "KeyError" in caplog.text


class Add(msgspec.Struct, tag="add", tag_field="action"):
    name: str


class Show(msgspec.Struct, tag="show", tag_field="action"):
    sneak: bool = False


def shelf(tx: Any, request: Add | Show) -> Said:
    """Adds or shows."""
    if isinstance(request, Add) or request.sneak:
        tx.run("thing.add", name="a")
    return Said(threading.current_thread().name)


def test_read_arm_of_a_bundled_tool_runs_as_a_read(store: Store, caller: Callable[[Dispatch], Call]) -> None:
    call = caller(Dispatch(store, (THINGS._replace(tools=(write(shelf, read_arms=(Show,)), read(listing))),)))
    assert call("shelf", action="show") == said("quipu-reader-0")
    assert b"reader" not in call("shelf", action="add", name="a").body
    assert call("shelf", action="show", sneak=True) == sorry("storage", "Cannot write to storage.")
    assert call("listing") == said("a")


def test_interactive_tool_requires_input_and_then_answers(call: Call) -> None:
    def unheard(*_: object) -> None:
        raise AssertionError

    assert call("wonder", turn=Interaction({}, None, {}, unheard, unheard)) == InputRequired({"name": {}}, 1)
    assert call("wonder", turn=Interaction({"name": "Illa"}, 1, {}, unheard, unheard)) == said("Illa")


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

    assert runner.run(flood()) == [said("a!"), sorry("conflict", "No."), said("b!")]
    assert store.read_sync(names) == ["a", "b"]


def test_fault_names_the_called_tool(store: Store, caller: Callable[[Dispatch], Call]) -> None:
    def named(fault: Fault) -> Reply:
        return Reply(fault.tool.encode(), TEXT, fault.code)

    call = caller(Dispatch(store, (THINGS._replace(fail=named),)))

    told = [call("refuse"), call("put", name=1), call("sneak_short"), call("who_short", kind="odd")]
    assert [reply.body for reply in told] == [b"refuse", b"put", b"sneak_short", b"who_short"]


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
    assert call("put", name="plain") == said("plain")
    assert call("put", name="a", kind="fancy") == said("hi reader1")
    assert call("put", name="no", kind="fancy") == sorry("blocked", "No.")
    assert call("put", name="broken") == sorry("internal", "Internal error.")
    assert call("listing") == said("plain hi reader1")
    store.close()


def test_full_queue_is_busy(tmp_path: Path, caller: Callable[[Dispatch], Call]) -> None:
    store = thing_store(tmp_path / "full.db", write_limit=0, read_limit=0)
    store.start()
    call = caller(Dispatch(store, (THINGS,)))
    busy = sorry("busy", "The server is busy, try again.")
    assert [call("put"), call("who"), call("who_short").fault] == [busy, busy, None]
    store.close()


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

    assert runner.run(leave()) == said("")


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
    assert caller(Dispatch(store, (THINGS._replace(tools=(tool,)),)))("put", name="a") == said("a")
    store.close()


def test_precheck_writes_before_the_read(call: Call) -> None:
    assert call("letters", name="a") == said("a")
    assert call("letters", name="abcd") == said("a b c d")
    assert call("letters", name="") == said("a b c d")


def test_fault_in_a_precheck_is_the_answer(call: Call) -> None:
    assert call("letters", name="?") == sorry("blocked", "Nobody may look.")
    assert call("letters", name="a!") == sorry("storage", "Nobody can write.")
    assert call("listing") == said("a")


def test_precheck_rounds_are_limited(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernel.dispatch._PRECHECK_ROUNDS", 3)
    assert call("letters", name="~") == sorry("busy", "What is being read changes all the time, try again.")
