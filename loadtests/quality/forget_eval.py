"""ForgetEval's cases: `python -m loadtests.quality.forget_eval CASES` forgets and supersedes, then asks.

CASES is a file of its form, such as `external_subset_cases_v07.json` of its supplement: facts, changes, a question, and
what the first five hits must and must not hold. Nothing decides but the product: what is to be released or purged are
the memories that `forget --about` would erase, and superseded is the first hit that says another thing. `probed` also
asks for each forbidden text by itself, as its authors do.
"""

import http.client
import json
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec

from loadtests.lib.servers import quipu, table
from loadtests.quality.mcp_client import Caller

_HITS = 5


class Case(msgspec.Struct):
    """A case of the file; a change is an operation with its query, and the new text of a `supersede`."""

    category: str
    setup_facts: list[str]
    mutations: list[list[str]]
    final_query: str
    must_contain: list[str]
    must_not_contain: list[str]


class _File(msgspec.Struct):
    admitted_cases: list[Case]


def main() -> None:
    """Print how many cases of each category pass."""
    cases = msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=_File).admitted_cases
    total, passed, probed = (Counter[str]() for _ in range(3))
    with tempfile.TemporaryDirectory() as data, quipu(Path(data)) as server:
        caller = Caller(server.port)
        for case in cases:
            answers = _answers(caller, server.port, case)
            is_held = all(text.casefold() in answers[0] for text in case.must_contain)
            forbidden = [text.casefold() for text in case.must_not_contain]
            total[case.category] += 1
            passed[case.category] += is_held and not any(text in answers[0] for text in forbidden)
            probed[case.category] += is_held and not any(text in answer for text in forbidden for answer in answers)
        caller.close()
    rows = [(name, *(str(by[name]) for by in (total, passed, probed))) for name in total]
    rows.append(("all", *(str(counter.total()) for counter in (total, passed, probed))))
    table("ForgetEval", ("category", "cases", "passed", "probed"), rows)


def _answers(caller: Caller, port: int, case: Case) -> list[str]:
    """Return the texts of the hits of the question, and of each forbidden text, in lower case; nothing stays stored."""
    for fact in case.setup_facts:
        caller.call("save_memory", db="core", category="fact", content=fact)
    for operation, query, *new in case.mutations:
        if operation == "supersede":
            hits = caller.call("recall", query=query, floor="none")["memories"]
            old = next((hit["id"] for hit in hits if hit["text"] != new[0]), "")
            key = old.partition("/")[2]
            caller.call("supersede_memory", db="core", old_id=key, new_content=new[0])
        else:
            about = [memory["id"] for memory in _command(port, "erasable", about=query)["memories"]]
            if about and operation == "purge":
                _command(port, "erase", ids=about)
            for memory in about if operation == "release" else ():
                _command(port, "forget", id=memory)
    asked = [case.final_query, *case.must_not_contain]
    answers = [caller.call("recall", query=query, limit=_HITS)["memories"] for query in asked]
    for memory in caller.call("get_memories", db="core", limit=100):
        _command(port, "forget", id=f"brain:core/{memory['id']}")
    return [" ".join(hit["text"] for hit in hits).casefold() for hits in answers]


def _command(port: int, name: str, **asked: Any) -> Any:
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        line.request("POST", f"/memories/{name}", json.dumps(asked), {"content-type": "application/json"})
        answer = line.getresponse()
        said = answer.read()
    finally:
        line.close()
    if answer.status != http.HTTPStatus.OK:
        raise RuntimeError(f"{name}: {said.decode()}")
    return json.loads(said)


if __name__ == "__main__":
    main()
