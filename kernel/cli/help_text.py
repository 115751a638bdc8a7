"""The text of `--help` beside the options: the groups of commands, and a sentence and examples for each."""

from collections.abc import Mapping
from typing import NamedTuple

_TEXT = r"""
= Memories

recall: find memories of every dialect
Finds memories by words and by meaning, of every dialect; the exit status is 1 if there are none.
  quipu recall when does the garage open
  quipu recall "open tasks" --dialect paths --since 7d
  quipu recall car --json --limit 3

list: list the newest memories
Lists the memories that were changed last, a line of each.
  quipu list
  quipu list --since 2026-01-31 --actor cursor
  quipu list --dialect brain --json

show: show one memory
Shows the text of one memory, its author and its links.
  quipu show paths/car

history: show the changes of one memory
Shows the versions of one memory with their differences, the newest first.
  quipu history paths/car

add: add a memory
Adds a memory by the tool of a dialect, and prints its id.
  quipu add "The garage opens at eight." --name car/garage
  quipu add --dialect brain < notes.txt
  quipu add

edit: change the text of a memory in $EDITOR
Changes the text of a memory; if that is refused, as after a change meanwhile, a file keeps the new text.
  quipu edit paths/car
  quipu edit paths/car --text "The garage opens at nine."
  quipu edit brain:core/mem_1 --until 2026-01-31

forget: delete a memory
Deletes a memory of any kind, an immutable one with --immutable; `quipu undo` brings it back.
  quipu forget paths/car
  quipu forget brain:core/mem_01abc --immutable
  quipu forget graph/Ann --observation "likes tea"

stats: count the memories
  quipu stats

= Connect

setup: configure an MCP client for this server
Writes the entry for Quipu into the configuration of an MCP client, after a copy of the file.
  quipu setup
  quipu setup --client cursor
  quipu setup --client claude-desktop --stdio
  quipu setup --all
  quipu setup --client cursor --remove

hook: show or remove the hooks of clients, or run one
Shows which clients call Quipu at which events, removes these hooks, or runs one with the input of a client.
  quipu hook status
  quipu hook remove --client cursor
  quipu hook session-start --client claude

serve: serve MCP and JSON over HTTP
Serves MCP and plain JSON over HTTP until it is interrupted.
  quipu serve
  quipu serve --port 8080 --data ~/memories
  quipu serve --backup-to ~/backups

expose: let other devices reach the server by a name
Stores the name behind which a proxy or a tunnel with TLS leads here, and prints the steps that remain.
  quipu expose --host memory.example
  quipu expose
  quipu expose --off

service: run the server in the background
Runs the server as a service of this user: by systemd, launchd or the Task Scheduler.
  quipu service install
  quipu service install --port 8080 --data ~/memories
  quipu service remove

stdio: serve MCP over standard input and output
Serves one MCP client over standard input and output; clients start it themselves.
  quipu stdio
  quipu stdio --dialect paths --dialect common

key: create, list, revoke and delete API keys
  quipu key create --scope write --name laptop
  quipu key list
  quipu key revoke k1a2b3c4

key create: create a key and print its secret once
  quipu key create --scope write
  quipu key create --scope read --expires 90d --dialect paths

key list: list all keys, without secrets
  quipu key list

key revoke: revoke a key; takes effect within a second
  quipu key revoke k1a2b3c4

key delete: delete a key, so that it is no longer listed
Deletes a key, so that it is no longer listed; the last one goes by `quipu key reset`.
  quipu key delete k1a2b3c4

key reset: delete every key; a server on this machine then asks for none
Deletes every key, so that a server on this machine serves every local client again.
  quipu key reset

completion: print the completion of a shell
Prints the script by which a shell completes commands, options, their values and ids.
  quipu completion bash > ~/.quipu.bash
  quipu completion fish > ~/.config/fish/completions/quipu.fish

= Look

prime: print the memories of a project
Prints the text that an agent gets at the start of a session in a project; nothing for an unknown one.
  quipu prime
  quipu prime --project ~/web
  quipu prime --query 'which port is free'

doctor: diagnose the installation and suggest remedies
Checks the installation and suggests a remedy for each problem; the exit status is 1 if one is grave.
  quipu doctor
  quipu doctor --port 8080

health: check the health of a running server
Asks a running server for its health; the exit status is 0 if it answers.
  quipu health
  quipu health --port 8080

ui: open the console of a running server in the browser
Opens the console of a running server, logged in with the given key or that of a client here.
  quipu ui
  quipu ui --port 8080
  echo $KEY | quipu ui --key -

tools: list the tools of every dialect
  quipu tools --tokens

audit: show the audit log and verify its hash chain
Shows the newest calls that changed something; the exit status is 1 if the hash chain is broken.
  quipu audit
  quipu audit --limit 1000 --json
  quipu audit --session 7f3a

quarantine: list memories quarantined as suspected prompt injection
Lists the memories that look like prompt injections and are left out of searches.
  quipu quarantine
  quipu quarantine --release paths:memory/project/todo

= Keep

backup: copy the database, or everything, while it is in use
Copies the database, or with --all everything, while servers read and write it.
  quipu backup
  quipu backup ~/memories.db
  quipu backup --all ~/backups/today
  quipu backup --to ~/backups --keep 24

restore: put a backup in place; the server must be stopped
Verifies a backup and puts it in place, whole or not at all; the data before it are kept beside it.
  quipu restore ~/memories.db
  quipu restore ~/backups/today

replica: keep a copy that follows, for serve --follow
Keeps a copy of everything in another folder, which follows each change until this is interrupted.
  quipu replica /srv/quipu-copy
  quipu serve --data /srv/quipu-copy --follow --port 7848

check: verify the file, rows, full-text index and vectors
Runs SQLite's integrity check and compares memories with full-text index and vectors; the exit status is 1 if they
differ.
  quipu check
  quipu check --repair
  quipu check --project .

reindex: rebuild the full-text index and the vectors from the rows
  quipu reindex
  quipu reindex --model ~/models/own

compact: shrink the database file after deletions
Returns the space of deleted memories to the file system. Calls younger than QUIPU_UNDO_HOURS can still be undone;
--forget-undo ends that. Beside a server it works in slices, and leaves free pages in the file for later writes.
  quipu compact
  quipu compact --forget 2026-01-31
  quipu compact --forget-undo

undo: undo the changes of one call
Restores the memories that one call changed to their state before it; without a number it proposes the last call.
  quipu undo
  quipu undo 42

import: import the memories of another program
Imports the data of another program; a memory that is there already is not added again.
  quipu import --list
  quipu import ~/.claude-mem/claude-mem.db --dry-run
  quipu import ~/.claude-mem/claude-mem.db
  quipu import rules ~/project
  quipu import project-brain ~/brain --password-env PASSWORD

export: write everything, or a dialect, into a file or folder
Writes everything into a new file of JSON lines or a folder of Markdown, or a dialect for its original.
  quipu export jsonl ~/memories.jsonl
  quipu export okf ~/memories
  quipu export graph ~/memory.jsonl --tenant acme

store: copy a store, or name databases for tenants
Copies a store from a file to PostgreSQL, or back, and names the databases among which tenants are spread.
  quipu store copy ~/.local/share/quipu postgresql://quipu@db.internal/quipu
  quipu store add postgresql://quipu@db2.internal/quipu

store copy: copy a tenant into an empty one
Copies all memories of a tenant, their history, the audit and the settings, and compares the copy with its source;
calls made before can no longer be undone there.
  quipu store copy ~/.local/share/quipu postgresql://quipu@db.internal/quipu
  quipu store copy postgresql://quipu@db.internal/quipu ~/copy --tenant acme

store list: list the databases that tenants are on
  quipu store list

store add: let new tenants go to a database
Adds a database to those that take new tenants: each goes to the one with the fewest.
  quipu store add postgresql://quipu@db2.internal/quipu
  quipu store add home

store remove: let no new tenants go to a database
Lets no new tenants go to a database; those that it has stay there.
  quipu store remove postgresql://quipu@db2.internal/quipu
  quipu store remove home

tenant: list tenants, remove one, or move one to another database
Lists the tenants of a data directory or of PostgreSQL databases, erases one, or moves one to another database.
  quipu tenant list
  quipu tenant remove acme
  quipu tenant move acme --to postgresql://quipu@db2.internal/quipu

tenant list: list the tenants with their folders or databases, and their keys
Lists tenants that have a key and no call yet too.
  quipu tenant list

tenant remove: erase a tenant, its keys, and its files or rows
Deletes the keys first, asks before that, and prints a receipt; backups and the files of replicas stay. The same command
finishes a removal that was interrupted.
  quipu tenant remove acme
  quipu tenant remove acme --yes --json

tenant move: move a tenant to another database
Copies a tenant while it is used, compares the copy with its source, and switches; only its writes wait, for seconds.
The same command finishes a move that was interrupted.
  quipu tenant move acme --to postgresql://quipu@db2.internal/quipu
  quipu tenant move acme --to home
"""
TOP_EXAMPLES = (
    "quipu setup --client cursor",
    "quipu serve",
    'quipu add "The garage opens at eight."',
    'quipu recall "when does the garage open"',
    "quipu doctor",
    "quipu COMMAND --help",
)
ENVIRONMENT = """environment:
  QUIPU_DATA, QUIPU_MODEL, HOST and PORT stand for --data, --model, --host and --port; every other setting is a
  variable too, in docs/settings.md. NO_COLOR turns colours off."""


class Help(NamedTuple):
    """A few words for the list of commands; sentences, which may be empty, and examples for its own help."""

    brief: str
    sentences: str
    examples: tuple[str, ...]


def _parsed(text: str) -> dict[str, dict[str, Help]]:
    groups: dict[str, dict[str, Help]] = {}
    commands: dict[str, Help] = {}
    for section in text.strip().split("\n\n"):
        head, *lines = section.splitlines()
        if head.startswith("= "):
            commands = groups[head.removeprefix("= ")] = {}
            continue
        name, _, brief = head.partition(": ")
        examples = tuple(line.strip() for line in lines if line.startswith(" "))
        commands[name] = Help(brief, " ".join(line for line in lines if not line.startswith(" ")), examples)
    return groups


GROUPS: Mapping[str, Mapping[str, Help]] = _parsed(_TEXT)
TEXTS = {name: text for commands in GROUPS.values() for name, text in commands.items()}
