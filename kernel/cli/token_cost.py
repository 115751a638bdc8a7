"""Estimate the tokens that a tool list takes in a model's context, without a tokenizer."""

import re
from collections.abc import Sequence

import msgspec

from kernel.calls.tools import Tool
from kernel.core.lazy_regex import regex
from kernel.mcp.listings import tool_entry

_PIECES = regex(r" ?([A-Za-z]+)|\d{1,3}|([^\sA-Za-z\d]+)|\s+")
_LETTERS_PER_TOKEN, _SYMBOLS_PER_TOKEN = 10, 4


def estimate_tokens(text: str) -> int:
    """Approximate token count of a text, from the pre-tokens of byte-pair encodings of English and JSON.

    A word counts one per ten letters or part of them, up to three digits count one, and so do up to four symbols in a
    row. On tool lists the result is within 8 % of o200k_base, cl100k_base and the tokenizer Anthropic published; on
    prose and Markdown tables it is up to a third too high.
    """
    return sum(_cost(found) for found in _PIECES.finditer(text))


def tool_list_tokens(tools: Sequence[Tool], *, results: bool) -> int:
    """Estimated tokens of name, description and input schema of each tool.

    With `results` also of output schemas and annotations, for clients that pass the whole list to the model. What is
    under `_meta` is for the client alone.
    """
    entries = [{name: part for name, part in tool_entry(tool).items() if name != "_meta"} for tool in tools]
    if not results:
        entries = [
            {"name": entry["name"], "description": entry.get("description", ""), "input_schema": entry["inputSchema"]}
            for entry in entries
        ]
    return estimate_tokens(msgspec.json.encode(entries).decode())


def _cost(found: re.Match[str]) -> int:
    word, symbols = found.groups()
    if word:
        return 1 + (len(word) - 1) // _LETTERS_PER_TOKEN
    return 1 + (len(symbols) - 1) // _SYMBOLS_PER_TOKEN if symbols else 1
