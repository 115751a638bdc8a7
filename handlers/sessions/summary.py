"""Generated summaries and tags: by keywords, by the first line, or by a local GGUF model."""

import atexit
import re
import threading
from collections.abc import Mapping
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from kernel.core.errors import Fault
from kernel.core.lazy_regex import regex

MAX_SUMMARY_LENGTH = 240  # characters, as in the original
_LIBRARY = "llama_cpp"
_TAG_SCAN_LENGTH = 20_000  # characters
_ELLIPSIS = "..."
_SPARE_TOKENS = 16  # the prompt as a whole may take more tokens than its parts
_FALLBACK_TAG = "general"
# The word forms of each tag, matched as whole words: "build" is not `ui`, "latest" is not `test`.
_TAG_WORDS = {
    "bug": r"bugs?|buggy|bugfix(?:es)?",
    "error": r"errors?|(?-i:[A-Z][^\W_]*Error)",
    "fix": r"fix(?:e[sd]|ing)?|(?:bug|hot)fix(?:es)?",
    "database": r"databases?",
    "api": r"apis?",
    "frontend": r"front-?ends?",
    "backend": r"back-?ends?",
    "ui": r"uis?",
    "test": r"test(?:s|ed|er|ers|ing)?",
    "deploy": r"deploy(?:s|ed|ing|ments?)?",
}
_TAG_PATTERNS = {name: regex(rf"(?<![^\W_])(?:{forms})(?![^\W_])", re.I) for name, forms in _TAG_WORDS.items()}
_PROMPT = (
    "Summarise this note of a software developer in one to three plain sentences. Keep names, numbers and decisions. "
    "Write nothing but the summary."
)
_model_lock = threading.Lock()  # the library is not safe to share between threads


class SummaryModel(NamedTuple):
    """A GGUF model and its parameters: the settings `CODE_MEMORY_SUMMARY_*`."""

    model: str  # path
    ctx: int
    threads: int
    max_tokens: int
    temperature: float
    top_p: float
    repeat_penalty: float
    gpu_layers: int
    max_chars: int
    prompt: str


def default_tags(content: str) -> str:
    """Return the tags with a word in the content, in a fixed order, separated by commas; `general` for none."""
    start = content[:_TAG_SCAN_LENGTH]
    folded = start.casefold()
    likely = (name for name in _TAG_PATTERNS if name.removesuffix("end") in folded)  # a part of each of its forms
    return ",".join(name for name in likely if _TAG_PATTERNS[name].search(start)) or _FALLBACK_TAG


def first_line(content: str) -> str:
    """Return the first line that holds a letter or digit, at most 240 characters."""
    lines = [line.strip() for line in content.strip().splitlines()]
    line = next((line for line in lines if any(letter.isalnum() for letter in line)), lines[0] if lines else "")
    return line if len(line) <= MAX_SUMMARY_LENGTH else line[: MAX_SUMMARY_LENGTH - len(_ELLIPSIS)].rstrip() + _ELLIPSIS


def has_library() -> bool:
    return find_spec(_LIBRARY) is not None


def configured_model(settings: Mapping[str, Any]) -> SummaryModel | None:
    """Return the configured model; None without a model or without llama-cpp-python."""
    if not settings["CODE_MEMORY_SUMMARY_MODEL"] or not has_library():
        return None
    return SummaryModel(*(settings[f"CODE_MEMORY_SUMMARY_{name.upper()}"] for name in SummaryModel._fields))


def model_summary(model: SummaryModel, content: str) -> str:
    """Return a summary by the model, at most 240 characters; the first line if the model fails or returns nothing."""
    try:
        with _model_lock:
            library = _cached_model(model.model, model.ctx, model.threads, model.gpu_layers)
            completion = library.create_completion(
                _prompt(model, library, content),
                max_tokens=model.max_tokens,
                temperature=model.temperature,
                top_p=model.top_p,
                repeat_penalty=model.repeat_penalty,
                stop=["\n\n"],
            )
    except (OSError, ValueError, RuntimeError, Fault):
        return first_line(content)
    text = "".join(letter if letter.isprintable() else " " for letter in str(completion["choices"][0]["text"]))
    return first_line(" ".join(text.split())[: model.max_chars]) or first_line(content)


def _prompt(model: SummaryModel, library: Any, content: str) -> str:
    """Return the instruction, and as much of the content as leaves room for the completion."""
    before, after = f"{model.prompt or _PROMPT}\n\n", "\n\nSUMMARY:"
    overhead = len(library.tokenize((before + after).encode()))
    tokens = library.tokenize(content.encode(), add_bos=False)
    room = max(0, model.ctx - model.max_tokens - overhead - _SPARE_TOKENS)
    if len(tokens) > room:
        content = library.detokenize(tokens[:room]).decode(errors="ignore")
    return f"{before}{content}{after}"


def _open_model(path: str, context: int, threads: int, gpu_layers: int) -> Any:
    if not Path(path).is_file():
        raise Fault("disabled", f"There is no model file {Path(path).name}.")
    library: Any = import_module(_LIBRARY)
    model = library.Llama(
        model_path=path, n_ctx=context, n_threads=threads, n_gpu_layers=gpu_layers, verbose=False, seed=0
    )
    atexit.register(model.close)  # otherwise its finalizer reports an error at interpreter exit
    return model


_cached_model = lru_cache(maxsize=1)(_open_model)
