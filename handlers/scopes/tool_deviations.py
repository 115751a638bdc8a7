"""The lists of deviations of memory_file_lock and memory_import, which are too long for their rows."""

from handlers.scopes.deviations import parameter
from kernel.tools import Deviation

LOCKS = (
    parameter(
        "fencing_token",
        "An agent must not release a lock that expired and went to another agent; the number distinguishes the "
        "two locks",
    ),
    Deviation(
        "behaviour: checkout",
        "refused to the holder too in the original",
        "extends the lock and gives a new `fencingToken` where `session_id` is the same or one of the two has none; "
        "refused to another session of the same agent",
        "An agent that lost its context can continue, and its earlier lock is recognized as stale; two windows of one "
        "program share an agent id and still exclude each other",
    ),
    Deviation(
        "behaviour: checkin",
        "by `file_path` and `agent_id` alone",
        "also takes `session_id`, and is refused where another session holds the lock; after a forced unlock the "
        "refusal names who broke the lock, when and why",
        "A session must not release the lock of another one",
    ),
    Deviation(
        "behaviour: list",
        "an unknown `project_id` or `session_id` gives an empty list in the original",
        "refused as not found",
        "An empty list looks like an answer",
    ),
    Deviation(
        "behaviour: expires_in",
        "up to 86400, and none below 1 in the original",
        "0 to 86400; 0 does not expire, and what is shorter than a millisecond lasts one",
        "A negative time is a mistake",
    ),
    Deviation(
        "behaviour: file_path",
        "no `..` anywhere in the original",
        "no `..` segment; absolute on any system; stored and answered in one form: NFC, without `//`, `/./` and a "
        "separator at the end, drives as `C:/src/a.py`",
        "`a..b.ts` is a file, and the agent's system need not be the server's; two spellings of one file are one lock",
    ),
    Deviation(
        "behaviour: force_unlock",
        "leaves nothing in the original",
        "status shows the last ten in `forceUnlocks`",
        "An agent that lost a lock can see which agent broke it",
    ),
)
IMPORT = (
    parameter(
        "dryRun",
        "The document names `error` for a dry run, which imports where nothing exists yet; this validates, answers "
        "what would be written with `dryRun: true` beside it, and writes nothing",
    ),
    Deviation(
        "behaviour: scopeMapping",
        "a key that fits nothing is ignored by the original; relations are not mapped",
        "a key that is no scope of the document is refused; relations of and to a mapped project, and its tags, go to "
        "the project it is mapped to",
        "A mistyped key would write into the scope that was to be left alone",
    ),
    Deviation(
        "behaviour: success and counts",
        "the original answers true with every entry in `errors`, and counts what was the same already as updated",
        "false and nothing written where no entry fits; `updated` counts entries that changed, `skipped` those that "
        "were the same already too",
        "An agent goes by `success` and by what was written",
    ),
    Deviation(
        "values format",
        "json",
        "json, markdown, yaml",
        "The YAML of an export is read too; markdown is accepted to give the answer that the document promises",
    ),
    Deviation(
        "behaviour: ids",
        "always new in the original",
        "kept with versions, times, authors, activity and relations, unless taken or `generateNewIds` is set",
        "The document says that relations are preserved where ids match",
    ),
    Deviation(
        "behaviour: changeReason",
        "`Initial version` for what is new in the original",
        "that of the document, null without one",
        "An import must not state a reason that nobody gave",
    ),
    Deviation(
        "behaviour: match",
        "by name, in global too if the scope has none",
        "by id where name and scope are the same too, else by name in the same scope; `generateNewIds` matches by name "
        "alone, and still updates the entry found",
        "An import into a project must not change what all projects see",
    ),
    Deviation(
        "behaviour: update, replace",
        "the same in the original",
        "update keeps the fields that the document leaves out, replace does not; neither adds a version where nothing "
        "differs",
        "The document distinguishes them; an import that is repeated changes nothing",
    ),
    Deviation(
        "behaviour: error",
        "lists what exists and adds the rest in the original",
        "refused with the first hundred reasons in `context.errors`, and nothing is changed",
        '"Strict, no modifications"',
    ),
    Deviation(
        "behaviour: currentVersion",
        "beside `versions`; which of them an import reads is not mentioned",
        "an entry whose `currentVersion` differs from that version in `versions` is left out and reported",
        "Which of the two was edited cannot be known, and an edit must not be lost without a word",
    ),
    Deviation(
        "behaviour: scopes",
        "not exported, not checked in the original",
        "created with their ids where they are missing; an entry of an unknown scope is left out and reported in "
        "`errors`",
        "An entry in a scope that does not exist cannot be found",
    ),
    Deviation(
        "behaviour: values",
        "ranges not checked in the original",
        "`priority`, `confidence` and JSON of any range or shape",
        "Exports of the original have them, and nothing may be lost",
    ),
)
