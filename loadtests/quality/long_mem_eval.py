"""LongMemEval as a judged collection: `python -m loadtests.quality.long_mem_eval FILE FOLDER [--sessions] [--one]`.

FILE has its form, such as `longmemeval_s.json`; `make quality ARGS=FOLDER` judges the collection. A text is a turn, or
with `--sessions` a session; the answer is in the turns that have `has_answer`, or the sessions that the question names.
Each question is asked within its own history, with `--one` among those of all. Those without an answer are left out.
"""

import argparse
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import msgspec

from loadtests.quality.dataset import Doc, Query

_TIME, _ISO = "%Y/%m/%d (%a) %H:%M", "%Y-%m-%dT%H:%M:%SZ"
_WITHOUT_ANSWER = "_abs"


class Turn(msgspec.Struct):
    """A message of a history; `has_answer` if the question is answered by it."""

    content: str
    has_answer: bool | None = None


class Instance(msgspec.Struct):
    """A question with its history."""

    question_id: str
    question_type: str
    question: str
    haystack_session_ids: list[str]
    haystack_dates: list[str]
    haystack_sessions: list[list[Turn]]
    answer_session_ids: list[str]


class Text(msgspec.Struct):
    """A text of a history, and whether it answers the question."""

    doc: Doc
    answers: bool


def main() -> None:
    """Write the collection."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sessions", action="store_true", help="a text is a session")
    parser.add_argument("--one", action="store_true", help="all histories in one store")
    chosen = parser.parse_args()
    docs: dict[str, Doc] = {}
    queries: list[Query] = []
    for instance in msgspec.json.decode(chosen.file.read_bytes(), type=list[Instance]):
        if instance.question_id.endswith(_WITHOUT_ANSWER):
            continue
        scope = "all" if chosen.one else instance.question_id
        found = [*(_sessions if chosen.sessions else _turns)(instance, scope)]
        docs.update({text.doc.id: text.doc for text in found})
        relevant = [text.doc.id for text in found if text.answers]
        queries.append(Query(instance.question_id, instance.question, relevant, scope, instance.question_type))
    chosen.folder.mkdir(parents=True, exist_ok=True)
    (chosen.folder / "docs.jsonl").write_bytes(msgspec.json.Encoder().encode_lines([*docs.values()]))
    (chosen.folder / "queries.jsonl").write_bytes(msgspec.json.Encoder().encode_lines(queries))
    print(f"{len(docs)} texts, {len(queries)} questions")


def _sessions(instance: Instance, scope: str) -> Iterator[Text]:
    for key, time, turns in _history(instance):
        text = "\n".join(turn.content for turn in turns)
        yield Text(Doc(f"{scope}/{key}", text, scope, time), key in instance.answer_session_ids)


def _turns(instance: Instance, scope: str) -> Iterator[Text]:
    for key, time, turns in _history(instance):
        for number, turn in enumerate(turns):
            yield Text(Doc(f"{scope}/{key}/{number}", turn.content, scope, time), bool(turn.has_answer))


def _history(instance: Instance) -> Iterator[tuple[str, str, list[Turn]]]:
    times = [datetime.strptime(f"{date} +0000", f"{_TIME} %z").strftime(_ISO) for date in instance.haystack_dates]
    return zip(instance.haystack_session_ids, times, instance.haystack_sessions, strict=True)


if __name__ == "__main__":
    main()
