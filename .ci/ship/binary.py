"""Build dist/quipu, a folder that runs without Python, and but for Windows dist/quipu.run, the same in one file.

Called by `make binary` with the Python that holds PyInstaller. The same sources and tools give the same bytes.
"""

import gzip
import hashlib
import os
import subprocess
import sys
import tarfile
from io import BytesIO
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER, FILE = ROOT / "dist" / "quipu", ROOT / "dist" / "quipu.run"


def freeze() -> None:
    """Runs PyInstaller, whose archives follow the hash seed and the date."""
    fixed = {**os.environ, "PYTHONHASHSEED": "0", "SOURCE_DATE_EPOCH": "0"}
    options = ["--noconfirm", "--clean", "--log-level", "WARN", "--distpath", "dist", "--workpath", "build/binary"]
    subprocess.run(
        [sys.executable, "-m", "PyInstaller", *options, ".ci/ship/quipu.spec"], cwd=ROOT, env=fixed, check=True
    )


def payload() -> bytes:
    """The folder as a compressed archive without owners and times."""

    def anonymous(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        entry.uid = entry.gid = entry.mtime = 0
        entry.uname = entry.gname = ""
        return entry

    packed = BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for path in sorted(FOLDER.rglob("*")):
            archive.add(path, path.relative_to(FOLDER).as_posix(), recursive=False, filter=anonymous)
    return gzip.compress(packed.getvalue(), mtime=0)


def write_file() -> None:
    """Puts the script that unpacks the archive in front of it."""
    script = (ROOT / ".ci" / "ship" / "unpack.sh").read_text(encoding="utf-8")
    content = payload()
    script = script.replace("@ID@", hashlib.sha256(content).hexdigest()[:16])
    script = script.replace("@LINES@", str(script.count("\n") + 1))
    FILE.write_bytes(script.encode() + content)
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
