"""dominds beside the dialect `paths`: the tools of its agents for their personal memory."""

from handlers import paths
from tests.originals.originals import Original, Rule, each

PLAN = {"path": "project/todo", "content": "Ship the parser"}

CALLS = (
    *each("clear_memory", {}, {"path": "x"}),
    *each(
        "add_memory",
        PLAN,
        PLAN,
        {"path": "onboarding.md", "content": "Grüße, 世界\nsecond line\n"},
        {"path": "meeting/2024-01-15", "content": "   "},
        {"path": "  notes/padded  ", "content": "x"},
        {"path": "a b/c", "content": "spaces"},
        {"path": "", "content": "x"},
        {"path": "   ", "content": "x"},
        {"path": "x", "content": ""},
        {"path": "/etc/passwd", "content": "x"},
        {"path": "../outside", "content": "x"},
        {"path": "a/../b", "content": "x"},
        {"path": "x" * 256, "content": "x"},
        {"path": "x"},
        {"content": "x"},
        {"path": 5, "content": "x"},
        {"path": "x", "content": 5},
        {"path": "x", "content": "y", "colour": "red"},
        {"path": None, "content": "x"},
        {},
    ),
    *each(
        "replace_memory",
        {**PLAN, "content": "Ship the lexer"},
        {"path": "nothing", "content": "x"},
        {"path": "project/todo", "content": ""},
        {"path": "", "content": "x"},
        {"path": "../outside", "content": "x"},
        {"path": "project/todo"},
        {"path": 5, "content": "x"},
        {**PLAN, "colour": "red"},
    ),
    *each(
        "drop_memory",
        {"path": "project/todo"},
        {"path": "project/todo"},
        {"path": "../outside"},
        {"path": ""},
        {"path": 5},
        {"path": "x", "colour": "red"},
        {},
    ),
    *each("clear_memory", {}, {}),
    # Arguments that one accepts and the other refuses.
    *each(
        "add_memory",
        {"path": "v1..2", "content": "x"},
        {"path": "a*b?c", "content": "x"},
        {"path": "a\\b", "content": "x"},
        {"path": "tester/own", "content": "x"},
        {"path": "project/deep", "content": "x"},
        {"path": "project", "content": "x"},
        {"path": "project/deep/er", "content": "x"},
        {"path": "a//b", "content": "x"},
        {"path": "big", "content": "x" * 1_048_577},
    ),
    *each("drop_memory", {"path": "project"}, {"path": "project/none"}),
    *each("replace_memory", {"path": "project/deep", "content": "x" * 1_048_577}),
)

FILES = "behaviour: paths and files"
RULES = (
    Rule("behaviour: answers", at="structured", original="none", ours="another"),
    Rule("behaviour: answers", at="body", ours="status: ok*"),
    Rule("behaviour: answers", at="body", ours="status: error*MEMORY_*"),
    Rule("error code", at="body", ours="status: error*INVALID_ARGS*"),
    Rule(FILES, at="outcome", original="*Path traversal*", ours="*path: v1..2*"),
    Rule(FILES, at="outcome", original="* already exists. *", ours="*path: project\n*"),
    Rule(FILES, at="outcome", original="EEXIST* || EISDIR*", ours="status: ok*"),
    Rule(FILES, at="outcome", original="Added", ours="*contains illegal characters*"),
    Rule(FILES, at="outcome", original="Added || Updated", ours="*exceeds 1MB limit*"),
    Rule("behaviour: form of a path", at="outcome", original="Added", ours="*has an empty*"),
)

ORIGINAL = Original(paths.DIALECT, "https://github.com/longrun-ai/dominds", "53497cb0", {}, {}, r"(?!)", CALLS, RULES)
