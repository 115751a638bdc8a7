"""The deviations of `files` from the vendor's page and the local tool of its Python SDK."""

from kernel.tools import Deviation

_PAGE = "The vendor's page says so; its SDKs differ from it and from each other"

METHODS = (
    Deviation(
        "limit: memories of a store",
        "2,000",
        "none",
        "A store is as large as its disk",
    ),
    Deviation(
        "limit: versions",
        "kept for a time, and as long as their store",
        "kept as long as their store",
        "What was deleted or overwritten can be read again; redaction removes what must not stay",
    ),
    Deviation(
        "behaviour: who made a version",
        "a session, a key, a user or a service account",
        "the key, or null where the server needs none",
        "There are no other callers",
    ),
    Deviation(
        "behaviour: redaction",
        "of the content of a version",
        "also of this text in the history of the memory, and of what undo keeps of the calls that touched it",
        "A secret must be nowhere",
    ),
    Deviation(
        "behaviour: redaction of the present version of a memory",
        "not said",
        "refused until the memory is changed or deleted",
        "It would leave a memory without content",
    ),
    Deviation(
        "behaviour: an update that changes nothing",
        "not said",
        "makes no version",
        "Nothing has changed",
    ),
    Deviation(
        "behaviour: archive and delete",
        "cannot be undone",
        "can be undone by `quipu undo` for a week",
        "So can every destructive call",
    ),
    Deviation(
        "behaviour: headers",
        "`anthropic-version` and a beta are needed; a workspace may be chosen",
        "passed over; the key chooses the tenant",
        "There is one version",
    ),
    Deviation(
        "behaviour: order of lists",
        "not said",
        "stores and versions newest first, memories by path",
        "A page must have an order",
    ),
)
COMMANDS = (
    Deviation(
        "error: prefix",
        "`Error: ` on the vendor's page; its SDKs leave it out",
        "as on the page; over MCP the result has `isError` too",
        _PAGE,
    ),
    Deviation(
        "behaviour: view of a directory",
        "the Python SDK lists `node_modules`, and says nothing of it in the first line",
        "left out and named in the first line, as on the page",
        _PAGE,
    ),
    Deviation(
        "behaviour: sizes of directories",
        "what the file system takes for the directory itself",
        "the sum of the files below",
        "There are no directories in the store, and the sum says something",
    ),
    Deviation(
        "behaviour: empty directories",
        "stay when their last file is deleted or moved",
        "do not exist: directories are what paths imply",
        "An empty directory remembers nothing",
    ),
    Deviation(
        "behaviour: paths",
        "`..` is followed within the root, `%2e%2e` is a name, `/memoriesX` is inside, `a/` creates the file `a`, "
        "`//` is echoed",
        "`..` and its percent-encoded forms are refused, `/memoriesX` is outside, `a/` cannot be created, `//` and "
        "`/./` are collapsed, and names are normalized to NFC",
        "The page recommends it, and one file should have one name",
    ),
    Deviation(
        "limit: paths",
        "those of the file system",
        "20 segments, 1,024 bytes, no control or format characters",
        "The vendor's stores of memories have these limits, and share the files",
    ),
    Deviation(
        "limit: content",
        "none",
        "102,400 bytes; the SDKs' 999,999 lines too",
        "The vendor's stores of memories have this limit, and share the files",
    ),
    Deviation(
        "limit: answer of view",
        "none",
        "16,000 characters, cut at a line, with a hint at the rest",
        "The page advises it; a model's context is small",
    ),
    Deviation(
        "behaviour: view_range",
        "Python takes a negative end from the end of the file, as in a slice",
        "an end before the start shows the first line of the answer alone; -1 is the end of the file",
        "The page knows no other negative number than -1",
    ),
    Deviation(
        "behaviour: a path below a file",
        "create and rename fail with a path of the host in the message",
        "`Error: The path PARENT is a file`; for view it does not exist",
        "No path of the host belongs into a model's context",
    ),
    Deviation(
        "behaviour: rename into itself",
        "fails with a path of the host in the message",
        "`Error: The path NEW lies inside OLD`",
        "No path of the host belongs into a model's context",
    ),
    Deviation(
        "error: str_replace of a directory",
        "`is not a file` in the SDKs",
        "`does not exist`, as on the page",
        _PAGE,
    ),
    Deviation(
        "error: old_str several times in a line",
        "Python names the line each time; Node replaces the first",
        "refused, and each line is named once",
        "A replacement that may be the wrong one loses text",
    ),
    Deviation(
        "error: empty old_str",
        "refused as several occurrences, with every line or character",
        "`Error: old_str must not be empty`",
        "The answer would be longer than the file",
    ),
    Deviation(
        "behaviour: str_replace without new_str",
        "Python fails, and Node writes the word undefined",
        "the text is deleted",
        "A model that leaves it out wants the text gone",
    ),
    Deviation(
        "error: insert_line",
        "`within the range [0, N].` in Python; Node counts the end of the last line as a line",
        "the words of the page; N is the number of lines",
        _PAGE,
    ),
    Deviation(
        "behaviour: insert_text that ends in line feeds",
        "Python takes all of them off, Node one; an empty text at the end adds nothing in Python",
        "one is taken off; an empty text is an empty line",
        "Who wants an empty line gets it",
    ),
    Deviation(
        "behaviour: insert into a file whose last line is empty",
        "Python loses that line",
        "it stays",
        "An insertion deletes nothing",
    ),
    Deviation(
        "error: missing arguments",
        "an exception of the language, and create leaves an empty file",
        "refused, and nothing is made",
        "A call that fails must change nothing",
    ),
)
