"""Search quality on judged collections: rankings, signals and latency of the tools of a running server.

Without a FOLDER one table over all development collections, those in $QUIPU_EVALUATION_DATA and the generated ones.
Each FOLDER holds `docs.jsonl` (id, scope, time, text) and `queries.jsonl` (id, scope, text, relevant). A query is asked
within its scope. `--transformer FOLDER` compares with a sentence transformer on the same texts.
"""

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from kernel.core.config import MODEL
from kernel.embed.model import Embedder
from kernel.search.equivalence import MAX_DISTANCE
from loadtests.lib.servers import machine, table
from loadtests.quality import (
    constants,
    duplicate_threshold,
    fts5_baseline,
    minilm_baseline,
    overview,
    strength,
    tool_adapters,
)
from loadtests.quality.dataset import Collection, read
from loadtests.quality.engine_adapter import fused
from loadtests.quality.mcp_client import Caller
from loadtests.quality.metrics import Scores, interval, judge, macro
from loadtests.quality.tool_adapters import DialectAdapter, Filled, JudgedTool, Mode

_WARMUP_STEPS = 20
_NDCG, _TEN = 0, 2
_HEADER = (
    "tool, signals",
    "nDCG@10",
    "95 %",
    "R@5",
    "R@10",
    "95 %",
    "macro",
    "MRR",
    "nDCG -words",
    "R@10 -words",
    "p50 ms",
    "p99 ms",
)


class Run(NamedTuple):
    """One query mode: the scores of every query, and the seconds of each call."""

    name: str
    scores: list[Scores]
    seconds: list[float]


def main(arguments: Sequence[str] | None = None) -> int:
    """Judge every folder; return 1 if a text could not be stored."""
    chosen = _options(arguments)
    machine()
    if chosen.duplicates:
        return _duplicates(chosen.folders)
    if not chosen.folders:
        judged = overview.collections(chosen.queries)
        if chosen.leave_one_out:
            strength.leave_one_out(judged)
            constants.leave_one_out(judged, constants.choices())
        else:
            overview.show(judged, chosen.tools)
        return 0
    lost = 0
    for folder in chosen.folders:
        collection = read(folder, chosen.queries)
        print(
            f"\n{collection.name}: {len(collection.docs)} texts, {len(collection.queries)} queries, "
            f"{len(collection.scopes)} scopes"
        )
        runs = _opponents(collection, chosen.transformer, chosen.share)
        _show("in this process", collection, runs)
        for shelf in tool_adapters.adapters(chosen.tools):
            lost += _judge(shelf, collection, chosen.model)
    return 1 if lost else 0


def _duplicates(folders: Sequence[Path]) -> int:
    """Judge the decision on the pairs of each folder; return 1 without any."""
    files = [folder / "pairs.jsonl" for folder in folders] or overview.pairs()
    embedder = Embedder(MODEL)
    curves = [duplicate_threshold.curve_of_pairs(embedder, file) for file in files]
    rows = [(curve.name, *duplicate_threshold.measured(curve, MAX_DISTANCE)) for curve in curves]
    table("pairs, as it ships", ("set", "precision", "recall"), rows)
    if not files:
        print(f"no pairs.jsonl below the folder in {overview.FOLDER}")
    return 0 if files else 1


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make quality ARGS=...", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folders", type=Path, nargs="*", help="folders with docs.jsonl and queries.jsonl, in full")
    parser.add_argument(
        "--leave-one-out", action="store_true", help="fit strength and ranking on all collections but one"
    )
    parser.add_argument("--duplicates", action="store_true", help="judge what is said to be the same, by pairs.jsonl")
    parser.add_argument("--tools", nargs="*", default=[], help="only these tools, such as recall hybrid_search")
    parser.add_argument("--queries", type=int, default=0, help="maximum number of queries of each folder")
    parser.add_argument("--model", default="", help="model2vec folder for the server, instead of the bundled one")
    parser.add_argument("--transformer", type=Path, help="folder of a sentence transformer to compare with")
    parser.add_argument("--share", type=float, default=0.6, help="weight of full text when fused with the transformer")
    return parser.parse_args(arguments)


def _opponents(collection: Collection, folder: Path | None, share: float) -> list[Run]:
    words = fts5_baseline.Words(collection)
    by_words = [words.find(query.text, query.scope) for query in collection.queries]
    sides = {f"plain FTS5, {tool_adapters.LEXICAL}": by_words}
    if folder is not None:
        teacher = minilm_baseline.Teacher(folder, collection)
        by_meaning = [teacher.find(query.text, query.scope) for query in collection.queries]
        sides["transformer only"] = by_meaning
        sides["plain FTS5 + transformer"] = [
            fused(one, other, share) for one, other in zip(by_words, by_meaning, strict=True)
        ]
    return [
        Run(
            name,
            [judge(found.ids, query.relevant) for found, query in zip(side, collection.queries, strict=True)],
            [found.seconds for found in side],
        )
        for name, side in sides.items()
    ]


def _judge(shelf: DialectAdapter, collection: Collection, model: str) -> int:
    """Fill one dialect, query its tools in every mode and print the scores; return the number of texts not stored."""
    with tempfile.TemporaryDirectory() as temporary:
        data = Path(temporary)
        settings = {**shelf.settings(collection, data), **({"QUIPU_MODEL": model} if model else {})}
        with tool_adapters.serving(data, settings) as caller:
            filled = shelf.fill(caller, collection)
        for judged in shelf.tools:
            runs: list[Run] = []
            for mode in judged.modes:
                with tool_adapters.serving(data, {**settings, **mode.settings}) as caller:
                    runs.append(_ask(caller, judged, mode, collection, filled))
            _show(f"{judged.tool} ({shelf.name})", collection, runs)
    lost = len(collection.docs) - len(filled.docs)
    if lost:
        print(f"{lost} texts were not stored")
    return lost


def _ask(caller: Caller, judged: JudgedTool, mode: Mode, collection: Collection, filled: Filled) -> Run:
    scores: list[Scores] = []
    seconds: list[float] = []
    warm = collection.queries[:_WARMUP_STEPS]
    for query in [*warm, *collection.queries]:
        arguments = {**judged.asked(query, filled.scopes.get(query.scope, "nowhere")), **mode.arguments}
        found = judged.found(caller.call(judged.tool, **arguments))
        scores.append(judge([filled.docs.get(key, key) for key in found], query.relevant))
        seconds.append(caller.seconds)
    return Run(mode.name, scores[len(warm) :], seconds[len(warm) :])


def _show(title: str, collection: Collection, runs: Sequence[Run]) -> None:
    """Print the runs; the last columns are the gains over the first run, full text only."""
    scopes = [query.scope for query in collection.queries]
    first = runs[0].scores
    rows: list[tuple[str, ...]] = []
    for run in runs:
        columns = [list(column) for column in zip(*run.scores, strict=True)]
        ndcg, five, ten, rank = columns
        gains = [[one[at] - other[at] for one, other in zip(run.scores, first, strict=True)] for at in (_NDCG, _TEN)]
        taken = sorted(run.seconds)
        rows.append(
            (
                run.name,
                _mean(ndcg),
                _span(ndcg),
                _mean(five),
                _mean(ten),
                _span(ten),
                f"{macro(ten, scopes):.3f}",
                _mean(rank),
                *(_gain(gain) for gain in gains),
                *(f"{taken[min(len(taken) - 1, int(part * len(taken)))] * 1e3:.2f}" for part in (0.5, 0.99)),
            )
        )
    table(title, _HEADER, rows)


def _mean(values: Sequence[float]) -> str:
    return f"{sum(values) / len(values):.3f}"


def _span(values: Sequence[float]) -> str:
    found = interval(values)
    return f"{found.low:.3f}-{found.high:.3f}"


def _gain(values: Sequence[float]) -> str:
    found = interval(values)
    return f"{found.mean:+.3f} [{found.low:+.3f} {found.high:+.3f}]" if any(values) else "-"


if __name__ == "__main__":
    raise SystemExit(main())
