"""One table over all development collections: each tool of each dialect against plain FTS5, and abstention."""

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from loadtests.lib.servers import table
from loadtests.quality import fts5_baseline, tool_adapters
from loadtests.quality.dataset import Collection, read
from loadtests.quality.generated import COLLECTIONS
from loadtests.quality.mcp_client import Caller
from loadtests.quality.metrics import Interval, interval, judge
from loadtests.quality.strength import auc
from loadtests.quality.tool_adapters import DialectAdapter, Filled, JudgedTool

FOLDER = "QUIPU_EVALUATION_DATA"  # judged collections that are not part of the project, a folder each
_WANTED_GAIN = 0.03  # over plain FTS5, in nDCG@10
_MOST_BEHIND = 0.02  # behind recall
_HEADER = ("collection", "tool", "nDCG@10", "95 %", "-FTS5", "95 %", "-recall", "abstention AUC")
_FOREIGN = 20


def collections(most: int) -> list[Collection]:
    """Those of the folder in the environment, then those that are generated, with at most so many questions each."""
    root = os.environ.get(FOLDER, "")
    folders = sorted(one.parent for one in Path(root).glob("*/queries.jsonl")) if root else []
    found = [read(folder, most) for folder in folders]
    for make in COLLECTIONS.values():
        made = make()
        step = max(1, len(made.queries) // most) if most else 1
        found.append(made._replace(queries=made.queries[::step][: most or None]))
    return found


def pairs() -> list[Path]:
    """List the files of labelled pairs in the folder of the environment; those of queries and texts have no label."""
    root = os.environ.get(FOLDER, "")
    files = sorted(Path(root).glob("*/pairs.jsonl")) if root else []
    return [file for file in files if '"label"' in file.read_text(encoding="utf-8").partition("\n")[0]]


def show(judged: Sequence[Collection], tools: Sequence[str]) -> None:
    """Judge every collection and print the table, and what gains less than it should or is behind recall."""
    rows: list[tuple[Any, ...]] = []
    short: list[str] = []
    for collection in judged:
        words = fts5_baseline.Words(collection)
        plain = [judge(words.find(one.text, one.scope).ids, one.relevant).ndcg for one in collection.queries]
        rows.append((collection.name, "plain FTS5", *_span(plain), "", "", "", ""))
        best: list[float] = []
        for shelf in tool_adapters.adapters(tools):
            for tool, scores, separation in _judge(shelf, collection, judged):
                best = scores if tool == "recall" else best
                gain, behind = _over(scores, plain), _over(scores, best) if best and tool != "recall" else None
                span, less = f"{gain.low:+.3f} to {gain.high:+.3f}", f"{behind.mean:+.3f}" if behind else ""
                rows.append((collection.name, tool, *_span(scores), f"{gain.mean:+.3f}", span, less, separation))
                if gain.mean < _WANTED_GAIN:
                    short.append(f"{tool} on {collection.name} {gain.mean:+.3f} over plain FTS5")
                if behind and behind.mean < -_MOST_BEHIND:
                    short.append(f"{tool} on {collection.name} {behind.mean:+.3f} behind recall")
    table("as they are", _HEADER, rows)
    print(f"less than plain FTS5 + {_WANTED_GAIN}, or recall - {_MOST_BEHIND}: {'; '.join(short) or 'none'}")


def _over(scores: Sequence[float], others: Sequence[float]) -> Interval:
    return interval([one - other for one, other in zip(scores, others, strict=True)])


def _judge(
    shelf: DialectAdapter, collection: Collection, judged: Sequence[Collection]
) -> list[tuple[str, list[float], str]]:
    foreign = [one.text for other in judged if other is not collection for one in other.queries[:_FOREIGN]]
    with tempfile.TemporaryDirectory() as temporary:
        data = Path(temporary)
        with tool_adapters.serving(data, shelf.settings(collection, data)) as caller:
            filled = shelf.fill(caller, collection)
            return [
                (
                    tool.tool,
                    _scores(caller, tool, collection, filled),
                    _separation(caller, collection, filled, foreign) if foreign and tool.tool == "recall" else "",
                )
                for tool in shelf.tools
            ]


def _scores(caller: Caller, tool: JudgedTool, collection: Collection, filled: Filled) -> list[float]:
    scores: list[float] = []
    for query in collection.queries:
        found = tool.found(caller.call(tool.tool, **tool.asked(query, filled.scopes.get(query.scope, "nowhere"))))
        scores.append(judge([filled.docs.get(key, key) for key in found], query.relevant).ndcg)
    return scores


def _separation(caller: Caller, collection: Collection, filled: Filled, foreign: Sequence[str]) -> str:
    """How well the strength of the best hit of recall tells questions of the collection from others."""
    scopes = [*filled.scopes.values()]

    def best(text: str, scope: str) -> float:
        found = caller.call("recall", query=text, spaces=["sessions"], scope=scope, floor="none", limit=5)
        return max((row["strength"] for row in found["memories"]), default=0.0)

    own = [best(one.text, filled.scopes.get(one.scope, "nowhere")) for one in collection.queries]
    others = [best(text, scopes[at % len(scopes)]) for at, text in enumerate(foreign)]
    return f"{auc(np.array(own), np.array(others)):.3f}"


def _span(values: Sequence[float]) -> tuple[str, str]:
    found = interval(values)
    return f"{found.mean:.3f}", f"{found.low:.3f}-{found.high:.3f}"
