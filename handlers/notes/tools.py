"""The tools of `notes` and where they leave their contract."""

from handlers.notes import sync
from handlers.notes.admin import memory_lint, memory_sync
from handlers.notes.forget import memory_forget
from handlers.notes.memories import memory_list_types, memory_remember, remember_texts
from handlers.notes.recall import memory_recall
from kernel.tools import Deviation, Hints, Hooks, Precheck, exclusive, read

TOOLS = (
    read(
        memory_list_types,
        Hints("List memory types"),
        permission="read",
        deviations=(
            Deviation(
                "result: projects",
                "no",
                "only if there are several",
                "An agent must see the names it can pass as `project`",
            ),
        ),
    ),
    exclusive(
        memory_remember,
        Hints("Remember"),
        permission="write",
        hooks=Hooks(texts=remember_texts),
        deviations=(
            Deviation(
                "parameter project",
                "no",
                "yes",
                "The original serves the one project it was started in; a server for several projects needs the name",
            ),
            Deviation(
                "behaviour: same title",
                "not mentioned",
                "the next free name of `x.md`, `x-2.md`; the identical memory again returns the existing file",
                "The original overwrites the older memory silently, and an agent whose call timed out retries",
            ),
            Deviation(
                "behaviour: title",
                "used for the file name",
                "also kept as `title:` in the front matter if the file name does not give it",
                "The original's recall returns `Use Postgresql` for `Use PostgreSQL`, and no title at all in another "
                "script",
            ),
            Deviation(
                "behaviour: type changed",
                "not mentioned",
                "the file moves to the folder of its new type",
                "The folder and the front matter must agree",
            ),
            Deviation(
                "behaviour: tags",
                "an array",
                "also one text with commas, or an array inside a text; the answer has the tags of the file",
                "Agents send them; an update without tags keeps the existing ones",
            ),
            Deviation(
                "behaviour: title, content, tags",
                "no limits",
                "a title of 1 to 500 characters on one line, 1 byte to 1 MB of content, 64 tags of 100 characters; "
                "no control characters in titles and tags",
                "The files must stay readable for people, and one agent must not make every recall too large for the "
                "others",
            ),
            Deviation(
                "behaviour: title of an update",
                "not mentioned",
                "required and ignored: the file keeps its title and its name",
                "Links and earlier answers of memory_recall name the file",
            ),
        ),
    ),
    read(
        memory_recall,
        Hints("Recall"),
        permission="read",
        hooks=Hooks(precheck=Precheck(sync.check, sync.write, sync.texts)),
        deviations=(
            Deviation("parameter project", "no", "yes", "As for memory_remember; without it every project is searched"),
            Deviation(
                "behaviour: limit",
                "any number",
                "0 to 1000, where 0 is the default",
                "More does not fit into an answer",
            ),
            Deviation(
                "behaviour: files",
                "every `.md` file",
                "files of at most 4 MB, at most 32 folders deep; memory_lint reports the others",
                "A stray dump or a loop of folders must not stop every recall",
            ),
            Deviation(
                "behaviour: several projects",
                "one project",
                "a project that cannot be read is skipped and answered from its last known state; memory_lint "
                "reports it, memory_sync fails",
                "One unreadable folder must not hide the memories of the others",
            ),
            Deviation(
                "behaviour: invalid times",
                "not mentioned",
                "the time of the file replaces an unreadable `created` or `modified`; memory_lint reports it",
                "Clients sort and compare the times in answers",
            ),
            Deviation(
                "behaviour: memoryType",
                "the folder",
                "the type in the front matter, filtered before ranking; the folder if the front matter has none",
                "The two disagree in real folders, and a filter after ranking starves small types",
            ),
            Deviation(
                "behaviour: search",
                "BM25, cosine, positions",
                "word coverage and BM25, cosine, both as independent evidence; each in [0, 1] and independent of the "
                "other hits",
                "BM25 is 0 in a small store, and a position does not show how well a memory fits",
            ),
            Deviation(
                "behaviour: no model",
                "not mentioned",
                "every search type uses words",
                "A store without an embedding model must still answer",
            ),
            Deviation(
                "behaviour: content",
                "ends with a line end the writer added",
                "exactly the content that was stored",
                "What is read must equal what was written",
            ),
            Deviation(
                "behaviour: created, modified",
                "from the front matter",
                "the time of the file if the front matter has none",
                "Files written by hand seldom have them",
            ),
        ),
    ),
    exclusive(
        memory_forget,
        Hints("Forget", destructive=True),
        permission="write",
        deviations=(
            Deviation(
                "behaviour: number of filePaths",
                "any",
                "at most 1000; a path given twice counts once",
                "Each call must end soon, and a repeated path is not a failure",
            ),
            Deviation(
                "behaviour: filePaths",
                "an array",
                "also one path, or an array inside a text",
                "Later releases of the original take them",
            ),
            Deviation(
                "behaviour: wiki files",
                "not mentioned",
                "`index.md`, `log.md` and `SCHEMA.md` at the top of the folder are skipped: they are not memories",
                "A wiki keeps them there; recall does not return them either",
            ),
        ),
    ),
    read(
        memory_sync,
        Hints("Sync"),
        permission="read",
        hooks=Hooks(precheck=Precheck(sync.check_all, sync.write, sync.texts)),
        long=True,
        deviations=(
            Deviation(
                "tool",
                "no",
                "yes",
                "A later release of the original has it; every recall follows the files by itself, and this tool "
                "reads them all again if their time stamps are not reliable",
            ),
        ),
    ),
    read(
        memory_lint,
        Hints("Lint"),
        permission="read",
        hooks=Hooks(precheck=Precheck(sync.check, sync.write, sync.texts)),
        deviations=(
            Deviation(
                "tool",
                "no",
                "yes",
                "A later release of the original has it; files that people edit need a check for what went wrong in "
                "them",
            ),
        ),
    ),
)

DEVIATIONS = {
    "memory_remember, memory_forget": (
        Deviation(
            "behaviour: paths",
            "a path",
            "absolute, relative to the project or its `.mnemonics`, or `qmd://type/file.md`; a path through a link "
            "is refused",
            "Earlier releases of the original answered with the latter two",
        ),
        Deviation(
            "behaviour: paths, several projects",
            "not mentioned",
            "absolute; a relative or `qmd://` path is refused, unless memory_remember names the project",
            "Such a path could belong to any project, and the wrong file must not be changed or deleted",
        ),
    ),
    "memory_remember, memory_recall": (
        Deviation(
            "behaviour: types",
            "any name",
            "a configured name that ends in `.md` is refused",
            "Its folder would look like a file",
        ),
    ),
}
