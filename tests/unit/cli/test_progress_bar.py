"""A line of progress: share, counts, rate and time left."""

import io
import time

import pytest

from kernel.cli import progress_bar
from kernel.cli.progress_bar import ProgressBar, render, working


class Terminal(io.StringIO):
    """Record the output of a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("stream", [Terminal(), io.StringIO()])
def test_work_without_steps_shows_its_seconds_on_a_terminal_alone(
    monkeypatch: pytest.MonkeyPatch, stream: io.StringIO
) -> None:
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setattr(progress_bar, "_WORKING_SECONDS", 0.001)
    with working("check"):
        ends = time.monotonic() + 10
        while stream.isatty() and "check 0 s\r" not in stream.getvalue() and time.monotonic() < ends:
            time.sleep(0.001)
    assert stream.getvalue().split("\r")[-2:] == (["         ", ""] if stream.isatty() else [""])


def test_a_bar_shows_the_seconds_until_the_first_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress_bar, "_WORKING_SECONDS", 0.001)
    stream = Terminal()
    bar, ends = ProgressBar("import", stream), time.monotonic() + 10
    while "import 0 s\r" not in stream.getvalue() and time.monotonic() < ends:
        time.sleep(0.001)
    bar(1, 2)
    drawn = stream.getvalue()
    bar.close()
    assert "import 0 s\r" in drawn
    assert stream.getvalue() == f"{drawn}\n"


@pytest.mark.parametrize(
    ("done", "seconds", "status"),
    [
        (0, 0.0, "   0% 0 of 10,000"),
        (500, 0.5, "   5% 500 of 10,000"),
        (500, 2.0, "   5% 500 of 10,000 250/s 38 s left"),
        (500, 20.0, "   5% 500 of 10,000 25/s 6 min left"),
        (500, 2000.0, "   5% 500 of 10,000 0.2/s 10.6 h left"),
        (10_000, 2000.0, " 100% 10,000 of 10,000 5.0/s"),
    ],
)
def test_rate_and_time_left_appear_after_a_second(done: int, seconds: float, status: str) -> None:
    assert render("reindex", done, 10_000, seconds, 25) == f"reindex{status}"[:24]
    assert render("reindex", done, 10_000, seconds, 200).endswith(f"]{status}")
