"""The commands for memories. They ask the server that runs on the data directory, and work on the file without one."""

import argparse
import sys
from typing import TYPE_CHECKING, Any

from kernel.cli import output, typed_text
from kernel.cli.memory_sources import Source, source_of
from kernel.core.config import Config
from kernel.core.errors import Fault
from kernel.core.ids import utc_now
from kernel.core.times import later, span, utc_time

if TYPE_CHECKING:
    from handlers.console.printing import Style


def run(arguments: argparse.Namespace, config: Config) -> int:
    """Runs one of the commands; 1 if nothing was found."""
    asked = typed_text.checked(_request(arguments))
    source = source_of(arguments, config)
    style = _style(arguments, config)
    if arguments.command == "add":
        asked["text"] = typed_text.to_add(arguments.text, config.environment)
    printed = _edit(source, asked, style, config) if arguments.command == "edit" else None
    if printed is None:
        printed = source.ask(arguments.command, asked, style)
    print(printed, end="")
    if not printed:
        output.note("nothing found")
    return 0 if printed else 1


def _request(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments of a command, by the names of its request."""
    match arguments.command:
        case "recall":
            times = {"as_of": arguments.as_of or ""}
            return {"query": " ".join(arguments.query), "limit": arguments.limit, **times, **_filters(arguments)}
        case "list":
            return {"limit": arguments.limit, **_filters(arguments)}
        case "add":
            return {"text": arguments.text or "", "dialect": arguments.dialect, "name": arguments.name}
        case "edit":
            return {"id": arguments.id, "text": arguments.text}
        case "forget":
            chosen = {"immutable": arguments.immutable, "observation": arguments.observation}
            return {"id": arguments.id, **chosen}
        case "stats":
            return {}
        case _:
            return {"id": arguments.id}


def _filters(arguments: argparse.Namespace) -> dict[str, Any]:
    return {"dialects": arguments.dialect, "actor": arguments.actor, "after": _since(arguments.since or "")}


def _since(given: str) -> str:
    """Return a time as it is, an age as the time so long ago, and nothing for an age before the first year."""
    age = span(given)
    if age is None:
        if given and utc_time(given) is None:
            raise Fault("invalid", "--since must be a time such as 2026-01-31, or an age such as 7d, 12h or 30m.")
        return given
    try:
        return later(utc_now(), -age)
    except OverflowError:
        return ""


def _style(arguments: argparse.Namespace, config: Config) -> "Style":
    if arguments.json:
        return "json"
    return "colour" if output.has_colours(sys.stdout, config.environment) else "text"


def _edit(source: Source, asked: dict[str, Any], style: "Style", config: Config) -> str:
    """Changes the text of a memory; if that is refused, the new text is kept in a file."""
    shown = source.shown(asked["id"])
    if not shown.edit:
        raise Fault("invalid", f"No tool edits {shown.id}.")
    text = typed_text.to_edit(asked["text"], shown.text, config.environment)
    try:
        return source.ask("edit", {"id": shown.id, "text": text, "version": shown.version}, style)
    except Fault as fault:
        raise Fault(fault.code, f"{fault.message} What you wrote is in {typed_text.kept(text)}.") from None
