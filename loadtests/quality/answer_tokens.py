"""Tokens of an answer of ten, with the days: `python -m loadtests.quality.answer_tokens CHECKOUT TOKENIZER`.

The same forty facts, each of a day of its own, are imported into this server and into that of CHECKOUT, and `recall` is
asked for ten by the question of each. TOKENIZER is a folder in which `npm install js-tiktoken` was run, for o200k_base.
"""

import http.client
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from datetime import date, timedelta
from pathlib import Path

from loadtests.lib.servers import ROOT, clean_environ, quipu, table
from loadtests.quality import facts

_OF_ANSWER = 10
_LAST = date(2026, 11, 20)
_COUNT = """
const { getEncoding } = require("js-tiktoken")
const counter = getEncoding("o200k_base")
const texts = JSON.parse(require("fs").readFileSync(0, "utf8"))
console.log(JSON.stringify(texts.map((text) => counter.encode(text).length)))
"""


def main() -> None:
    """Print the mean tokens of an answer of both servers, with facts of days of their own and of one day."""
    checkout, tokenizer = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    rows: list[tuple[str, ...]] = []
    for title, days in (("days of their own", 1), ("one day", 0)):
        means: list[float] = []
        for folder in (ROOT, checkout):
            answers = json.dumps(_answers(folder, facts.facts(facts.ENGLISH), days))
            command = ["node", "-e", _COUNT]
            counted = subprocess.run(command, cwd=tokenizer, input=answers, capture_output=True, text=True, check=True)
            counts = json.loads(counted.stdout)
            means.append(sum(counts) / len(counts))
        rows.append((title, *(f"{mean:.1f}" for mean in means), f"{means[0] / means[1] - 1:+.3f}"))
    table("tokens of an answer of ten", ("facts on", "this", "the other", "more"), rows)


def _answers(folder: Path, chosen: Sequence[facts.Fact], days: int) -> list[str]:
    """Return the answers of the server of a folder to the question of each fact."""
    made = [
        {"memory": fact.text, "created_at": f"{_LAST - timedelta(days=days * number)}T09:00:00Z"}
        for number, fact in enumerate(chosen)
    ]
    with tempfile.TemporaryDirectory() as data:
        source = Path(data, "mem0.json")
        source.write_text(json.dumps({"results": made}), encoding="utf-8")
        store = Path(data, "store")
        command = [sys.executable, "-m", "kernel", "import", "mem0", str(source), "--data", str(store)]
        subprocess.run(command, cwd=folder, env=clean_environ(), capture_output=True, check=True)
        with quipu(store, checkout=folder) as server:
            return [_answer(server.port, fact.question) for fact in chosen]


def _answer(port: int, question: str) -> str:
    body = json.dumps({"query": question, "limit": _OF_ANSWER, "floor": "none"})
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    line.request("POST", "/tools/recall", body, {"content-type": "application/json"})
    answer = line.getresponse().read().decode()
    line.close()
    shown = json.loads(answer)
    if len(shown["memories"]) != _OF_ANSWER or "cursor" not in shown:
        raise RuntimeError(f"not ten hits: {answer}")
    return answer


if __name__ == "__main__":
    main()
