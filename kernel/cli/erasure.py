"""`quipu forget --about TEXT`: erases every memory about a text, and prints a receipt."""

import argparse
from collections.abc import Callable
from typing import Any

import msgspec

from kernel.cli.output import confirm, note, show
from kernel.core.errors import Fault
from kernel.core.text import count_of_memories

Ask = Callable[[str, dict[str, Any]], str]  # a command for memories, answered as JSON
_ELSEWHERE = "Exports, replicas and backups elsewhere are not checked: delete those that are older than this."


def forget_about(arguments: argparse.Namespace, ask: Ask) -> int:
    """Erase the memories about a text, after a question; return 1 if there are none, or if bytes of them are left."""
    from handlers.console.erasing import Erasable
    from handlers.console.printing import printed
    from kernel.operations.erase import Receipt

    if arguments.id is not None or arguments.about is None:
        raise Fault("invalid", "forget takes the id of a memory, or --about TEXT, and not both.")
    erasable = msgspec.json.decode(ask("erasable", {"about": arguments.about}), type=Erasable)
    if not erasable.memories:
        note("nothing found")
        return 1
    note(printed("erasable", erasable, "text").rstrip())
    rest = f" {erasable.others} other hits are less near, and stay." if erasable.others else ""
    these = count_of_memories(len(erasable.memories))
    note(f"To be erased for good, with all history: {these}. No undo brings anything back.{rest}")
    if not arguments.yes:
        confirm("Erase them?", "--about")
    erasing = {"ids": [memory.id for memory in erasable.memories], "immutable": arguments.immutable}
    receipt = msgspec.json.decode(ask("erase", erasing), type=Receipt)
    show(receipt, printed("erase", receipt, "text").rstrip(), as_json=arguments.json)
    note(_ELSEWHERE)
    return 1 if receipt.left else 0
