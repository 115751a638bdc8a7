"""Calls, values and checks that several tests of model share."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers


def save(folder: Path, tokenizer: Any, config: dict[str, Any] | None = None, **tensors: Any) -> Path:
    folder.mkdir()
    tokenizer.save(str(folder / "tokenizer.json"))
    safetensors.numpy.save_file(tensors, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps({"normalize": True} if config is None else config))
    return folder


def bert(vocabulary: list[str], lower: bool = True, strip: bool | None = None, most: int = 100) -> Any:
    known = {word: at for at, word in enumerate(vocabulary)}
    made: Any = Tokenizer(models.WordPiece(known, unk_token="[UNK]", max_input_chars_per_word=most))
    made.normalizer = normalizers.BertNormalizer(lowercase=lower, strip_accents=strip)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return made


def matrix(rows: int, kind: str = "f4") -> Any:
    values = np.random.default_rng(rows).normal(size=(rows, 32))
    return (values * 30).clip(-127, 127).astype("i1") if kind == "i1" else values.astype(kind)


def english(model: Path, folder: Path) -> Path:
    """Copies the shipped model into a folder, without the rows and keys of other languages."""
    tensors = safetensors.numpy.load_file(model / "model.safetensors")
    folder.mkdir()
    for name in ("config.json", "tokenizer.json"):
        (folder / name).write_bytes((model / name).read_bytes())
    rows = {"embeddings": tensors["embeddings"]}
    safetensors.numpy.save_file(rows, folder / "model.safetensors")
    return folder
