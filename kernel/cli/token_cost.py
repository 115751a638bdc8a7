"""`quipu tools`, and an estimate of the tokens that a tool list takes in a model's context, without a tokenizer."""

import argparse
import re
from collections.abc import Sequence

import msgspec

from kernel.calls.tools import Tool
from kernel.cli.output import show
from kernel.core.config import FIRST_DIALECTS, Config
from kernel.core.lazy_regex import regex
from kernel.mcp.listings import tool_entry
from kernel.server import app

_PIECES = regex(r" ?([A-Za-z]+)|\d{1,3}|([^\sA-Za-z\d]+)|\s+")
_LETTERS_PER_TOKEN, _SYMBOLS_PER_TOKEN = 10, 4
_ADDRESSES = {
    "/mcp": app.UNION,
    f"/mcp/{','.join(FIRST_DIALECTS)}": app.select_dialects(FIRST_DIALECTS),
    **{f"/mcp/{dialect.name}": (dialect,) for dialect in app.DIALECTS},
}


def run(arguments: argparse.Namespace, _config: Config) -> int:
    """Print every tool, or for each URL the approximate tokens its tool list takes in a model's context."""
    as_json: bool = arguments.json
    if arguments.tokens:
        if not as_json:
            show(None, f"{'':25} {'tools':>5} {'tokens':>7} {'with results':>13}", as_json=False)
        for path, dialects in _ADDRESSES.items():
            every = [tool for dialect in dialects for tool in dialect.tools]
            for address, subset in ((path, every), (f"{path}?tools=read", [t for t in every if t.mode == "read"])):
                plain, whole = (tool_list_tokens(subset, results=results) for results in (False, True))
                row = {"address": address, "tools": len(subset), "tokens": plain, "with_results": whole}
                show(row, f"{address:25} {len(subset):5} {plain:7} {whole:13}", as_json=as_json)
        return 0
    for dialect in app.DIALECTS:
        for tool in dialect.tools:
            row = {"dialect": dialect.name, "mode": tool.mode, "name": tool.name, "description": tool.description}
            show(row, f"{dialect.name:10} {tool.mode:9} {tool.name:24} {tool.description}", as_json=as_json)
    return 0


def estimate_tokens(text: str) -> int:
    """Estimate the tokens of a text from the pre-tokens of byte-pair encodings of English and JSON.

    A token is ten letters of a word or a rest of them, up to three digits, or up to four symbols in a row. On tool
    lists the result is within 8 % of o200k_base, cl100k_base and the tokenizer Anthropic published; on prose and
    Markdown tables it is up to a third too high.
    """
    return sum(_cost(match) for match in _PIECES.finditer(text))


def tool_list_tokens(tools: Sequence[Tool], *, results: bool) -> int:
    """Estimate the tokens of name, description and input schema of each tool.

    With `results` also of output schemas and annotations, for clients that pass the whole list to the model. The
    members of `_meta` are for the client alone.
    """
    entries = [{name: part for name, part in tool_entry(tool).items() if name != "_meta"} for tool in tools]
    if not results:
        entries = [
            {"name": entry["name"], "description": entry.get("description", ""), "input_schema": entry["inputSchema"]}
            for entry in entries
        ]
    return estimate_tokens(msgspec.json.encode(entries).decode())


def _cost(match: re.Match[str]) -> int:
    word, symbols = match.groups()
    if word:
        return 1 + (len(word) - 1) // _LETTERS_PER_TOKEN
    return 1 + (len(symbols) - 1) // _SYMBOLS_PER_TOKEN if symbols else 1
