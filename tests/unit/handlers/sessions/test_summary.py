"""Default tags and summaries, and summaries by a model where one is configured."""

from pathlib import Path
from typing import Any

import pytest

from handlers.sessions import summary
from handlers.sessions.settings import SETTINGS
from tests.unit.handlers.sessions.calls import opened
from tests.unit.handlers.sessions.tiny_gguf import tiny_gguf

DEFAULTS = {setting.name: setting.default for setting in SETTINGS}


@pytest.mark.parametrize(
    ("content", "tags"),
    [
        ("Fixed a bug in the API tests", "bug,fix,api,test"),
        ("build the latest release", "general"),
        ("bugfix: ValueError in the front-end UI", "bug,error,fix,frontend,ui"),
        ("deploying backends to the database", "database,backend,deploy"),
        ("terrors and mirrors", "general"),
        ("test_case and error-rate", "error,test"),
        ("", "general"),
    ],
)
def test_tags_match_whole_words_in_a_fixed_order(content: str, tags: str) -> None:
    assert summary.default_tags(content) == tags


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("one\ntwo", "one"),
        ("  \n\n  one  \ntwo", "one"),
        ("---\n```\ntitle: x", "title: x"),
        ("x" * 240, "x" * 240),
        ("x" * 241, "x" * 237 + "..."),
        ("", ""),
        ("???", "???"),
        ("日本語\nx", "日本語"),
    ],
)
def test_the_default_summary_is_the_first_non_empty_line(content: str, line: str) -> None:
    assert summary.first_line(content) == line


def settings(**more: Any) -> dict[str, Any]:
    return {**DEFAULTS, **{f"CODE_MEMORY_SUMMARY_{name}": value for name, value in more.items()}}


def test_without_a_path_or_a_library_there_is_no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    assert summary.configured_model(settings()) is None
    assert summary.configured_model(settings(MODEL="/models/x.gguf")) is None
    monkeypatch.setattr(summary, "has_library", lambda: True)
    assert summary.configured_model(settings(MODEL="/models/x.gguf", CTX=512, MAX_CHARS=100)) == summary.SummaryModel(
        "/models/x.gguf", 512, 4, 200, 0.2, 0.9, 1.05, 0, 100, ""
    )


def test_an_unreadable_model_falls_back_to_the_first_line(tmp_path: Path) -> None:
    model = summary.SummaryModel(str(tmp_path / "missing.gguf"), 512, 1, 16, 0.0, 1.0, 1.0, 0, 300, "")
    assert summary.model_summary(model, "first\nsecond") == "first"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return tiny_gguf(tmp_path / "tiny.gguf")


@pytest.mark.extras
def test_a_model_summary_is_stored_and_returned(tmp_path: Path, model: Path) -> None:
    more = {"SUMMARY_MODEL": str(model), "SUMMARY_CTX": "512", "SUMMARY_MAX_TOKENS": "24", "SUMMARY_TEMPERATURE": "0"}
    note = "We keep embeddings on the CPU.\nMore of it below."
    with opened(tmp_path / "data", **more) as (_, ask):
        assert ask("health")["summary"]["enabled"] is True
        answer = ask("remember", content=note, session_id="s")
        assert answer["summary"] != "We keep embeddings on the CPU."
        assert 0 < len(answer["summary"]) <= summary.MAX_SUMMARY_LENGTH
        assert answer["summary"].isprintable()
        assert ask("list_recent")[0]["summary"] == answer["summary"]
        assert ask("remember", content=note, session_id="t", summary="Given")["summary"] == "Given"
        assert ask("remember", content="password: hunter2", session_id="t") == {"status": "skipped"}


@pytest.mark.extras
def test_a_content_longer_than_the_context_is_cut_to_fit(model: Path) -> None:
    asked = summary.SummaryModel(str(model), 256, 1, 16, 0.0, 1.0, 1.0, 0, 300, "Summarise:")
    assert summary.model_summary(asked, "first\n" + "knots and cords, " * 500) != "first"


@pytest.mark.extras
@pytest.mark.parametrize("content", [b"", b"no model at all", b"GGUF\x03\0\0\0"])
def test_an_invalid_model_file_falls_back_to_the_first_line(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "broken.gguf"
    file.write_bytes(content)
    asked = summary.SummaryModel(str(file), 256, 1, 16, 0.0, 1.0, 1.0, 0, 300, "")
    assert summary.model_summary(asked, "first\nsecond") == "first"
