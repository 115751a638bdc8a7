"""A file of LongMemEval's form becomes a judged collection, of turns or of sessions."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from loadtests.quality import long_mem_eval
from loadtests.quality.dataset import read

HISTORY: dict[str, Any] = {
    "question_type": "knowledge-update",
    "question": "Which tea do I drink?",
    "answer": "Green tea",
    "question_date": "2023/05/30 (Tue) 23:40",
    "haystack_session_ids": ["late", "early"],
    "haystack_dates": ["2023/05/29 (Mon) 10:00", "2023/05/20 (Sat) 09:30"],
    "haystack_sessions": [
        [
            {"role": "user", "content": "I drink green tea now.", "has_answer": True},
            {"role": "assistant", "content": "Good."},
        ],
        [{"role": "user", "content": "Where is Lund?", "has_answer": False}],
    ],
    "answer_session_ids": ["late"],
}


@pytest.mark.parametrize(
    ("options", "scope", "texts", "answer"),
    [
        ([], "q1", ["Where is Lund?", "I drink green tea now.", "Good."], "q1/late/0"),
        (["--sessions"], "q1", ["Where is Lund?", "I drink green tea now.\nGood."], "q1/late"),
        (["--one"], "all", ["Where is Lund?", "I drink green tea now.", "Good."], "all/late/0"),
    ],
)
def test_a_file_of_its_form_is_a_collection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], scope: str, texts: list[str], answer: str
) -> None:
    file = tmp_path / "sample.json"
    file.write_text(json.dumps([{"question_id": "q1", **HISTORY}, {"question_id": "q2_abs", **HISTORY}]))
    monkeypatch.setattr(sys, "argv", ["long_mem_eval", str(file), str(tmp_path / "made"), *options])

    long_mem_eval.main()

    made = read(tmp_path / "made")
    assert [(doc.text, doc.scope) for doc in made.docs] == [(text, scope) for text in texts]
    assert [(query.text, query.relevant, query.scope) for query in made.queries] == [
        ("Which tea do I drink?", [answer], scope)
    ]
