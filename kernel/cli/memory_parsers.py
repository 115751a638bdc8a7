"""The options of the commands for memories: recall, list, show, history, add, edit, forget, stats."""

import argparse
from collections.abc import Callable
from typing import Any

COMMANDS = ("recall", "list", "show", "history", "add", "edit", "forget", "stats")
SHELLS = ("bash", "zsh", "fish")


def add_parsers(commands: Any, data: argparse.ArgumentParser) -> None:
    """Adds the commands; `data` has the options that name the store."""
    asked = argparse.ArgumentParser(add_help=False, parents=[data])
    asked.add_argument("--url", help="ask this server instead, such as https://memory.example")
    asked.add_argument("--key", default="", help="API key for --url; - reads it from standard input")

    def command(name: str, about: str) -> argparse.ArgumentParser:
        made: argparse.ArgumentParser = commands.add_parser(name, parents=[asked], help=about)
        return made

    _add_reading(command)
    _add_writing(command)
    completion = commands.add_parser("completion", help="print the completion of a shell")
    completion.add_argument("shell", choices=SHELLS, help="the shell")


def _add_reading(command: Callable[[str, str], argparse.ArgumentParser]) -> None:
    recall = command("recall", "find memories of every dialect")
    recall.add_argument("query", nargs="+", help="what to look for, in plain words")
    recall.add_argument("--limit", type=int, default=10, help="most memories to show (10)")
    recall.add_argument("--as-of", metavar="TIME", help="memories as they stood at this time (ISO 8601)")
    listed = command("list", "list the newest memories")
    listed.add_argument("--limit", type=int, default=50, help="most memories to list (50)")
    for one in (recall, listed):
        one.add_argument("--since", metavar="TIME", help="only what has changed since: 7d, 12h, 30m or ISO 8601")
        one.add_argument("--dialect", action="append", default=[], help="only this dialect; may be repeated")
        one.add_argument("--actor", help="only what this actor has written")
    for name, about in (("show", "show one memory"), ("history", "show what happened to one memory")):
        command(name, about).add_argument("id", metavar="ID", help="id of the memory, as recall and list show it")
    command("stats", "count the memories")


def _add_writing(command: Callable[[str, str], argparse.ArgumentParser]) -> None:
    add = command("add", "add a memory")
    add.add_argument("text", nargs="?", help="its text; - or nothing reads standard input, or opens $EDITOR")
    add.add_argument("--dialect", default="", help="dialect that keeps it (paths)")
    add.add_argument("--name", default="", help="path or title, where the dialect has one (made from the first line)")
    edit = command("edit", "change the text of a memory in $EDITOR")
    edit.add_argument("id", metavar="ID", help="id of the memory")
    edit.add_argument("--text", help="the new text, instead of $EDITOR; - reads standard input")
    forget = command("forget", "delete a memory")
    forget.add_argument("id", metavar="ID", help="id of the memory")
    forget.add_argument("--observation", metavar="TEXT", default="", help="only this observation of an entity")
    forget.add_argument("--immutable", action="store_true", help="even if it is immutable, which takes an admin")
