"""The settings of `sessions`, under the names of the original."""

from typing import Any

from handlers.sessions.scoring import ScoreWeights
from kernel.calls.settings import Setting, flag, fraction, number, setting, text
from kernel.store.transaction import Tx

MAX_RESULTS = 1000
MAX_ID = 2**63 - 1
SETTINGS = (
    Setting("CODE_MEMORY_ENABLE_VEC", True, flag, "search by meaning"),
    Setting("CODE_MEMORY_ENABLE_FTS", True, flag, "search by words"),
    Setting("CODE_MEMORY_ENABLE_GRAPH", False, flag, "keep a graph of entities, and the four graph tools"),
    Setting("CODE_MEMORY_ENABLE_SESSION_SCOPE", True, flag, "search_memory stays within its session"),
    Setting("CODE_MEMORY_SESSION_ID", "", text, "session of the calls that name none", supplies=("session_id",)),
    Setting("CODE_MEMORY_TOP_K", 12, number(1, 1000), "limit of search_memory"),
    Setting("CODE_MEMORY_TOP_P", 0.6, fraction(0.0, 1.0), "newest share of the candidates that is kept in any case"),
    Setting("CODE_MEMORY_OVERSAMPLE_K", 4, number(1, 64), "candidates for each result"),
    Setting("CODE_MEMORY_PRIORITY_WEIGHT", 0.15, fraction(0.0, 100.0), "what a step of priority adds to a score"),
    Setting("CODE_MEMORY_RECENCY_WEIGHT", 0.2, fraction(0.0, 100.0), "what age adds to a score, at most"),
    Setting("CODE_MEMORY_FTS_BONUS", 0.1, fraction(0.0, 100.0), "what a hit by words takes off"),
    Setting("CODE_MEMORY_WORKSPACE", "", text, "shown by health; the working directory if empty", personal=True),
    Setting("CODE_MEMORY_SUMMARY_MODEL", "", text, "path of a GGUF model that writes summaries"),
    Setting("CODE_MEMORY_SUMMARY_CTX", 2048, number(256, 1_048_576), "context of that model, in tokens"),
    Setting("CODE_MEMORY_SUMMARY_THREADS", 4, number(1, 256), "threads of that model"),
    Setting("CODE_MEMORY_SUMMARY_MAX_TOKENS", 200, number(1, 4096), "longest summary, in tokens"),
    Setting("CODE_MEMORY_SUMMARY_TEMPERATURE", 0.2, fraction(0.0, 2.0), "sampling temperature"),
    Setting("CODE_MEMORY_SUMMARY_TOP_P", 0.9, fraction(0.0, 1.0), "sampling nucleus"),
    Setting("CODE_MEMORY_SUMMARY_REPEAT_PENALTY", 1.05, fraction(0.0, 2.0), "penalty for repetition"),
    Setting("CODE_MEMORY_SUMMARY_GPU_LAYERS", 0, number(-1, 1000), "layers on the GPU"),
    Setting("CODE_MEMORY_SUMMARY_MAX_CHARS", 300, number(1, 100_000), "most characters taken of what the model wrote"),
    Setting("CODE_MEMORY_SUMMARY_PROMPT", "", text, "instruction put before the content"),
)


def option(tx: Tx, name: str) -> Any:
    return setting(tx, f"CODE_MEMORY_{name}")


def weights(tx: Tx) -> ScoreWeights:
    return ScoreWeights(option(tx, "FTS_BONUS"), option(tx, "PRIORITY_WEIGHT"), option(tx, "RECENCY_WEIGHT"))
