"""A write that was answered survives kill -9, whole; one that was not is wholly there or wholly absent.

KILL_ROUNDS sets how often the server dies (4 by default).
"""

import os
import random
from pathlib import Path

import pytest

from tests.catalogue import Catalogue
from tests.reliability.server_process import (
    Client,
    Countdown,
    Ledger,
    Server,
    Writer,
    disagreements,
    finish,
    serving,
    until,
)

ROUNDS = int(os.environ.get("KILL_ROUNDS", "4"))
WRITERS = 8
LIVES = 10  # of one file: the checks after each life grow


def wrong_at_the_front_door(server: Server, writers: list[Writer], ledger: Ledger) -> list[str]:
    """Paths of this round that do not read as they were answered."""
    client = Client(server.port)
    wrong: list[str] = []
    for path in (path for writer in writers for path in writer.known):
        status, answer = client.call("read_memory", path=path)
        if (answer["content"] if status == 200 else None) != ledger.known[path]:
            wrong.append(path)
    client.close()
    return wrong


def test_no_answered_write_is_lost_or_half_there_when_the_server_is_killed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], catalogue: Catalogue
) -> None:
    chance, paths = random.Random(), 0
    table = ["round  answered  in doubt  killed after  start s"]
    for begun in range(0, ROUNDS, LIVES):
        data, ledger = tmp_path / f"data{begun}", Ledger()
        lives = range(begun, min(begun + LIVES, ROUNDS))
        table.extend(one_life(data, ledger, number, chance) for number in lives)
        paths += len(ledger.known)
    outcome = f"{paths:,} paths, 0 lost, 0 half written"
    catalogue("R01", injected="kill -9 under 8 writers", times=ROUNDS, outcome=outcome)
    with capsys.disabled():
        print("", *table, outcome, sep="\n")


def one_life(data: Path, ledger: Ledger, number: int, chance: random.Random) -> str:
    """Writes until the server is killed, and compares the store with the answers; a line of the table."""
    moment = chance.randrange(30, 400)
    with serving(data) as server:
        countdown = Countdown(moment)
        writers = [
            Writer(server.port, f"{number}-{writer}", chance.randrange(1 << 30), countdown) for writer in range(WRITERS)
        ]
        for writer in writers:
            writer.start()
        assert countdown.done.wait(60)
        server.kill()
        finish(writers)
    doubts = ledger.doubts
    assert ledger.take(writers, data) == []
    assert [error for writer in writers for error in writer.errors] == []
    with serving(data) as server:
        assert wrong_at_the_front_door(server, writers, ledger) == []
    assert disagreements(data) == []
    answered = sum(len(writer.known) for writer in writers)
    return f"{number:5} {answered:9} {ledger.doubts - doubts:9} {moment:13} {server.seconds:8.2f}"


def test_two_servers_on_one_file_lose_nothing_even_if_one_is_killed(tmp_path: Path, catalogue: Catalogue) -> None:
    data, ledger = tmp_path / "data", Ledger()
    with serving(data) as first, serving(data) as second:
        early, late = Countdown(60), Countdown(120)
        writers = [
            Writer((first, second)[number % 2].port, f"w{number}", number, (early, late)[number % 2])
            for number in range(6)
        ]
        for writer in writers:
            writer.start()
        assert early.done.wait(60)
        first.kill()
        answered = sum(len(writer.known) for writer in writers[1::2])
        until(lambda: sum(len(writer.known) for writer in writers[1::2]) > answered + 20, "the second goes on")
        assert late.done.wait(60)
        finish(writers)
        assert ledger.take(writers, data) == []
        assert [error for writer in writers for error in writer.errors] == []
        assert [writer.doubt for writer in writers[1::2]] == [None, None, None]
        assert wrong_at_the_front_door(second, writers, ledger) == []
    assert disagreements(data) == []
    outcome = f"{len(ledger.known):,} paths, 0 lost, 0 half written"
    catalogue("R11", injected="second server on the file, one killed", times=1, outcome=outcome)


def test_a_server_told_to_stop_answers_what_it_took_and_leaves_one_file(tmp_path: Path) -> None:
    data, ledger = tmp_path / "data", Ledger()
    with serving(data) as server:
        countdown = Countdown(100)
        writers = [Writer(server.port, f"w{number}", number, countdown) for number in range(4)]
        for writer in writers:
            writer.start()
        assert countdown.done.wait(60)
        finish(writers)
        assert server.stop() == 0
    assert sorted(path.name for path in data.iterdir()) == ["quipu.db", "quipu.lock"]
    assert ledger.take(writers, data) == []
    assert ledger.doubts == 0
    assert disagreements(data) == []
