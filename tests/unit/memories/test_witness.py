"""The places in a repository that a text names."""

import pytest

from kernel.memories.witness import MOST, Citation, citations_of

TEXTS: dict[str, list[Citation]] = {
    "The parser is in src/a/b.py, see it.": [Citation("src/a/b.py")],
    "It fails at `b.py:42`.": [Citation("b.py", "", 42)],
    "See src/b.py:42-50 and src/c.ts#L7": [Citation("src/b.py", "", 42), Citation("src/c.ts", "", 7)],
    r"On Windows it is .\src\a\b.py": [Citation("src/a/b.py")],
    r"Absolute: C:\work\web\a.py:3 and /home/ann/web/a.py": [
        Citation("C:/work/web/a.py", "", 3),
        Citation("/home/ann/web/a.py"),
    ],
    "`parse()` in src/a.py returns None": [Citation("src/a.py", "parse")],
    "src/a.py: Reader.open closes the file, src/b.go is not touched": [
        Citation("src/a.py", "Reader.open"),
        Citation("src/b.go"),
    ],
    "Run tests/test_a.py::TestA::test_b alone": [Citation("tests/test_a.py", "TestA.test_b")],
    "`npm run build`, then make check, then uv run serve": [
        Citation("package.json", "build"),
        Citation("Makefile", "check"),
        Citation("pyproject.toml", "serve"),
    ],
    "The API listens on port 8123 (compose.yaml)": [Citation("compose.yaml", "8123")],
    "Fixed in 1a2b3c4d, not in 1234567 and not in defaced": [Citation("", "1a2b3c4d")],
    "The Makefile and .github/workflows/ci.yml": [Citation("Makefile"), Citation(".github/workflows/ci.yml")],
    "e.g. https://example.com/a.py or ../secret.py or os.path, v1.2.3, call()": [],
    "": [],
}


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_names_places(text: str) -> None:
    assert citations_of(text) == TEXTS[text]


def test_a_place_is_named_once_and_only_so_many_are() -> None:
    assert citations_of("a/b.py\nagain a/b.py") == [Citation("a/b.py")]
    assert len(citations_of(" ".join(f"a/{number}.py" for number in range(100)))) == MOST
