"""`python -m loadtests.quality.original_decision MINILM` compares smart_save_memory with the original's decision.

The original asks if the L2 distance of all-MiniLM-L6-v2 is below .9. Of each pair one text is stored, the other is
offered over HTTP. The pairs: corrections and controls of the files, and generated facts in other wordings, newer, about
another person, half of which families were for choosing. MINILM is the folder that kernel/model/README.md names.
"""

import random
import sys
import tempfile
from pathlib import Path

import numpy as np

from loadtests.lib.servers import quipu, table
from loadtests.quality import paraphrases, succession
from loadtests.quality.mcp_client import Caller
from loadtests.quality.minilm_baseline import Transformer

_LIMIT = 0.9  # of the contract
_PEOPLE = "Ada Bruno Chiara Dmitri Elena Farid Greta Hugo Ines Jonas".split()
_OF_FAMILY = 4


def main() -> None:
    """Print the precision, recall and F1 of each set, and of those for judging."""
    sets = {f"{name}, {half}": _facts(text) for name, text, half in _GENERATED}
    for name, half in (("succession", "choosing"), ("changes", "judging"), ("contradictions", "judging"), _NEW):
        sets[f"{name}, {half}"] = [(pair.older, pair.newer) for pair in succession.pairs(f"{name}.txt")]
    texts = sorted({text for pairs in sets.values() for pair in pairs for text in pair})
    vectors = dict(zip(texts, Transformer(Path(sys.argv[1])).embed(texts), strict=True))
    asked, wanted = {}, {}
    with tempfile.TemporaryDirectory() as data, quipu(Path(data)) as server:
        caller = Caller(server.port)
        for name, pairs in sets.items():
            asked[name] = [_is_asked_about(caller, *pair) for pair in pairs]
            wanted[name] = [bool(np.linalg.norm(vectors[old] - vectors[new]) < _LIMIT) for old, new in pairs]
        caller.close()
    judged = [name for name in sets if name.endswith("judging")]
    rows = [_row(name, asked[name], wanted[name]) for name in sets]
    rows.append(_row("all for judging", *([flag for name in judged for flag in by[name]] for by in (asked, wanted))))
    table(
        "smart_save_memory and the original", ("set", "pairs", "both ask", "ours alone", "original alone", "F1"), rows
    )


_GENERATED = (
    ("generated facts", paraphrases.FITTED, "choosing"),
    ("generated facts", paraphrases.HELD_OUT, "judging"),
)
_NEW = ("corrections", "judging")


def _facts(families: str) -> list[tuple[str, str]]:
    rng = random.Random(3)
    pairs: list[tuple[str, str]] = []
    for family in families.strip().split("\n\n"):
        *wordings, values = family.splitlines()
        for _ in range(_OF_FAMILY):
            (one, other), (value, newer) = rng.sample(_PEOPLE, 2), rng.sample(values.split(), 2)
            first, second = rng.sample(wordings, 2)
            text = first.format(s=one, v=value)
            pairs += [
                (text, second.format(s=one, v=value)),
                (text, second.format(s=one, v=newer)),
                (text, first.format(s=other, v=newer)),
                (text, second.format(s=other, v=newer)),
            ]
    return pairs


def _is_asked_about(caller: Caller, stored: str, offered: str) -> bool:
    memory = caller.call("save_memory", db="core", category="fact", content=stored)["id"]
    answer = caller.call("smart_save_memory", db="core", category="fact", content=offered)
    added = answer["memory"]["id"] if answer["action"] == "added" else None
    for key in filter(None, (memory, added)):
        caller.call("update_memory", db="core", id=key, status="archived")
    return added is None


def _row(name: str, asked: list[bool], wanted: list[bool]) -> tuple[str, ...]:
    both = sum(mine and theirs for mine, theirs in zip(asked, wanted, strict=True))
    share = 2 * both / max(1, sum(asked) + sum(wanted))
    return name, str(len(asked)), str(both), str(sum(asked) - both), str(sum(wanted) - both), f"{share:.3f}"


if __name__ == "__main__":
    main()
