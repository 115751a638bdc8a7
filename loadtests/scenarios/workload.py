"""The requests of a typical day of agents: four reads to a write, over every protocol."""

import random
from collections.abc import Iterator

from loadtests.lib import corpus, http_requests
from loadtests.lib.http_load import Request

# Calls per hundred; the mix of `locustfile.py` with readers, writers and mixed agents together.
SHARES = {"recall": 45, "recall ids": 17, "read_memory": 17, "add_memory": 16, "replace_memory": 5}
_WIRES = ("modern", "modern", "legacy", "json")


def mixture(size: int, ready: int, seed: int = 1) -> Iterator[Request]:
    """An endless stream of requests about the first `size` memories, which are stored, and `ready` new ones.

    When all of those are added, they are replaced instead.
    """
    chance = random.Random(seed)
    known = range(0, size, max(1, size // 2000))
    built = {name: [_request(name, number, chance.choice(_WIRES)) for number in known] for name in SHARES}
    first = seed * 10_000_000
    adding = [_request("add_memory", number, chance.choice(_WIRES)) for number in range(first, first + ready)]
    return _drawn(chance, built, iter(adding))


def _drawn(chance: random.Random, built: dict[str, list[Request]], adding: Iterator[Request]) -> Iterator[Request]:
    names = list(SHARES)
    weights = list(SHARES.values())
    while True:
        for name in chance.choices(names, weights, k=500):
            if name != "add_memory":
                yield chance.choice(built[name])
            else:
                yield next(adding, None) or chance.choice(built["replace_memory"])


def _request(name: str, number: int, way: str) -> Request:
    arguments, expect = _call(name, number)
    tool = name.partition(" ")[0]
    if way == "json":
        return http_requests.json(tool, arguments, expect)
    return http_requests.mcp("modern" if way == "modern" else "legacy", tool, arguments, expect)


def _call(name: str, number: int) -> tuple[dict[str, object], bytes]:
    """The arguments of a call, and the bytes its answer must contain."""
    if name == "recall":
        return {"query": corpus.question(number).text}, b"memories"
    memory = corpus.memory(number)
    path = memory.path.encode()
    if name == "recall ids":
        return {"ids": [f"paths/{memory.path}"], "max_tokens": 4000}, path
    if name == "read_memory":
        return {"path": memory.path}, path
    return {"path": memory.path, "content": f"{memory.text} As of now."}, path
