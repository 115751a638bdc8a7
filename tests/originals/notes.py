"""opencode-historian with qmd beside the dialect `notes`: without embedding models, which qmd would download."""

from functools import partial

from handlers import notes
from tests.originals.comparison import withheld
from tests.originals.originals import Original, Rule, each

FOLDER = "<data>/project/.mnemonics"
DEPLOY = {"title": "How we deploy", "content": "The deploy script restarts the backend", "memoryType": "context"}

CALLS = (
    *each("memory_list_types", {}, {"verbose": True}),
    *each("memory_recall", {"isAll": True}, {"query": "deploy", "type": "search"}, {}, {"query": ""}),
    *each("memory_recall", {"isAll": True, "memoryType": "context"}, {"isAll": True, "memoryType": "planet"}),
    *each(
        "memory_remember",
        DEPLOY,
        {"title": "Use PostgreSQL", "content": "# Use PostgreSQL\n\nRows.", "memoryType": "Architectural Decision"},
        {"title": "Tabs", "content": "Never spaces", "memoryType": "userPreference", "tags": ["style", "editor"]},
        {"title": "Slow test", "content": "The slow one", "memoryType": "recurring_pattern", "tags": []},
        {"title": "x", "content": "y", "memoryType": "planet"},
        {"title": "x", "content": "y", "memoryType": ""},
        {"title": "x", "content": "y"},
        {"title": "x", "memoryType": "context"},
        {"content": "y", "memoryType": "context"},
        {"title": 5, "content": "y", "memoryType": "context"},
        {"title": "x", "content": 5, "memoryType": "context"},
        {"title": "x", "content": "y", "memoryType": "context", "tags": 5},
        {},
    ),
    # The first index of all files.
    *each("memory_sync", {}),
    *each(
        "memory_recall",
        {"query": "deploy", "type": "search"},
        {"query": "deploy backend", "type": "search"},
        {"query": "deploy nothingness", "type": "search"},
        {"query": "deploy", "type": "search", "memoryType": "context"},
        {"query": "deploy", "type": "search", "memoryType": "Context"},
        {"query": "deploy", "type": "search", "memoryType": "issue"},
        {"query": "nothingness", "type": "search"},
        {"query": "PostgreSQL", "type": "search", "limit": 1},
        {"query": "PostgreSQL", "type": "search", "limit": 0},
        {"query": "deploy"},
        {"query": "deploy", "type": "query"},
        {"query": "deploy", "type": "planet"},
        {"query": 5},
        {"isAll": True, "memoryType": "context"},
        {"isAll": True, "memoryType": "userPreference"},
        {"isAll": True, "memoryType": "context", "limit": 1},
        {"isAll": True, "memoryType": "planet"},
        {"isAll": True},
        {"isAll": "yes"},
    ),
    # Updates.
    *each(
        "memory_remember",
        {**DEPLOY, "content": "The deploy script restarts nothing", "filePath": f"{FOLDER}/context/how-we-deploy.md"},
        {**DEPLOY, "content": "By hand", "filePath": f"{FOLDER}/context/how-we-deploy.md", "tags": ["ops"]},
        {**DEPLOY, "content": "Again", "filePath": "qmd://context/how-we-deploy.md"},
        {**DEPLOY, "filePath": f"{FOLDER}/context/nothing.md"},
        {**DEPLOY, "filePath": "<data>/project/outside.md"},
        {**DEPLOY, "filePath": f"{FOLDER}/../outside.md"},
    ),
    *each("memory_sync", {}),
    *each("memory_recall", {"isAll": True, "memoryType": "context"}, {"query": "deploy", "type": "search"}),
    # Deletions.
    *each(
        "memory_forget",
        {"filePaths": []},
        {},
        {"filePaths": 5},
        {"filePaths": [f"{FOLDER}/context/nothing.md"]},
        {"filePaths": ["<data>/project/outside.md"]},
        {"filePaths": [f"{FOLDER}/context/how-we-deploy.txt"]},
        {"filePaths": [f"{FOLDER}/context/how-we-deploy.md", f"{FOLDER}/context/nothing.md"]},
        {"filePaths": f"{FOLDER}/user-preference/tabs.md"},
        {"filePaths": f'["{FOLDER}/recurring-pattern/slow-test.md"]'},
        {"filePaths": ["qmd://architectural-decision/use-postgresql.md"]},
    ),
    *each("memory_sync", {}),
    *each("memory_recall", {"isAll": True}, {"query": "deploy", "type": "search"}),
    # Arguments that one accepts and the other refuses.
    *each(
        "memory_remember",
        DEPLOY,
        {**DEPLOY, "content": "Another text under the same title"},
        {"title": "  Spaced   Title -- x ", "content": "y", "memoryType": "issue"},
        {"title": "部署", "content": "y", "memoryType": "issue"},
        {"title": "", "content": "y", "memoryType": "issue"},
        {"title": "Empty", "content": "", "memoryType": "issue"},
        {"title": "Typo", "content": "y", "memoryType": "issue", "colour": "red"},
        {"title": "Moved", "content": "y", "memoryType": "issue", "filePath": "context/how-we-deploy"},
        {**DEPLOY, "memoryType": "issue", "filePath": f"{FOLDER}/context/how-we-deploy.md"},
    ),
    *each("memory_recall", {"query": "deploy", "type": "search", "limit": -1}),
    *each("memory_recall", {"query": "deploy", "type": "search", "limit": 100000}),
)

NAMED = "memory_remember: behaviour: file name"
LIMITS = "memory_remember: behaviour: title, content, tags"
RULES = (
    Rule("behaviour: structured content", at="structured", original="none", ours="the same"),
    Rule(
        "every tool: behaviour: bad arguments", at="body", original="invalid argument: *", ours="Invalid arguments: *"
    ),
    Rule("every tool: behaviour: bad arguments", at="outcome", ours="*contains unknown field*"),
    Rule("memory_list_types: behaviour: descriptions", at="types[].description"),
    Rule("memory_recall: behaviour: no model", "memory_sync*", "success || error || message"),
    Rule("memory_recall: behaviour: no model", 'memory_recall {"query": "deploy"*', "memories[] || count || message"),
    Rule("memory_recall: behaviour: search", at="memories[].score", kind="value"),
    Rule("memory_recall: behaviour: search", '*"deploy nothingness"*', "memories[] || count || message"),
    Rule(
        "memory_remember: behaviour: title",
        "memory_recall*",
        "memories[].title",
        original="How We Deploy || Use Postgresql || Slow Test",
    ),
    Rule("memory_recall: behaviour: content", at="memories[].content", original="*\n"),
    Rule("memory_recall: behaviour: isAll", 'memory_recall {"isAll": true} (*', "memories[] || message"),
    Rule("memory_recall: behaviour: unknown memoryType", "memory_recall*planet*", "message", "value"),
    Rule("memory_remember: behaviour: unknown memoryType", at="body", original="Invalid memory type: *"),
    Rule("memory_recall: behaviour: limit", at="outcome", ours="*at `limit`"),
    Rule("memory_forget: behaviour: texts", at="body", original="filePaths is required*"),
    Rule("memory_forget: behaviour: texts", at="errors[]", original="*/ directory", ours="*.mnemonics/"),
    Rule("memory_remember: behaviour: tags", "memory_remember*qmd://*", "tags[]", "length", "[]"),
    Rule("memory_remember: behaviour: same title", at="filePath", ours="*-2.md"),
    Rule("memory_remember: behaviour: type changed", at="filePath", original="*/context/*", ours="*/issue/*"),
    Rule(NAMED, at="filePath", original="*/-spaced-title-x-.md", ours="*/spaced-title-x.md"),
    Rule(NAMED, at="filePath", original="*/.md"),
    Rule(LIMITS, at="outcome", ours="title is required* || content is required*"),
    Rule("memory_remember: behaviour: filePath", at="outcome", ours="filePath is not that of a memory*"),
)

ORIGINAL = Original(
    notes.DIALECT,
    "https://github.com/5kahoisaac/opencode-historian",
    "v1.1.3",
    {"PROJECT": "{data}/project"},
    {"QUIPU_MODEL": "none", "QUIPU_NOTES_ROOTS": "{data}/project"},
    r"(?!)",
    CALLS,
    RULES,
    partial(withheld, key="description", beside="name"),
)
