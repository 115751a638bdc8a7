"""`quipu prime`, and `quipu hook` but for its events, which `hook_client` runs before anything else is imported."""

import argparse
import os
from contextlib import closing
from typing import Any

import msgspec

from kernel.calls.arguments import argument_error, error_message
from kernel.cli import hook_client, witness
from kernel.cli.output import note, show
from kernel.core.config import Config
from kernel.core.errors import Fault

_PRIVACY = """What hooks do:
  They talk to this machine, or to the https address you configured, and to nothing else. On this machine nothing is
  sent before the server has proved that it can read your data directory, or knows your key.
  They send the folder and the id of a session, and of a prompt the first 2,000 characters, to search for it. Prompts,
  tool calls, files and transcripts are never stored.
  Stored is the summary that Claude Code makes when it compacts a session, as a memory of kind handoff; the ids of the
  memories that a session got, unless QUIPU_RECORD_SHOWN=0; and digests of the places in files that memories name.
  <private> passages are cut out of it, and what holds keys or passwords is not stored at all.
  What a hook has added to a conversation stands between tags, and is never stored again.
Switch them off: an empty file .quipu/off in a project, QUIPU_HOOKS_OFF=FOLDER for all below, QUIPU_HOOKS=0 for all.
Each call stands in the console under Live, with its size; a handoff under the tool "hook post-compact"."""


def prime(arguments: argparse.Namespace, config: Config) -> int:
    """Print the text of a project for an agent; nothing for an unknown project, as before the first memory."""
    from kernel.server import app

    root = hook_client.project_root(str(arguments.project))
    intro, problem = hook_client.read_intro(root)
    values = {
        "root": os.fsencode(root).decode(errors="replace"),
        "query": arguments.query,
        "budget": arguments.budget,
        "intro": intro or None,
        "mark": (mark := os.urandom(16).hex()),
    }
    tool = next(method.tool for dialect in app.DIALECTS for method in dialect.rest if method.path == "/prime")
    try:
        request = msgspec.convert({name: value for name, value in values.items() if value is not None}, tool.request)
    except msgspec.ValidationError as error:
        raise Fault("invalid", error_message(argument_error(tool, error))) from None
    try:
        app.require_database(config)
    except Fault as fault:
        if fault.code == "not_found":
            return 0
        raise
    if problem:
        note(problem)
    from kernel.engines.opening import open_reader
    from kernel.store.context import CallContext

    context = app.context_of(config)
    access, *_ = app.open_data(config, context)
    with closing(access), open_reader(config.file, context) as db:
        answer: Any = db.read(CallContext("common", "prime"), lambda tx: tool.handler(tx, request))
    text, news = witness.judged(answer.text.encode(), mark, str(arguments.project))
    answer.text = text.decode()
    if answer.text:
        show(answer, answer.text.removesuffix("\n"), as_json=arguments.json)
    if news:
        from kernel.cli import memory_commands

        memory_commands.tell(memory_commands.sender_to_data(config), news)
    return 0


def hook(arguments: argparse.Namespace, config: Config) -> int:
    from kernel.cli import hook_files

    if arguments.event in hook_client.EVENTS:
        raise Fault("invalid", f"--client is one of {', '.join(hook_client.CLIENTS)}")
    if arguments.event == "remove":
        return hook_files.remove(arguments, config)
    hook_files.status(arguments, config)
    if not arguments.json:
        show(None, f"\n{_PRIVACY}", as_json=False)
    return 0
