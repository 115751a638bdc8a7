"""The wheel takes one name in site-packages, is small, and works beside any other package."""

import re
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from kernel.core.config import VERSION
from tests.packaging.programs import environment, running
from tests.reliability.server_process import ROOT

DIST_INFO = f"quipu_memory-{VERSION}.dist-info"
WHEEL_MB = 16
INSTALLED_MB = 150  # with numpy, half of it, the model, 19, and bytecode
# Besides quipu-memory and sqlite-vec, on the Python that needs most of them. Two are Jinja2 and MarkupSafe, 2 MB, which
# only the console imports: it is for everybody, so it is no extra.
MOST_PACKAGES = 18
RIVALS = ("kernel", "handlers", "sql")


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, freshly built."""
    folder = tmp_path_factory.mktemp("wheel")
    run([sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)], ROOT)
    [built] = folder.glob("*.whl")
    return built


@pytest.fixture(scope="session")
def rival(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel of other people with top-level packages of our names, which it imports whenever Python starts."""
    built = tmp_path_factory.mktemp("rival") / "rival-1.0-py3-none-any.whl"
    files = {f"{name}/__init__.py": f"RIVAL = {name!r}\n" for name in RIVALS}
    files["rival.pth"] = "import kernel, handlers\n"
    files["rival-1.0.dist-info/METADATA"] = "Metadata-Version: 2.1\nName: rival\nVersion: 1.0\n"
    files["rival-1.0.dist-info/WHEEL"] = "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    record = "rival-1.0.dist-info/RECORD"
    files[record] = "".join(f"{name},,\n" for name in [*files, record])
    with zipfile.ZipFile(built, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return built


def run(command: Sequence[str], folder: Path, **more: str) -> str:
    """Return the output of a command."""
    done = subprocess.run(command, cwd=folder, env=environment(**more), capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout


def megabytes(folder: Path) -> float:
    """The size of all files below a folder, in MB of 10**6 bytes."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 1e6


def test_the_wheel_takes_one_name_and_is_small(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {name.partition("/")[0] for name in names} == {"quipu_memory", DIST_INFO}
    assert [name for name in names if "__pycache__" in name] == []
    assert wheel.stat().st_size / 1e6 <= WHEEL_MB


def test_the_wheel_holds_every_file_that_the_clone_runs(wheel: Path) -> None:
    kept = {
        str(file.relative_to(ROOT))
        for top in RIVALS
        for file in (ROOT / top).rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    with zipfile.ZipFile(wheel) as archive:
        names = {name.removeprefix("quipu_memory/_app/") for name in archive.namelist()}
    assert kept - names == set()


def test_it_runs_where_others_have_the_same_names_and_have_them_first(wheel: Path, rival: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    for one in (rival, wheel):
        with zipfile.ZipFile(one) as archive:
            archive.extractall(site)
    start = "import site, sys; site.addsitedir(sys.argv.pop(1)); assert sys.modules['kernel'].RIVAL; "
    start += "from quipu_memory.__main__ import main; main()"
    printed = run([sys.executable, "-c", start, str(site), "tools"], tmp_path, PYTHONPATH=str(site))
    assert printed == run([sys.executable, "-m", "kernel", "tools"], ROOT)


def test_a_hook_of_the_wheel_imports_nothing_of_the_server(wheel: Path, tmp_path: Path) -> None:
    """No server listens there, so that it prints nothing; `-X importtime` names the imports."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    start = [sys.executable, "-X", "importtime", "-c", "from quipu_memory.__main__ import main; main()", "hook"]
    words = [*start, "session-start", "--client", "claude", "--url", "http://127.0.0.1:9"]
    done = subprocess.run(words, cwd=tmp_path, input=b'{"cwd": "/"}', capture_output=True, timeout=60)
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.decode().splitlines()}
    assert (done.returncode, done.stdout) == (0, b"")
    assert "quipu_memory.hook_client" in imported
    assert {name for name in imported if name.partition(".")[0] in {*RIVALS, "msgspec", "argparse", "http"}} == set()


def test_links_of_the_readme_work_outside_the_repository(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        shown = archive.read(f"{DIST_INFO}/METADATA").decode()
    links = re.findall(r"\]\(([^)\s]+)\)", shown)
    start = f"https://github.com/quipu-memory/quipu/blob/v{VERSION}/"
    inside = [link.removeprefix(start).partition("#")[0] for link in links if link.startswith(start)]
    assert [link for link in links if not link.startswith(("https://", "#"))] == []
    assert len(inside) > 5
    assert [path for path in inside if not (ROOT / path).exists()] == []


SYSTEMS = {
    "glibc": {"sys_platform": "linux", "platform_machine": "x86_64"},
    "Alpine": {"sys_platform": "linux", "platform_machine": "aarch64"},
    "macOS": {"sys_platform": "darwin", "platform_machine": "arm64"},
    "Windows": {"sys_platform": "win32", "platform_machine": "AMD64"},
    "Windows on ARM": {"sys_platform": "win32", "platform_machine": "ARM64"},
}


@pytest.mark.parametrize("system", SYSTEMS)
def test_packages_without_a_wheel_for_a_system_are_not_installed_there(system: str) -> None:
    lock = ROOT / ".ci" / ("musl.lock" if system == "Alpine" else "runtime.lock")
    locked = re.findall(r"^([a-z0-9-]+==[^\\\n]+)", lock.read_text(encoding="utf-8"), re.MULTILINE)
    environment = {**SYSTEMS[system], "python_full_version": "3.13.1", "python_version": "3.13"}
    wanted = {
        found.name for found in map(Requirement, locked) if found.marker is None or found.marker.evaluate(environment)
    }
    assert len(wanted - {"sqlite-vec"}) <= MOST_PACKAGES
    assert wanted & {"huggingface-hub", "tokenizers"} == set()
    assert ("sqlite-vec" in wanted) == (system not in {"Alpine", "Windows on ARM"})


@pytest.mark.ship
def test_pip_installs_it_into_an_empty_environment_and_a_rival_changes_nothing(
    wheel: Path, rival: Path, tmp_path: Path
) -> None:
    run([sys.executable, "-m", "venv", str(tmp_path / "env")], tmp_path)
    programs = tmp_path / "env" / ("Scripts" if sys.platform == "win32" else "bin")
    python, quipu = str(programs / "python"), str(programs / "quipu")
    pip = [python, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    [site] = (tmp_path / "env").glob("lib/python*/site-packages")
    before = megabytes(site)
    run([*pip, "install", str(wheel)], tmp_path)
    assert megabytes(site) - before <= INSTALLED_MB
    listed = run([quipu, "tools"], tmp_path)
    assert listed == run([sys.executable, "-m", "kernel", "tools"], ROOT)
    assert run([quipu, "--version"], tmp_path) == f"quipu {VERSION}\n"

    with running([quipu], tmp_path / "data") as server:
        assert server.remembers("car", "My automobile goes to the garage in May.", "vehicle maintenance")
        assert server.stop() == 0

    own = [python, "-c", "import kernel, handlers, sql; print(kernel.RIVAL, handlers.RIVAL, sql.RIVAL)"]
    for order in (["install", str(rival)], ["install", "--force-reinstall", "--no-deps", str(wheel)]):
        run([*pip, *order], tmp_path)
        assert run([quipu, "tools"], tmp_path) == listed
        assert run(own, tmp_path).split() == list(RIVALS)
    run([*pip, "uninstall", "--yes", "rival"], tmp_path)
    assert run([python, "-m", "quipu_memory", "tools"], tmp_path) == listed
    run([*pip, "uninstall", "--yes", "quipu-memory"], tmp_path)
    assert not (site / "quipu_memory").exists()
    assert not Path(quipu).exists()
    assert any((tmp_path / "data").iterdir())  # the memories are the user's
