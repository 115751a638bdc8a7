"""The fifteen tools of `scopes`, and where each leaves its contract."""

from collections.abc import Mapping

from handlers.scopes import (
    admin,
    conflicts,
    entries,
    entry_requests,
    export_import,
    hierarchy,
    locks,
    query,
    relations,
    sessions,
    tags,
)
from handlers.scopes.deviations import EXPORT, IMPORT, QUERY, TAG_VALUES, parameter
from handlers.scopes.entry_tools import memory_guideline, memory_knowledge, memory_tool
from kernel.tools import Access, Deviation, Hints, Hooks, Tool, exclusive, read, write

_ENTRY_PERMISSIONS: Mapping[str, Access] = {
    "add": "write",
    "update": "write",
    "get": "read",
    "list": "read",
    "history": "read",
    "deactivate": "write",
}
_ENTRY_HOOKS = Hooks(texts=entries.texts_to_embed)

TOOLS: tuple[Tool, ...] = (
    write(
        hierarchy.memory_org,
        Hints("Organizations"),
        permission={"create": "write", "list": "read"},
        read_arms=hierarchy.ORG_READ_ARMS,
    ),
    write(
        hierarchy.memory_project,
        Hints("Projects"),
        permission={"create": "write", "list": "read", "get": "read", "update": "write"},
        read_arms=hierarchy.PROJECT_READ_ARMS,
        deviations=(
            Deviation(
                "behaviour: name",
                "unique per organization in one case, not at all outside one",
                "unique in any case, within an organization and outside",
                "A project is found by its name in any case",
            ),
            Deviation(
                "behaviour: get by name",
                "only projects without an organization if `orgId` is left out",
                "those first, then one of any organization if no other has the name",
                "The document says that a name finds a project",
            ),
        ),
    ),
    write(
        sessions.memory_session,
        Hints("Sessions"),
        permission={"start": "write", "end": "write", "list": "read"},
        read_arms=sessions.READ_ARMS,
        deviations=(
            Deviation(
                "values status",
                "completed, discarded",
                "active, completed, discarded",
                "The document's own example lists the active sessions",
            ),
        ),
    ),
    write(
        memory_tool,
        Hints("Tools"),
        permission=_ENTRY_PERMISSIONS,
        hooks=_ENTRY_HOOKS,
        read_arms=entry_requests.READ_ARMS,
    ),
    write(
        memory_guideline,
        Hints("Guidelines"),
        permission=_ENTRY_PERMISSIONS,
        hooks=_ENTRY_HOOKS,
        read_arms=entry_requests.READ_ARMS,
    ),
    write(
        memory_knowledge,
        Hints("Knowledge"),
        permission=_ENTRY_PERMISSIONS,
        hooks=_ENTRY_HOOKS,
        read_arms=entry_requests.READ_ARMS,
    ),
    write(
        tags.memory_tag,
        Hints("Tags"),
        permission={"create": "write", "list": "read", "attach": "write", "detach": "write", "for_entry": "read"},
        read_arms=tags.READ_ARMS,
        deviations=(Deviation("behaviour: detach", "`tagId`", "or `tagName`", "attach takes either"),),
    ),
    write(
        relations.memory_relation,
        Hints("Relations", destructive=True),
        permission={"create": "write", "list": "read", "delete": "write"},
        read_arms=relations.READ_ARMS,
        deviations=(
            parameter("createdBy"),
            Deviation(
                "values sourceType",
                "any",
                TAG_VALUES,
                "The document lists no values for relations; these are the ones it lists for tags",
            ),
            Deviation(
                "values targetType",
                "any",
                TAG_VALUES,
                "The document lists no values for relations; these are the ones it lists for tags",
            ),
        ),
    ),
    write(
        locks.memory_file_lock,
        Hints("File locks", destructive=True),
        permission={"checkout": "write", "checkin": "write", "status": "read", "list": "read", "force_unlock": "admin"},
        read_arms=locks.READ_ARMS,
        deviations=(
            parameter(
                "fencing_token",
                "An agent must not release a lock that expired and went to another agent; the number distinguishes the "
                "two locks",
            ),
            Deviation(
                "behaviour: checkout",
                "refused to the holder too in the original",
                "extends the lock and gives a new `fencingToken`",
                "An agent that lost its context can continue, and its earlier lock is recognized as stale",
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
                "no `..` segment; absolute on any system",
                "`a..b.ts` is a file, and the agent's system need not be the server's",
            ),
            Deviation(
                "behaviour: force_unlock",
                "leaves nothing in the original",
                "status shows the last ten in `forceUnlocks`",
                "An agent that lost a lock can see which agent broke it",
            ),
        ),
    ),
    read(
        query.memory_query,
        Hints("Query"),
        permission={"search": "read", "context": "read"},
        deviations=QUERY,
    ),
    write(
        conflicts.memory_conflict,
        Hints("Conflicts"),
        permission={"list": "read", "resolve": "write"},
        read_arms=conflicts.READ_ARMS,
        deviations=(
            Deviation(
                "values entryType",
                "any",
                "guideline, knowledge, tool",
                "The document lists no values; any other word matches no conflict",
            ),
            Deviation(
                "behaviour: list",
                "unresolved only",
                "as documented, where the original lists all",
                "The document takes precedence",
            ),
        ),
    ),
    read(
        admin.memory_health,
        Hints("Health"),
        permission="read",
        deviations=(
            Deviation(
                "behaviour: values",
                "cache, locks and version of the original",
                "no cache, so nothing is stale; locks that have not expired; `serverVersion` is the release that this "
                "contract describes",
                "Agents use the version to know which tools they have",
            ),
        ),
    ),
    exclusive(
        admin.memory_init,
        Hints("Initialization", destructive=True),
        permission={"init": "read", "status": "read", "reset": "admin"},
        read_arms=admin.READ_ARMS,
        long=True,
        deviations=(
            Deviation(
                "behaviour: answers",
                "the document and the original give different keys",
                "the keys of both; init finds everything done, `force` and `verbose` change nothing",
                "Every start applies the missing migrations",
            ),
            Deviation(
                "behaviour: reset",
                "drops all tables one by one in the original",
                "clears this dialect alone or nothing, restores the predefined tags, and names the `backup` it left",
                "Data of other dialects must stay, and a reset by mistake can be undone",
            ),
        ),
    ),
    read(
        export_import.memory_export,
        Hints("Export"),
        permission={"export": "read"},
        audited=True,
        deviations=EXPORT,
    ),
    exclusive(
        export_import.memory_import,
        Hints("Import", destructive=True),
        permission={"import": "admin"},
        long=True,
        deviations=IMPORT,
    ),
)
