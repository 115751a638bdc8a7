"""Contradicting writes: `python -m loadtests.quality.contradictions` tells how often smart_save_memory shows the fact.

The facts of changes.txt and contradictions.txt are stored first: what it asks about then is unrelated. Then come the
writes that contradict them, and those of the controls, which are about another subject of the same kind.
"""

import tempfile
from collections import Counter
from pathlib import Path

from loadtests.lib.servers import quipu, table
from loadtests.quality.mcp_client import Caller

_FOLDER = Path(__file__).parent


def main() -> None:
    """Store, write, and print a row for each kind."""
    texts = [(_FOLDER / f"{name}.txt").read_text(encoding="utf-8") for name in ("changes", "contradictions")]
    lines = [line for text in texts for line in text.splitlines()]
    pairs = [[part.strip() for part in line.split("|")] for line in lines if "|" in line and line[0] != "#"]
    with tempfile.TemporaryDirectory() as data, quipu(Path(data)) as server:
        caller = Caller(server.port)
        unrelated = sum(_shown(caller, pair[1], "") for pair in pairs)
        total, shown = Counter(pair[0] for pair in pairs), Counter[str]()
        for kind, stored, written, *_ in pairs:
            if kind == "control":
                shown[kind] += _shown(caller, written, "")
            elif _shown(caller, written, stored):
                shown[kind] += 1
            else:
                print(f"  {stored} / {written}")
        caller.close()
    rows = [("unrelated", str(len(pairs)), str(unrelated))]
    rows += [(kind, str(total[kind]), str(shown[kind])) for kind in total]
    table("smart_save_memory", ("kind", "writes", "asked about"), rows)


def _shown(caller: Caller, text: str, stored: str) -> bool:
    """Return whether a write is asked about, and the stored text is among what it is asked about."""
    answer = caller.call("smart_save_memory", db="core", category="fact", content=text)
    return answer["action"] == "needs_decision" and stored in str(answer["similar"])


if __name__ == "__main__":
    main()
