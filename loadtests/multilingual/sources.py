"""Fetches and unpacks the packages of `sources.lock` from their registries: PyPI, npm and Debian 12."""

import hashlib
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

LOCK = Path(__file__).with_name("sources.lock")
_TRANSLATIONS = "en cs de el es fr id it ja ko nl pl pt pt_BR ru sv tr uk vi zh_CN"


class Source(NamedTuple):
    """A package with its exact version, and the SHA-256 of its file."""

    registry: str
    name: str
    version: str
    digest: str


def sources() -> list[Source]:
    """Return the packages of the lock file."""
    return [Source(*line.split()) for line in LOCK.read_text(encoding="ascii").splitlines() if not line.startswith("#")]


def fetch(folder: Path) -> Path:
    """Return the folder under which each package is unpacked by its name; fetch those that it lacks.

    A file with another SHA-256 than the lock's ends the run.
    """
    files, unpacked = folder / "files", folder / "unpacked"
    files.mkdir(parents=True, exist_ok=True)
    for source in sources():
        target = unpacked / source.name
        if target.is_dir():
            continue
        file = _descriptions(files) if source.registry == "lists" else _downloaded(source, files)
        if (digest := hashlib.sha256(file.read_bytes()).hexdigest()) != source.digest:
            raise SystemExit(f"{file.name} has SHA-256 {digest}, the lock says {source.digest}")
        partial = target.with_name(f"{source.name}.partial")
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        _unpack(file, partial)
        partial.rename(target)
    return unpacked


def _downloaded(source: Source, files: Path) -> Path:
    folder = files / f"{source.name}-{source.version.replace(':', '_')}"
    folder.mkdir(exist_ok=True)
    if not any(folder.iterdir()):
        exact = f"{source.name}{'@' if source.registry == 'npm' else '=' * (2 if source.registry == 'pypi' else 1)}"
        exact += source.version
        commands: dict[str, Sequence[str]] = {
            "pypi": (sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:", exact),
            "npm": ("npm", "pack", "--silent", exact),
            "debian": ("apt-get", "-q", "-o", "APT::Sandbox::User=", "download", exact),
        }
        subprocess.run(commands[source.registry], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return next(iter(folder.iterdir()))


def _descriptions(files: Path) -> Path:
    """Return an archive of the translated descriptions of Debian's packages; the same lists give the same bytes."""
    archive, lists = files / "descriptions.tar", files / "lists"
    if not archive.is_file():
        (lists / "partial").mkdir(parents=True, exist_ok=True)
        options = {
            "APT::Sandbox::User": "",
            "Dir::State::lists": str(lists),
            "Dir::Cache": str(files),
            "Acquire::GzipIndexes": "false",
            "Acquire::Languages": _TRANSLATIONS.replace(" ", ","),
        }
        flags = [part for name, value in options.items() for part in ("-o", f"{name}={value}")]
        subprocess.run(["apt-get", "-q", *flags, "update"], check=True, stdout=subprocess.DEVNULL)
        with tarfile.open(archive, "w", format=tarfile.USTAR_FORMAT) as tar:
            for file in sorted(lists.glob("*dists_bookworm_main_i18n_Translation-*"), key=lambda file: file.name[-24:]):
                entry = tarfile.TarInfo(file.name[file.name.index("Translation-") :])
                entry.size = file.stat().st_size
                with file.open("rb") as content:
                    tar.addfile(entry, content)
    return archive


def _unpack(file: Path, into: Path) -> None:
    if file.suffix == ".deb":
        subprocess.run(["dpkg-deb", "-x", str(file), str(into)], check=True)
    elif file.suffix == ".whl":
        with zipfile.ZipFile(file) as wheel:
            wheel.extractall(into)
    else:
        with tarfile.open(file) as tar:
            tar.extractall(into, filter="data")
