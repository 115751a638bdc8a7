"""Build dist/quipu, a folder that runs without Python, and but for Windows dist/quipu.run, the same in one file.

Called by `make binary` with the Python that holds PyInstaller. The same sources and tools give the same bytes. The file
takes a C compiler with zlib, on Linux those that link statically.
"""

import gzip
import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

SHIP = Path(__file__).resolve().parent
ROOT = SHIP.parents[1]
FOLDER, FILE = ROOT / "dist" / "quipu", ROOT / "dist" / "quipu.run"


def freeze() -> None:
    """Runs PyInstaller, whose archives follow the hash seed and the date."""
    fixed = {**os.environ, "PYTHONHASHSEED": "0", "SOURCE_DATE_EPOCH": "0"}
    options = ["--noconfirm", "--clean", "--log-level", "WARN", "--distpath", "dist", "--workpath", "build/binary"]
    subprocess.run(
        [sys.executable, "-m", "PyInstaller", *options, ".ci/ship/quipu.spec"], cwd=ROOT, env=fixed, check=True
    )


def c_library() -> list[Path]:
    """The loader of the system, first, and the libraries that the folder takes from it."""
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary) / "root"
        subprocess.run([SHIP / "root", FOLDER, root], check=True)
        files = [file for file in root.rglob("*.so*") if root / "quipu" not in file.parents]
        libraries = [Path("/") / file.relative_to(root) for file in sorted(files)]
    return sorted(libraries, key=lambda file: not file.name.startswith("ld-"))


def entry(kind: str, path: str, content: bytes, mode: int = 0) -> bytes:
    """One entry of the archive as the launcher reads it, without owners and times."""
    return f"{kind} {mode:o} {len(content)} {path}\n".encode() + content


def payload(libraries: Sequence[Path]) -> bytes:
    """The folder, and below lib/ the C library, as a compressed archive."""
    entries: list[bytes] = []
    for path in sorted(FOLDER.rglob("*")):
        name = path.relative_to(FOLDER).as_posix()
        if path.is_symlink():
            entries.append(entry("l", name, path.readlink().as_posix().encode()))
        elif path.is_dir():
            entries.append(entry("d", name, b""))
        else:
            entries.append(entry("f", name, path.read_bytes(), 0o755 if os.access(path, os.X_OK) else 0o644))
    entries.append(entry("d", "lib", b""))
    entries += [entry("f", f"lib/{file.name}", file.read_bytes(), 0o755) for file in libraries]
    return gzip.compress(b"".join(entries), mtime=0)


def write_file() -> None:
    """Compiles the launcher, and puts the archive behind it."""
    libraries = c_library() if sys.platform == "linux" else []
    options = ["-static", f'-DLOADER="{libraries[0].name}"'] if libraries else []
    launcher = ROOT / "build" / "launcher"
    compiler = os.environ.get("CC", "cc")
    subprocess.run([compiler, "-O2", "-s", "-Wall", *options, "-o", launcher, SHIP / "launcher.c", "-lz"], check=True)
    program, archive = launcher.read_bytes(), payload(libraries)
    trailer = f"{len(program):016x}{hashlib.sha256(archive).hexdigest()[:16]}".encode()
    FILE.write_bytes(program + archive + trailer)
    FILE.chmod(0o755)


def megabytes(path: Path) -> float:
    """The size of a file or of all files in a folder."""
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file() and not file.is_symlink()]
    return sum(file.stat().st_size for file in files) / 1e6


freeze()
if sys.platform != "win32":
    write_file()
for built in (FOLDER, FILE):
    if built.exists():
        sys.stdout.write(f"{megabytes(built):.0f} MB  {built.relative_to(ROOT)}\n")
