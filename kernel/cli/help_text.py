"""The text of `--help` beside the options: the groups of commands, a sentence and examples for each."""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kernel.cli.memory_help import MEMORY_TEXTS, Help

_INDENT = "  "


GROUPS: Mapping[str, tuple[str, ...]] = {
    "Memories": ("recall", "list", "show", "history", "add", "edit", "forget", "stats"),
    "Connect": ("setup", "hook", "serve", "service", "stdio", "key", "completion"),
    "Look": ("prime", "doctor", "health", "ui", "tools", "audit", "quarantine"),
    "Keep": (
        *("backup", "restore", "replica", "check", "reindex", "compact", "undo", "import", "export"),
        *("store", "tenant"),
    ),
}

TEXTS: Mapping[str, Help] = {
    **MEMORY_TEXTS,
    "serve": Help(
        "Serves MCP and plain JSON over HTTP until it is interrupted.",
        ("quipu serve", "quipu serve --port 8080 --data ~/memories", "quipu serve --backup-to ~/backups"),
    ),
    "service": Help(
        "Runs the server as a service of this user: by systemd, launchd or the Task Scheduler.",
        ("quipu service install", "quipu service install --port 8080 --data ~/memories", "quipu service remove"),
    ),
    "stdio": Help(
        "Serves one MCP client over standard input and output; clients start it themselves.",
        ("quipu stdio", "quipu stdio --dialect paths --dialect common"),
    ),
    "check": Help(
        "Runs SQLite's integrity check and compares memories with full-text index and vectors; the exit status is 1 "
        "if they differ.",
        ("quipu check", "quipu check --repair"),
    ),
    "backup": Help(
        "Copies the database, or with --all everything, while servers read and write it.",
        (
            "quipu backup",
            "quipu backup ~/memories.db",
            "quipu backup --all ~/backups/today",
            "quipu backup --to ~/backups --keep 24",
        ),
    ),
    "replica": Help(
        "Keeps a copy of everything in another folder, which follows each change until this is interrupted.",
        ("quipu replica /srv/quipu-copy", "quipu serve --data /srv/quipu-copy --follow --port 7848"),
    ),
    "restore": Help(
        "Verifies a backup and puts it in place, whole or not at all; what was there is kept beside it.",
        ("quipu restore ~/memories.db", "quipu restore ~/backups/today"),
    ),
    "reindex": Help(
        "Rebuilds the full-text index and embeds every memory again.",
        ("quipu reindex", "quipu reindex --model ~/models/own"),
    ),
    "import": Help(
        "Imports what another program has stored; what is there already is not added again.",
        (
            "quipu import ~/.claude-mem/claude-mem.db --dry-run",
            "quipu import ~/.claude-mem/claude-mem.db",
            "quipu import rules ~/project",
            "quipu import project-brain ~/brain --password-env PASSWORD",
        ),
    ),
    "store": Help(
        "Copies a store from a file to PostgreSQL, or back, and names the databases among which tenants are spread.",
        (
            "quipu store copy ~/.local/share/quipu postgresql://quipu@db.internal/quipu",
            "quipu store add postgresql://quipu@db2.internal/quipu",
        ),
    ),
    "store list": Help(
        "Lists the databases that have tenants or take new ones.", ("quipu store list", "quipu store list --json")
    ),
    "store add": Help(
        "Adds a database to those that take new tenants: each goes where the fewest are.",
        ("quipu store add postgresql://quipu@db2.internal/quipu", "quipu store add home"),
    ),
    "store remove": Help(
        "Lets no new tenants go to a database; those that it has stay there.",
        ("quipu store remove postgresql://quipu@db2.internal/quipu", "quipu store remove home"),
    ),
    "tenant": Help(
        "Lists the tenants of PostgreSQL databases, or moves one from a database to another.",
        ("quipu tenant list", "quipu tenant move acme --to postgresql://quipu@db2.internal/quipu"),
    ),
    "tenant list": Help(
        "Lists every tenant with the database it is on.", ("quipu tenant list", "quipu tenant list --json")
    ),
    "tenant move": Help(
        "Copies a tenant while it is used, compares what arrived with what was sent, and switches; only its writes "
        "wait, for seconds. The same command finishes a move that was interrupted.",
        (
            "quipu tenant move acme --to postgresql://quipu@db2.internal/quipu",
            "quipu tenant move acme --to home",
        ),
    ),
    "store copy": Help(
        "Copies all memories of a tenant, their history, the audit and the settings, and compares what arrived with "
        "what was sent; calls made before can no longer be undone there.",
        (
            "quipu store copy ~/.local/share/quipu postgresql://quipu@db.internal/quipu",
            "quipu store copy postgresql://quipu@db.internal/quipu ~/copy --tenant acme",
        ),
    ),
    "export": Help(
        "Writes everything into a new file of JSON lines or a folder of Markdown, or a dialect for its original.",
        (
            "quipu export jsonl ~/memories.jsonl",
            "quipu export okf ~/memories",
            "quipu export graph ~/memory.jsonl --tenant acme",
        ),
    ),
    "audit": Help(
        "Shows the newest calls that changed something; the exit status is 1 where the hash chain is broken.",
        ("quipu audit", "quipu audit --limit 1000 --json"),
    ),
    "undo": Help(
        "Restores the memories that one call changed to what they were before it.", ("quipu undo 42", "quipu audit")
    ),
    "tools": Help("Lists the tools that clients can call.", ("quipu tools", "quipu tools --tokens")),
    "key": Help(
        "Creates, lists, revokes and deletes the keys with which clients reach a server.",
        ("quipu key create --scope write --name laptop", "quipu key list", "quipu key revoke k1a2b3c4"),
    ),
    "key create": Help(
        "Creates a key and prints its secret, which is shown only once.",
        ("quipu key create --scope write", "quipu key create --scope read --expires 90d --dialect paths"),
    ),
    "key list": Help("Lists all keys, without their secrets.", ("quipu key list", "quipu key list --json")),
    "key revoke": Help(
        "Revokes a key; a running server refuses it within a second.", ("quipu key revoke k1a2b3c4", "quipu key list")
    ),
    "key delete": Help(
        "Deletes a key, so that it is no longer listed; the last one goes by `quipu key reset`.",
        ("quipu key delete k1a2b3c4", "quipu key list"),
    ),
    "key reset": Help(
        "Deletes every key, so that a server on this machine serves every local client again.",
        ("quipu key reset", "quipu key list"),
    ),
    "compact": Help(
        "Returns the space of deleted memories to the file system. Calls younger than QUIPU_UNDO_HOURS can still be "
        "undone; --forget-undo ends that. Beside a server it works in slices, and leaves free pages in the file for "
        "what is written next.",
        ("quipu compact", "quipu compact --forget 2026-01-31", "quipu compact --forget-undo"),
    ),
    "quarantine": Help(
        "Lists the memories that look like prompt injections and are left out of searches.",
        ("quipu quarantine", "quipu quarantine --release paths:memory/project/todo"),
    ),
    "setup": Help(
        "Writes the entry for Quipu into the configuration of an MCP client, after a copy of the file.",
        (
            "quipu setup",
            "quipu setup --client cursor",
            "quipu setup --client claude-desktop --stdio",
            "quipu setup --all",
            "quipu setup --client cursor --remove",
        ),
    ),
    "hook": Help(
        "Shows which clients call Quipu at which events, removes these hooks, or runs one with the input of a client.",
        ("quipu hook status", "quipu hook remove --client cursor", "quipu hook session-start --client claude"),
    ),
    "prime": Help(
        "Prints what an agent gets at the start of a session in a project; nothing where nothing is known.",
        ("quipu prime", "quipu prime --project ~/web", "quipu prime --query 'which port is free'"),
    ),
    "doctor": Help(
        "Checks the installation and says what to do about each problem; the exit status is 1 where one is grave.",
        ("quipu doctor", "quipu doctor --port 8080"),
    ),
    "ui": Help(
        "Opens the console of a running server, logged in with a key that is given or that a client here has.",
        ("quipu ui", "quipu ui --port 8080", "echo $KEY | quipu ui --key -"),
    ),
    "health": Help(
        "Asks a running server for its health; the exit status is 0 where it answers.",
        ("quipu health", "quipu health --port 8080"),
    ),
}

_TOP_EXAMPLES = (
    "quipu setup --client cursor",
    "quipu serve",
    'quipu add "The garage opens at eight."',
    'quipu recall "when does the garage open"',
    "quipu doctor",
)
_ENVIRONMENT = """environment:
  QUIPU_DATA, QUIPU_MODEL, HOST and PORT stand for --data, --model, --host and --port; every other setting is a
  variable too, in docs/operations.md. NO_COLOR turns colours off."""


def add_texts(top: argparse.ArgumentParser) -> None:
    """Gives every command its sentence and examples, and the top its groups."""
    commands = dict(subcommands(top))
    for name, command in commands.items():
        about = TEXTS[name]
        command.description = about.sentence
        command.epilog = _examples(about.examples)
        command.formatter_class = argparse.RawDescriptionHelpFormatter
    top.formatter_class = argparse.RawDescriptionHelpFormatter
    _action(top).help = argparse.SUPPRESS
    top.usage = "quipu COMMAND [OPTION ...]"
    top.description = "\n\n".join([top.description or "", *_groups(briefs(top))])
    top.epilog = "\n\n".join([_examples((*_TOP_EXAMPLES, "quipu COMMAND --help")), _ENVIRONMENT])


def subcommands(parser: argparse.ArgumentParser, prefix: str = "") -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Yield every command below a parser, by its words."""
    action = _action(parser)
    if action is None:
        return
    for name, command in action.choices.items():
        yield f"{prefix}{name}", command
        yield from subcommands(command, f"{prefix}{name} ")


def briefs(top: argparse.ArgumentParser) -> dict[str, str]:
    """Return the commands with a few words on each."""
    return {choice.dest: choice.help or "" for choice in _action(top)._choices_actions}


def actions_of(parser: argparse.ArgumentParser) -> Sequence[argparse.Action]:
    """Return the options and arguments of a command; argparse has no public way to them."""
    actions: Any = parser
    return actions._actions


def _action(parser: argparse.ArgumentParser) -> Any:
    """Return the action that chooses a command; argparse has no public way to it."""
    return next((action for action in actions_of(parser) if isinstance(action.choices, dict)), None)


def _groups(brief: Mapping[str, str]) -> Iterator[str]:
    for title, names in GROUPS.items():
        yield "\n".join([f"{title}:", *(f"{_INDENT}{name:12}{brief[name]}" for name in names)])


def _examples(lines: tuple[str, ...]) -> str:
    return "\n".join(["examples:", *(_INDENT + line for line in lines)])
