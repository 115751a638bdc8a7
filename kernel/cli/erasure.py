"""`quipu forget --about TEXT`: erases every memory about a text, and prints a receipt."""

import argparse
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec

from kernel.cli.output import confirm, note, show
from kernel.core.config import Config
from kernel.core.errors import Fault
from kernel.core.text import one_line

Ask = Callable[[str, dict[str, Any]], str]  # a command for memories, answered as JSON
_MOST = 100  # memories looked at
_SHOWN_CHARS = 100


class _Hit(msgspec.Struct):
    id: str
    text: str = ""
    verdict: str = ""


class _Whole(msgspec.Struct):
    id: str
    text: str


def forget_about(arguments: argparse.Namespace, config: Config, ask: Ask) -> int:
    """Erase the memories about a text, after a question; return 1 if there are none.

    About it are the strong hits of a recall, and memories that hold each of its words.
    """
    if arguments.id is not None or arguments.about is None:
        raise Fault("invalid", "forget takes the id of a memory, or --about TEXT, and not both.")
    if config.store or arguments.url is not None:
        raise Fault("invalid", "--about rewrites the database file: run it beside the file, without --url and a store.")
    hits = [msgspec.json.decode(line, type=_Hit) for line in ask("recall", _query(arguments.about)).splitlines()]
    words = arguments.about.casefold().split()
    about = [hit for hit in hits if hit.verdict == "strong" or all(word in hit.text.casefold() for word in words)]
    if not about:
        note("nothing found")
        return 1
    for hit in about:
        note(f"{hit.id}: {one_line(hit.text, _SHOWN_CHARS)}")
    rest = f" {len(hits) - len(about)} other hits are less near, and stay." if len(hits) > len(about) else ""
    note(f"These {len(about)} memories are erased for good, with their history; no undo brings them back.{rest}")
    if not arguments.yes:
        confirm("Erase them?", "--about")
    texts: dict[tuple[str, str], str] = {}
    for hit in about:
        whole = msgspec.json.decode(ask("show", {"id": hit.id}), type=_Whole)
        ask("forget", {"id": hit.id, "immutable": arguments.immutable})
        space, _, key = hit.id.partition("/")
        texts[space, key] = whole.text
    return _erase(texts, config, as_json=arguments.json)


def _query(about: str) -> dict[str, Any]:
    if not about.strip():
        raise Fault("invalid", "--about: is empty.")
    return {"query": about, "limit": _MOST}


def _erase(texts: dict[tuple[str, str], str], config: Config, *, as_json: bool) -> int:
    from kernel.operations.erase import erase
    from kernel.server import app

    context = app.context_of(config)
    access, *_ = app.open_data(config, context)
    with closing(access):
        receipt = erase(
            config.file, context, app.DIALECTS, texts, lambda _line: None, _copies(config), alone=access.alone
        )
    lines = [f"erased {memory.id}  sha256 {memory.sha256}" for memory in receipt.memories]
    lines += [f"audit row {receipt.audit} of {receipt.at}, hash {receipt.hash}"]
    lines += [
        f"bytes of {name} are left in the file: run `quipu compact`, with the servers stopped" for name in receipt.left
    ]
    lines += [f"a copy still holds a text: {name}" for name in receipt.copies]
    whole = {**receipt._asdict(), "memories": [memory._asdict() for memory in receipt.memories]}
    show(whole, "\n".join(lines), as_json=as_json)
    note("Exports, replicas and backups elsewhere are not checked: delete those that are older than this.")
    return 1 if receipt.left else 0


def _copies(config: Config) -> Sequence[Path]:
    """Return the copies that backups of this machine have made."""
    folders = [config.file.parent, *([config.backup_to] if config.backup_to else [])]
    return [file for folder in folders for file in sorted(folder.rglob("*.db")) if file != config.file]
