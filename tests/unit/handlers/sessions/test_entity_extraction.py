"""Mentions are recognized by their form, once each, in linear time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handlers.sessions.entity_extraction import MAX_ENTITIES, MAX_NAME_LENGTH, Mention, extract_mentions, has_grammars


def found(text: str) -> list[tuple[str, str]]:
    return [(entity.entity_type, entity.name) for entity in extract_mentions(text) if entity.source == "regex"]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("call parse_config() first", [("function_like", "parse_config")]),
        ("run  retry_all (now)", [("function_like", "retry_all")]),
        ("for (x) while (y) if (z) return (1) print (2)", []),
        ("ab()", []),
        ("größe_von(x)", [("function_like", "größe_von")]),
        ("see https://example.com/a?b=1, please", [("url", "https://example.com/a?b=1")]),
        ("see <https://en.wikipedia.org/wiki/Quipu_(knot)>.", [("url", "https://en.wikipedia.org/wiki/Quipu_(knot)")]),
        ("in src/app/config.py and README.md.", [("file_path", "src/app/config.py"), ("file_path", "README.md")]),
        ("at /etc/hosts or C:\\ada\\notes.txt", [("file_path", "C:\\ada\\notes.txt"), ("file_path", "/etc/hosts")]),
        ("in ./a.ts, ../b.go, ~/c.sh", [("file_path", "./a.ts"), ("file_path", "../b.go"), ("file_path", "~/c.sh")]),
        ("fixed MEM-12 and #34, not A-0 or x#5", [("ticket", "MEM-12"), ("ticket", "#34")]),
        (
            "set $HOME, ${QUIPU_DATA}, %TEMP% and env:PATH",
            [("env_var", "HOME"), ("env_var", "QUIPU_DATA"), ("env_var", "TEMP"), ("env_var", "PATH")],
        ),
        ("CODE_MEMORY_TOP_K is 12", [("env_var", "CODE_MEMORY_TOP_K")]),
        ("$ make test\n> ls -la", [("command", "make test"), ("command", "ls -la")]),
        ("run `git rebase -i` then\nnpm install x", [("command", "git rebase -i"), ("command", "npm install x")]),
        (
            "raised ValueError, then apsw.BusyError and MyFault",
            [("error", "ValueError"), ("error", "apsw.BusyError"), ("error", "MyFault")],
        ),
        ("class Foo:\n    x = 1\nexport class Bar {", [("class", "Foo"), ("class", "Bar")]),
        (
            "def bar(x):\nasync def baz():\npub fn qux() {",
            [("function", "bar"), ("function", "baz"), ("function", "qux")],
        ),
        ("", []),
        ("plain prose with nothing in it", []),
    ],
)
def test_each_type_is_recognized(text: str, wanted: list[tuple[str, str]]) -> None:
    assert found(text) == wanted


def test_only_files_have_a_path() -> None:
    assert extract_mentions("open_it() in src/a.py") == [
        Mention("file_path", "src/a.py", "regex", "src/a.py"),
        Mention("function_like", "open_it", "regex", None),
    ]


def test_mentions_are_unique_and_at_most_fifty() -> None:
    assert found("go() " * 3 + "run_me() run_me()") == [("function_like", "run_me")]
    assert len(extract_mentions(" ".join(f"call_{number}()" for number in range(200)))) == MAX_ENTITIES


def test_without_grammars_regular_expressions_still_run() -> None:
    assert has_grammars() is False
    assert {entity.source for entity in extract_mentions("def f():\n  go_on()")} == {"regex"}


@pytest.mark.slow
@given(st.text(max_size=400))
def test_any_text_is_processed_without_error(text: str) -> None:
    assert all(0 < len(entity.name) <= MAX_NAME_LENGTH for entity in extract_mentions(text))


PIECES = [
    "a",
    "a/",
    "a.",
    "A_",
    "é",
    "```py\n",
    "class ",
    "\n",
    " ",
    "$",
    "https://",
    "a-",
    "A1_A1",
    "export ",
    "`git ",
    "../",
    "Aa.aa.",
    "Error",
    "://https://((",
    "```a",
    "def ",
    "#",
    "C:\\",
    "%",
    "(",
    "a (",
    "\t",
    "env:",
]


@pytest.mark.parametrize("piece", PIECES)
def test_extraction_time_is_linear(piece: str) -> None:
    """A pattern that backtracks would not finish on a text of repeated prefixes."""
    extract_mentions((piece * (100_000 // len(piece) + 1))[:100_000])


@pytest.mark.extras
@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("größe\nclass Foo:\n    def bar(self):\n        return baz(1)\n", [("class", "Foo"), ("function", "bar")]),
        (
            "See:\n```ts\nclass Ångström { run() {} }\nfunction go() {}\n```",
            [("class", "Ångström"), ("function", "run"), ("function", "go")],
        ),
        ("```go\npackage a\nfunc Do() {}\n```", [("function", "Do")]),
        ("```rs\nstruct S {}\nfn make() {}\n```", [("class", "S"), ("function", "make")]),
        ("```nonsense\nclass Foo {}\n```", []),
        ("no code at all", []),
    ],
)
def test_grammars_find_definitions(text: str, wanted: list[tuple[str, str]]) -> None:
    assert has_grammars()
    found = [(entity.entity_type, entity.name) for entity in extract_mentions(text) if entity.source == "tree-sitter"]
    assert found == wanted
