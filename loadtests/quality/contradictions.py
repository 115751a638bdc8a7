"""Contradicting writes: `python -m loadtests.quality.contradictions` tells how often smart_save_memory shows the fact,
and how often the answer of add_memory names it.

The facts of the files are stored first: one that it asks about then is unrelated. Then come the writes that contradict
them, and those of the controls, which are about another subject of the same kind.
"""

import tempfile
from collections import Counter
from pathlib import Path

from loadtests.lib.servers import quipu, table
from loadtests.quality import succession
from loadtests.quality.mcp_client import Caller

_NAMING = ("changes", "corrections", "subjects", "domains", "everyday", "mixed")  # a store for each
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
    _print_named()


def _print_named() -> None:
    """Print how often add_memory names the older statement; for a control, any of the older ones."""
    total, named = Counter[str](), Counter[str]()
    for name in _NAMING:
        pairs = succession.pairs(f"{name}.txt")
        with tempfile.TemporaryDirectory() as data, quipu(Path(data)) as server:
            caller = Caller(server.port)
            for number, pair in enumerate(pairs):
                caller.call("add_memory", path=f"older/{number}", content=pair.older)
            for number, pair in enumerate(pairs):
                paths = caller.call("add_memory", path=f"newer/{number}", content=pair.newer).get("may_contradict", [])
                total[pair.kind] += 1
                older = [path for path in paths if path.startswith("older/")]
                named[pair.kind] += bool(older) if pair.kind == "control" else f"older/{number}" in older
            caller.close()
    table("add_memory", ("kind", "writes", "named"), [(kind, str(total[kind]), str(named[kind])) for kind in total])


def _shown(caller: Caller, text: str, stored: str) -> bool:
    """Return whether a write is asked about, and the stored text is among what it is asked about."""
    answer = caller.call("smart_save_memory", db="core", category="fact", content=text)
    return answer["action"] == "needs_decision" and stored in str(answer["similar"])


if __name__ == "__main__":
    main()
