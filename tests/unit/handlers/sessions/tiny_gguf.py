"""A language model of one block with random weights, in the GGUF format: its text is meaningless but valid."""

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

_WIDTH, _INNER, _HEADS, _CONTEXT = 64, 128, 4, 512
_UNKNOWN, _CONTROL, _BYTE, _NORMAL = 2, 3, 6, 1


def tiny_gguf(file: Path) -> Path:
    """Writes the model; the same bytes each time."""
    gguf: Any = import_module("gguf")
    tokens = [b"<unk>", b"<s>", b"</s>", *(f"<0x{number:02X}>".encode() for number in range(256))]
    letters = ["\u2581".encode(), *(bytes([number]) for number in range(ord("a"), ord("z") + 1))]
    writer = gguf.GGUFWriter(str(file), "llama")
    writer.add_context_length(_CONTEXT)
    writer.add_embedding_length(_WIDTH)
    writer.add_block_count(1)
    writer.add_feed_forward_length(_INNER)
    writer.add_head_count(_HEADS)
    writer.add_head_count_kv(_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(_WIDTH // _HEADS)
    writer.add_vocab_size(len(tokens) + len(letters))
    writer.add_file_type(0)
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens + letters)
    writer.add_token_scores([0.0] * (len(tokens) + len(letters)))
    writer.add_token_types([_UNKNOWN, _CONTROL, _CONTROL] + [_BYTE] * 256 + [_NORMAL] * len(letters))
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    for name, values in _weights(len(tokens) + len(letters)).items():
        writer.add_tensor(f"{name}.weight", values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return file


def _weights(words: int) -> dict[str, Any]:
    chance = np.random.default_rng(1)
    shapes = {
        "token_embd": (words, _WIDTH),
        "output": (words, _WIDTH),
        "blk.0.attn_q": (_WIDTH, _WIDTH),
        "blk.0.attn_k": (_WIDTH, _WIDTH),
        "blk.0.attn_v": (_WIDTH, _WIDTH),
        "blk.0.attn_output": (_WIDTH, _WIDTH),
        "blk.0.ffn_gate": (_INNER, _WIDTH),
        "blk.0.ffn_up": (_INNER, _WIDTH),
        "blk.0.ffn_down": (_WIDTH, _INNER),
    }
    drawn: dict[str, Any] = {
        name: (chance.standard_normal(shape) * 0.3).astype(np.float32) for name, shape in shapes.items()
    }
    norms = ("output_norm", "blk.0.attn_norm", "blk.0.ffn_norm")
    return drawn | {name: np.ones(_WIDTH, np.float32) for name in norms}
