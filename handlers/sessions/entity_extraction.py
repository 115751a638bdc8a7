"""Finds the entities that a text mentions: by regular expressions, and by tree-sitter grammars if installed."""

import re
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

from kernel.core.lazy_regex import regex
from kernel.core.text import composed

MAX_ENTITIES = 50  # of one text
MAX_NAME_LENGTH = 200
_MAX_TEXT = 100_000  # characters; the patterns take time in proportion to the text
_REGEX = "regex"
_TREE_SITTER = "tree-sitter"
_PACKAGE = "tree_sitter_language_pack"
# Words that precede a parenthesis in code or prose but are no functions.
_KEYWORDS = frozenset(
    """and assert async await case catch def elif else except exec for foreach from func function import lambda match
    not print raise return sizeof switch throw typeof until using when where while with yield class new""".split()
)
# Type, hints and pattern; every match contains a hint, so a text without any skips the pattern.
_PATTERNS: tuple[tuple[str, tuple[str, ...], re.Pattern[str]], ...] = (
    ("url", ("://",), regex(r"\b(https?://(?:[^\s<>\"'`\[\](){}]|\([^\s()]{0,99}\)){3,2000})")),
    (
        "file_path",
        (".",),
        regex(
            r"(?<![\w/.\\:-])((?:[A-Za-z]:[\\/]|~/|\.{0,2}/)?(?:[\w.-]{1,64}[\\/]){0,16}[\w-][\w.-]{0,64}\."
            r"(?:py|pyi|js|jsx|ts|tsx|mjs|go|rs|java|kt|c|h|cc|cpp|hpp|cs|rb|php|swift|scala|lua|sh|sql|md|rst|txt|json|"
            r"jsonc|ya?ml|toml|ini|cfg|env|lock|html|css|scss|vue|svelte|proto|tf|ipynb|csv|xml|log))(?![\w/])"
        ),
    ),
    (
        "file_path",
        ("/", ":\\"),
        regex(r"(?<![\w/.\\:-])((?:[A-Za-z]:[\\/]|~/|/)(?:[\w.-]{1,64}[\\/]){1,16}[\w.-]{1,64})"),
    ),
    ("ticket", ("-",), regex(r"\b([A-Z][A-Z0-9]{1,9}-[1-9][0-9]{0,6})(?![\w-])")),
    ("ticket", ("#",), regex(r"(?<![\w#&/])(#[1-9][0-9]{0,6})(?!\w)")),
    ("env_var", ("$", "env:", "%"), regex(r"(?:\$\{?|\benv:|%)([A-Z][A-Z0-9_]{2,63})(?![a-z])")),
    ("env_var", ("_",), regex(r"\b([A-Z][A-Z0-9]{1,31}(?:_[A-Z0-9]{1,31}){1,8})(?![\w-])")),
    ("command", ("$", ">"), regex(r"^[ \t]{0,8}(?:\$|>|PS>) ?([a-zA-Z][^\n]{1,199})", re.M)),
    (
        "command",
        (" ",),
        regex(
            r"(?:^[ \t]{0,8}|`)((?:pip|uv|python3?|npm|npx|pnpm|yarn|git|docker|kubectl|make|cargo|go|terraform|helm)"
            r" [^\n`]{1,199})",
            re.M,
        ),
    ),
    (
        "error",
        ("Error", "Exception", "Fault", "Panic"),
        regex(r"(?<![\w.])((?:[a-z_]\w{0,64}\.){0,4}[A-Z]\w{0,64}(?:Error|Exception|Fault|Panic))(?!\w)"),
    ),
    (
        "class",
        ("class ", "struct ", "interface ", "trait ", "enum "),
        regex(
            r"^[ \t]{0,32}(?:export |public |abstract |final |data ){0,3}"
            r"(?:class|struct|interface|trait|enum) ([A-Za-z_]\w{1,99})",
            re.M,
        ),
    ),
    (
        "function",
        ("def ", "fn ", "func ", "function "),
        regex(r"^[ \t]{0,32}(?:export |pub |async |static ){0,3}(?:def|fn|func|function) ([A-Za-z_]\w{1,99})", re.M),
    ),
    ("function_like", ("(",), regex(r"(?<![\w/])([^\W\d]\w{2,99})[ \t]{0,8}\(")),
)
_TRAILING = {"url": ".,;:!?", "command": " \t;", "file_path": "."}
_FENCE = regex(r"^```[ \t]*+([\w+#-]++)[^\n]*+\n(.*?)^```", re.M | re.S)
_LANGUAGES = {
    "py": "python",
    "js": "javascript",
    "ts": "typescript",
    "rb": "ruby",
    "rs": "rust",
    "sh": "bash",
    "shell": "bash",
    "c++": "cpp",
    "c#": "csharp",
    "cs": "csharp",
    "kt": "kotlin",
    "golang": "go",
}
_GRAMMARS = frozenset(
    """python javascript typescript tsx java go rust c cpp csharp ruby php swift kotlin scala lua bash elixir""".split()
)
_CODE = regex(r"^(?:async def|def|class) \w+", re.M)
_CLASS_LIKE = {"class": "class", "struct": "class", "interface": "class", "trait": "class", "enum": "class"}


class Mention(NamedTuple):
    """One mention: type, name as written but composed, the source that found it, and the path of a file."""

    entity_type: str
    name: str
    source: str
    path: str | None


def extract_mentions(text: str) -> list[Mention]:
    """Return the mentions in a text, each type and name once, at most 50; those by grammars first."""
    text = composed(text[:_MAX_TEXT])  # the patterns stop at a mark that stands alone
    mentions: dict[tuple[str, str], Mention] = {}
    known_names: set[str] = set()
    for entity in (*_by_grammar(text), *_by_regex(text)):
        if entity.entity_type == "function_like" and entity.name in known_names:
            continue
        known_names.add(entity.name)
        mentions.setdefault((entity.entity_type, entity.name), entity)
    return list(mentions.values())[:MAX_ENTITIES]


def has_grammars() -> bool:
    return find_spec(_PACKAGE) is not None


def _by_regex(text: str) -> Iterator[Mention]:
    for kind, hints, pattern in _PATTERNS:
        if not any(hint in text for hint in hints):
            continue
        for match in pattern.finditer(text):
            name = match[1].rstrip(_TRAILING.get(kind, ""))[:MAX_NAME_LENGTH]
            if kind != "function_like" or name.lower() not in _KEYWORDS:
                yield Mention(kind, name, _REGEX, name if kind == "file_path" else None)


def _by_grammar(text: str) -> Iterator[Mention]:
    if not has_grammars():
        return
    blocks = [(_LANGUAGES.get(name.lower(), name.lower()), code) for name, code in _FENCE.findall(text)]
    if not blocks and _CODE.search(text):
        blocks = [("python", text)]
    for language, code in blocks:
        if language in _GRAMMARS:
            yield from _definitions(language, code)


def _definitions(language: str, code: str) -> Iterator[Mention]:
    parser: Any = import_module(_PACKAGE).get_parser(language)
    pending: list[Any] = [parser.parse(code.encode()).root_node]
    while pending:
        node = pending.pop()
        pending.extend(reversed(node.named_children))
        kind = _definition_type(node.type)
        name = node.child_by_field_name("name") if kind else None
        if kind and name is not None:
            yield Mention(kind, name.text.decode()[:MAX_NAME_LENGTH], _TREE_SITTER, None)


def _definition_type(node: str) -> str:
    if not node.endswith(("_definition", "_declaration", "_item", "_specifier")) and node not in {"class", "method"}:
        return ""
    if "function" in node or "method" in node:
        return "function"
    return next((kind for word, kind in _CLASS_LIKE.items() if word in node), "")
