"""Contradicting writes: `python -m loadtests.quality.contradictions` tells how often smart_save_memory shows the fact.

The facts of the files are stored first: one that it asks about then is unrelated. Then come the writes that contradict
them, and those of the controls, which are about another subject of the same kind.
"""

import tempfile
from collections import Counter
from pathlib import Path

from loadtests.lib.servers import quipu, table
from loadtests.quality import succession
from loadtests.quality.mcp_client import Caller

_STORES = (("changes", "contradictions"), ("corrections",))  # of the sets that repeat no subject of each other


def main() -> None:
    """Store, write, and print a row for each kind."""
    total, shown = Counter[str](), Counter[str]()
    for names in _STORES:
        pairs = [pair for name in names for pair in succession.pairs(f"{name}.txt")]
        with tempfile.TemporaryDirectory() as data, quipu(Path(data)) as server:
            caller = Caller(server.port)
            total["unrelated"] += len(pairs)
            shown["unrelated"] += sum(_shown(caller, pair.older, "") for pair in pairs)
            total.update(pair.kind for pair in pairs)
            for pair in pairs:
                if _shown(caller, pair.newer, "" if pair.kind == "control" else pair.older):
                    shown[pair.kind] += 1
                elif pair.kind != "control":
                    print(f"  {pair.older} / {pair.newer}")
            caller.close()
    rows = [(kind, str(total[kind]), str(shown[kind])) for kind in total]
    table("smart_save_memory", ("kind", "writes", "asked about"), rows)


def _shown(caller: Caller, text: str, stored: str) -> bool:
    """Return whether a write is asked about, and the stored text is among what it is asked about."""
    answer = caller.call("smart_save_memory", db="core", category="fact", content=text)
    return answer["action"] == "needs_decision" and stored in str(answer["similar"])


if __name__ == "__main__":
    main()
