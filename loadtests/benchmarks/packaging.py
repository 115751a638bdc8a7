"""Size and start of the shipped wheel, folder, single file and images; and a stop under load.

Sides alternate; a start ends at the first /healthz. A container has three times: `podman run`, `podman start` of an
existing one, and the program's part of the latter, from the start of the container's process.
"""

import os
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import NamedTuple

from loadtests.lib.servers import ROOT, budget, budgets, finish, machine, options, paired, rounds, served, table
from tests.packaging.containers import EDGE, LATEST, Container, contained, podman, why_not
from tests.reliability.server_process import Countdown, Ledger, Writer
from tests.reliability.server_process import finish as ended

_FOLDER, _FILE = ROOT / "dist" / "quipu", ROOT / "dist" / "quipu.run"
_CLONE, _UNPACKED, _SINGLE = "python -m kernel", "dist/quipu/quipu", "dist/quipu.run"
_OPEN = ("--env", "QUIPU_OPEN=1", "--env", "QUIPU_LIMIT_RATE=0")
_WRITERS, _ANSWERS = 16, 500


class Start(NamedTuple):
    """One start: seconds to /healthz, and processor seconds until then."""

    healthy: float
    cpu: float


class Contained(NamedTuple):
    """One container, in seconds: run, start, the program's part of start, and stop under load."""

    run: float
    start: float
    program: float
    stop: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; return 1 if an answered write was lost or a program exited with an error."""
    chosen = options(__doc__, arguments, rounds=9)
    if not _FILE.exists():
        print("packaging is skipped: run `make binary` first")
        return 0
    machine()
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder) / "unpacked"
        first = _start(Path(folder), (str(_FILE),), cache).healthy
        programs = {_CLONE: None, _UNPACKED: (str(_FOLDER / "quipu"),), _SINGLE: (str(_FILE),)}
        sides = {name: _starter(Path(folder), program, cache) for name, program in programs.items()}
        starts = rounds(chosen.rounds, sides)
        images, complaints = _images(Path(folder), max(1, chosen.rounds // 3))
    _show(starts, first, images, chosen.rounds)
    budgets(_ratios(starts, images))
    return finish(complaints)


def _ratios(starts: dict[str, list[Start]], images: dict[str, list[Contained]]) -> list[tuple[str, str, str, str]]:
    healthy = {name: [start.healthy for start in runs] for name, runs in starts.items()}
    rows = [
        budget("start of the folder over the clone's", paired(healthy[_UNPACKED], healthy[_CLONE]), 1.6),
        budget("start of the file, already unpacked, over the clone's", paired(healthy[_SINGLE], healthy[_CLONE]), 1.6),
        budget("MB of the file", _megabytes(_FILE), 80),
    ]
    if EDGE in images:
        binary, edge = median(healthy[_UNPACKED]), images[EDGE]
        rows += [
            budget(
                "MB of the edge image", float(podman("image", "inspect", "-f", "{{.Size}}", EDGE).stdout) / 1e6, 170
            ),
            budget(
                "start of the program in the container over the folder's",
                median(one.program for one in edge) / binary,
                2,
            ),
            budget("podman start over the folder's", median(one.start for one in edge) / binary, 2),
            budget("longest stop under load, seconds", max(one.stop for one in edge), 2),
        ]
    return rows


def _starter(folder: Path, program: Sequence[str] | None, cache: Path) -> Callable[[], Start]:
    return lambda: _start(folder, program, cache)


def _start(folder: Path, program: Sequence[str] | None, cache: Path) -> Start:
    with tempfile.TemporaryDirectory(dir=folder) as data:
        arguments = ("serve", "--data", data)
        environ = {"QUIPU_UNPACK_DIR": str(cache)}
        with served(*(arguments if program else ("kernel", *arguments)), environ=environ, program=program) as server:
            return Start(server.wait(), server.cpu())


def _images(folder: Path, count: int) -> tuple[dict[str, list[Contained]], list[str]]:
    found: dict[str, list[Contained]] = {}
    complaints: list[str] = []
    for image in (LATEST, EDGE):
        if reason := why_not(image):
            print(f"{image} is not measured: {reason}")
            continue
        for number in range(count):
            once, lost = _container(image, folder / f"{image.rpartition(':')[2]}-{number}")
            found.setdefault(image, []).append(once)
            complaints += lost
    return found, complaints


def _container(image: str, data: Path) -> tuple[Contained, list[str]]:
    begun = time.perf_counter()
    with contained(image, data, *_OPEN) as server:
        ran = time.perf_counter() - begun
        podman("stop", server.id)
        begun = time.perf_counter()
        server.start()
        started = time.perf_counter() - begun
        program = time.time() - datetime.fromisoformat(_whole(server.inspect("{{.State.StartedAt}}"))).timestamp()
        stop, complaints = _stopped(server)
    return Contained(ran, started, program, stop), [f"{image}: {complaint}" for complaint in complaints]


def _whole(moment: str) -> str:
    """A podman timestamp, `2026-11-21 13:34:38.123456789 +0000 UTC`, in ISO 8601."""
    day, clock, zone, *_ = moment.split()
    return f"{day}T{clock[:15]}{zone}"


def _stopped(server: Container) -> tuple[float, list[str]]:
    enough = Countdown(_ANSWERS)
    writers = [Writer(server.port, f"writer-{number}", number, enough) for number in range(_WRITERS)]
    for writer in writers:
        writer.start()
    if not enough.done.wait(60):
        return 0.0, ["the writers got no answers"]
    begun = time.perf_counter()
    status = server.stop()
    spent = time.perf_counter() - begun
    ended(writers)
    wrong = Ledger().take(writers, server.data)
    return spent, [f"lost {path}" for path in wrong] + ([f"ended with {status}"] if status else [])


def _megabytes(path: Path) -> float:
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file() and not file.is_symlink()]
    return sum(file.stat().st_size for file in files) / 1e6


def _show(starts: dict[str, list[Start]], first: float, images: dict[str, list[Contained]], count: int) -> None:
    shipped = [_FOLDER, _FILE, *sorted((ROOT / "dist").glob("*.whl"))]
    table("sizes", ("artifact", "MB"), [(path.name, _megabytes(path)) for path in shipped])
    rows = [
        (name, median(s.healthy for s in runs) * 1000, median(s.cpu for s in runs) * 1000)
        for name, runs in starts.items()
    ]
    rows.append((f"{_SINGLE}, the first time", first * 1000, 0.0))
    table(f"from the start of the process to /healthz, {count} rounds (medians, ms)", ("program", "wall", "cpu"), rows)
    if images:
        table(
            f"containers (medians, ms; load {os.getloadavg()[0]:.1f})",
            ("image", "podman run", "podman start", "of that the program", "podman stop under load"),
            [(name, *(median(once[at] for once in runs) * 1000 for at in range(4))) for name, runs in images.items()],
        )


if __name__ == "__main__":
    raise SystemExit(main())
