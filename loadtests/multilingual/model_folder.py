"""Writes a model folder in model2vec's format, with new rows of few levels so that a wheel holds them in little."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from shutil import copyfile
from typing import TYPE_CHECKING, Any
from zlib import crc32

import msgspec
import numpy as np

from kernel.embed.model import MORE_BITS, MORE_KEYS, bits_of
from loadtests.multilingual.vocabulary import Shipped, more_keys

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

_KINDS = {"int8": "I8", "uint16": "U16", "uint32": "U32", "uint64": "U64"}
_LENGTHS = 16  # distinct lengths of the new rows
_BITS_BYTES = 1 << 18  # a text that is no key has its bit set in .08 of cases; twice as many bytes save .01 of the time


def few_levels(directions: "Floats", lengths: "Floats", levels: int) -> "NDArray[np.int8]":
    """Return rows of the directions with components of 3 or 7 levels, near the lengths."""
    size = np.abs(directions).mean(axis=1, keepdims=True)
    most = levels // 2
    steps = np.clip(np.rint(directions / (size * (1.25 if most == 1 else 0.66))), -most, most)
    unit = float(np.median(np.linalg.norm(steps, axis=1)))
    edges = np.quantile(lengths, np.linspace(0, 1, _LENGTHS + 1))
    middles = (edges[1:] + edges[:-1]) / 2
    nearest = middles[np.abs(lengths[:, None] - middles).argmin(axis=1)]
    return np.clip(steps * np.maximum(1, np.rint(nearest / unit))[:, None], -127, 127).astype(np.int8)


def write(folder: Path, shipped: Shipped, rows: Mapping[str, int], new: "NDArray[np.int8]") -> None:
    """Write the folder: the shipped files, with the new rows and keys in `model.safetensors` (see `MoreKeys`)."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("config.json", "tokenizer.json"):
        copyfile(shipped.folder / name, folder / name)
    tensors: dict[str, NDArray[Any]] = {"embeddings": shipped.rows, "more_embeddings": new}
    columns = more_keys(rows, np.uint16 if len(shipped.rows) + len(new) <= 1 << 16 else np.uint32)
    _safetensors(folder / "model.safetensors", tensors | dict(zip(MORE_KEYS, columns, strict=True)))
    _bits(folder / MORE_BITS, columns[0], bytes(_BITS_BYTES), rows)


def add_keys(folder: Path, into: Path, ids: Mapping[str, int]) -> None:
    """Write a folder with the rows of another and more keys for them."""
    raw = (folder / "model.safetensors").read_bytes()
    start = 8 + int.from_bytes(raw[:8], "little")
    tensors: dict[str, NDArray[Any]] = {}
    for name, about in msgspec.json.decode(raw[8:start]).items():
        first, end = about["data_offsets"]
        kind = next(kind for kind, name in _KINDS.items() if name == about["dtype"])
        tensors[name] = np.frombuffer(raw[start + first : start + end], kind).reshape(about["shape"])
    bits = bits_of(tensors[MORE_KEYS[0]], folder / MORE_BITS)
    for hashes, values in (MORE_KEYS[:2], MORE_KEYS[2:]):
        columns = dict(zip(MORE_KEYS, more_keys(ids, tensors["more_ids"].dtype.type), strict=True))
        merged = dict(zip(tensors[hashes].tolist(), tensors[values].tolist(), strict=True))
        for code, value in zip(columns[hashes].tolist(), columns[values].tolist(), strict=True):
            merged[code] = merged.get(code, 0) | value if hashes == MORE_KEYS[2] else value
        order = sorted(merged)
        tensors[hashes] = np.array(order, np.uint64)
        tensors[values] = np.array([merged[code] for code in order], tensors[values].dtype)
    into.mkdir(parents=True, exist_ok=True)
    for name in ("config.json", "tokenizer.json"):
        copyfile(folder / name, into / name)
    _safetensors(into / "model.safetensors", tensors)
    _bits(into / MORE_BITS, tensors[MORE_KEYS[0]], bits, ids)


def _bits(file: Path, hashes: "NDArray[np.uint64]", bits: bytes, keys: Iterable[str]) -> None:
    """Write the bits of more keys, and which hashes all have."""
    table = bytearray(bits)
    for key in keys:
        bit = crc32(key.encode())
        table[bit >> 3 & len(table) - 1] |= 1 << (bit & 7)
    file.write_bytes(np.bitwise_xor.reduce(hashes).tobytes() + table)


def _safetensors(file: Path, tensors: Mapping[str, "NDArray[Any]"]) -> None:
    header, start = dict[str, object](), 0
    # Each tensor begins at a multiple of its element's size, as the rows of 256 bytes end at.
    tensors = dict(sorted(tensors.items(), key=lambda item: -item[1].itemsize if item[0] in MORE_KEYS else -9))
    for name, tensor in tensors.items():
        header[name] = {
            "dtype": _KINDS[str(tensor.dtype)],
            "shape": tensor.shape,
            "data_offsets": (start, start + tensor.nbytes),
        }
        start += tensor.nbytes
    text = msgspec.json.encode(header)
    text += b" " * (-len(text) % 8)
    body = b"".join(np.ascontiguousarray(tensor).tobytes() for tensor in tensors.values())
    file.write_bytes(len(text).to_bytes(8, "little") + text + body)
