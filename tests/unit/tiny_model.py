"""A model2vec folder of a few words, written by hand: another model than the one that ships, read in no time."""

import json
import struct
from pathlib import Path

WORDS = ("[UNK]", "red", "green", "blue", "memory", "number", "color", "paths")
DIMENSIONS = 32


def tiny_model(folder: Path) -> Path:
    """Writes the model; each word points in a direction of its own."""
    folder.mkdir()
    tokenizer = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "post_processor": None,
        "decoder": None,
        "normalizer": {"type": "Lowercase"},
        "pre_tokenizer": {"type": "Whitespace"},
        "model": {
            "type": "WordLevel",
            "vocab": {word: number for number, word in enumerate(WORDS)},
            "unk_token": "[UNK]",
        },
    }
    (folder / "config.json").write_text(json.dumps({"max_length": 64}), encoding="utf-8")
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer), encoding="utf-8")
    rows = [
        [1.0 if column % len(WORDS) == number else 0.0 for column in range(DIMENSIONS)] for number in range(len(WORDS))
    ]
    data = b"".join(struct.pack(f"<{DIMENSIONS}f", *row) for row in rows)
    shape = {"dtype": "F32", "shape": [len(WORDS), DIMENSIONS], "data_offsets": [0, len(data)]}
    header = json.dumps({"embeddings": shape}).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + data)
    return folder
