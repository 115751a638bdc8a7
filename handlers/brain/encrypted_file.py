"""Decrypts files of project-brain: SQLite3 Multiple Ciphers with its default cipher, ChaCha20-Poly1305.

Format: https://utelle.github.io/SQLite3MultipleCiphers/docs/ciphers/cipher_chacha20/
"""

import hashlib
import struct
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from kernel.core.errors import Fault

MAGIC = b"SQLite format 3\0"
_PBKDF2_ROUNDS = 64_007  # kdf_iter of the cipher
_SALT_BYTES, _PLAIN_HEADER_BYTES, _NONCE_BYTES, _TAG_BYTES = 16, 24, 16, 16
_RESERVED_BYTES = _NONCE_BYTES + _TAG_BYTES
_WAL_HEADER_BYTES, _FRAME_HEADER_BYTES = 32, 24
# Bytes 18 and 19 of the header: the plain copy has no write-ahead log (https://sqlite.org/fileformat2.html).
_FORMAT_VERSIONS_AT = 18
_ROLLBACK_JOURNAL = b"\x01\x01"
_HEADER_BYTES = 100


class _Ciphers(NamedTuple):
    cipher: Any
    chacha: Any
    poly: Any


def is_encrypted(path: Path) -> bool:
    """Return whether a file is not a plain SQLite file; an empty file is plain. Raises Fault if it cannot be read."""
    start = _read(path, len(MAGIC))
    return bool(start) and start != MAGIC


def decrypt(path: Path, password: str, target: Path) -> Path:
    """Decrypts a file and its write-ahead log into `target`; raises Fault if the password is wrong."""
    journal = path.with_name(f"{path.name}-journal")
    if journal.is_file() and _read(journal, 1) not in {b"", b"\0"}:
        raise Fault(
            "invalid", f"{path.name} has an unfinished transaction in {journal.name}: open it with project-brain."
        )
    start, length = _read(path, _HEADER_BYTES), path.stat().st_size
    size = int.from_bytes(start[16:18], "big")
    size = 65_536 if size == 1 else size
    if size < 512 or size & (size - 1) or length % size or start[20:21] != bytes([_RESERVED_BYTES]):
        raise Fault("invalid", f"{path.name} is neither a SQLite database nor one that project-brain encrypted.")
    library = _load_ciphers()
    key = hashlib.pbkdf2_hmac("sha256", password.encode(), start[:_SALT_BYTES], _PBKDF2_ROUNDS)
    try:
        _decrypt_file(library, key, path, size, target)
    except Fault:
        target.unlink()
        raise
    return target


def _decrypt_file(library: _Ciphers, key: bytes, path: Path, size: int, target: Path) -> None:
    with target.open("w+b") as plain_file:
        with path.open("rb") as file:
            for number in range(1, path.stat().st_size // size + 1):
                plain = _decrypt_page(library, key, number, file.read(size))
                if plain is None:
                    what = "The password does not open" if number == 1 else f"Page {number} is damaged in"
                    raise Fault("invalid", f"{what} {path.name}.")
                plain_file.write(plain)
        log = path.with_name(f"{path.name}-wal")
        if log.is_file():
            _apply_wal(library, key, log, size, plain_file)
        plain_file.seek(_FORMAT_VERSIONS_AT)
        plain_file.write(_ROLLBACK_JOURNAL)


def _apply_wal(library: _Ciphers, key: bytes, log: Path, size: int, target: BinaryIO) -> None:
    """Writes the pages of every committed transaction of the write-ahead log, and cuts the file to its size."""
    committed_pages, pending, pages = dict[int, int](), dict[int, int](), 0
    with log.open("rb") as file:
        salts = file.read(_WAL_HEADER_BYTES)[16:24]
        while len(frame := file.read(_FRAME_HEADER_BYTES + size)) == _FRAME_HEADER_BYTES + size:
            number, commit = struct.unpack(">2I", frame[:8])
            raw = frame[_FRAME_HEADER_BYTES:]
            if frame[8:16] != salts or not number or _decrypt_page(library, key, number, raw) is None:
                break
            pending[number] = file.tell() - size
            if commit:
                committed_pages.update(pending)
                pending, pages = {}, commit
        for number, at in committed_pages.items():
            file.seek(at)
            target.seek((number - 1) * size)
            target.write(_decrypt_page(library, key, number, file.read(size)) or b"")
    if pages:
        target.truncate(pages * size)


def _decrypt_page(library: _Ciphers, key: bytes, number: int, raw: bytes) -> bytes | None:
    """Return one decrypted page, or None if its Poly1305 tag does not match."""
    end = len(raw) - _RESERVED_BYTES
    nonce, tag = raw[end : end + _NONCE_BYTES], raw[end + _NONCE_BYTES :]
    counter = int.from_bytes(nonce[12:], "little") ^ number
    keys = _chacha20(library, key, nonce, counter, bytes(64))
    check = library.poly(keys[:32])
    check.update(raw[: end + _NONCE_BYTES])
    if check.finalize() != tag:
        return None
    start = _PLAIN_HEADER_BYTES if number == 1 else 0
    plain = _chacha20(library, keys[32:], nonce, counter + 1, raw[start:end])
    head = MAGIC + raw[_SALT_BYTES:_PLAIN_HEADER_BYTES] if number == 1 else b""
    return head + plain + raw[end:]


def _chacha20(library: _Ciphers, key: bytes, nonce: bytes, counter: int, data: bytes) -> bytes:
    algorithm = library.chacha(key, struct.pack("<I", counter & 0xFFFFFFFF) + nonce[:12])
    return library.cipher(algorithm, mode=None).encryptor().update(data)


def _load_ciphers() -> _Ciphers:
    try:
        from cryptography.hazmat.primitives.ciphers import Cipher
        from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20
        from cryptography.hazmat.primitives.poly1305 import Poly1305
    except ImportError:
        raise Fault(
            "disabled", "Encrypted files need the package cryptography: install quipu-memory[project-brain]."
        ) from None
    return _Ciphers(Cipher, ChaCha20, Poly1305)


def _read(path: Path, count: int = -1) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(count)
    except OSError as error:
        raise Fault("invalid", f"Cannot read {path.name}: {error.strerror}.") from None
