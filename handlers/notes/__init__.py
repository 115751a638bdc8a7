"""Dialect `notes` (seed 001): typed memories in Markdown files that people edit too; the index follows the files."""

from handlers.notes import admin, curation, journal, memories, note_file, restore, sync
from handlers.notes.projects import SETTINGS, SPACE, folders
from kernel.calls.dialect import Dialect, Files, Memories, Outside
from kernel.calls.tools import Precheck, Reply, json_reply
from kernel.core.errors import Fault
from kernel.store.history import Past


def fail(fault: Fault) -> Reply:
    return Reply(fault.message.encode(), "text/plain; charset=utf-8", fault.code)


DIALECT = Dialect(
    name=SPACE,
    about="Typed memories in Markdown files that people edit too: remember, recall by words or meaning, forget.",
    guide="Call memory_recall first. memory_remember writes a Markdown file that people read too: a title that "
    "says the point, a type of memory_list_types, and filePath to update a file.",
    tools=(*memories.TOOLS, *admin.TOOLS),
    reply=json_reply,
    fail=fail,
    memories=Memories(
        places=("PROJECT",),
        sources=sync.sources,
        sources_of=sync.sources_of,
        curate=curation.curate,
        compose=curation.compose,
        brief=curation.brief,
        tagged=memories.tagged,
        past=Past(note_file.past_sources),
    ),
    settings=SETTINGS,
    files=Files(
        after_undo=restore.restore_files,
        recover=journal.recover,
        follow=Precheck(sync.check_for_common, sync.write, sync.texts),
        folders=folders,
        outside={"notes_file": Outside(restore.COLUMNS, restore.restore), "notes_change": Outside()},
    ),
)
