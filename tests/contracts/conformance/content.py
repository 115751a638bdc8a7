"""The shared parts of the fixtures: no arguments, and the content blocks that the conformance suite expects."""

import base64
import struct
import zlib
from collections.abc import Mapping
from typing import Any

import msgspec

Block = Mapping[str, Any]


class Nothing(msgspec.Struct):
    """The arguments of a tool that takes none."""


def text(value: str) -> Block:
    return {"type": "text", "text": value}


def image() -> Block:
    return {"type": "image", "data": base64.b64encode(PNG).decode(), "mimeType": "image/png"}


def audio() -> Block:
    return {"type": "audio", "data": base64.b64encode(WAV).decode(), "mimeType": "audio/wav"}


def embedded(uri: str, media: str, value: str) -> Block:
    return {"type": "resource", "resource": {"uri": uri, "mimeType": media, "text": value}}


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


# One red pixel, and one sample of silence.
PNG = (
    b"\x89PNG\r\n\x1a\n"
    + _chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0))
    + _chunk(b"IDAT", zlib.compress(b"\x00\xff\x00\x00"))
    + _chunk(b"IEND", b"")
)
_SOUND = b"WAVE" + b"fmt " + struct.pack("<IHHIIHH", 16, 1, 1, 8000, 8000, 1, 8) + b"data" + struct.pack("<IB", 1, 128)
WAV = b"RIFF" + struct.pack("<I", len(_SOUND)) + _SOUND
