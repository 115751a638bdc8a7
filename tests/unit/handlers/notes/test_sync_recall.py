"""`recall` of the dialect `common` goes by the files like every recall of notes."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from kernel.calls.dispatch import Dispatch
from kernel.core.config import Config
from kernel.server import app
from tests.conftest import Call
from tests.unit.handlers.notes.conftest import CallOk, put

NOTE = "---\nmemory_type: learning\n---\n\n{}\n"


def texts(call_ok: CallOk, **arguments: object) -> dict[str, str]:
    answer = call_ok("recall", **({"query": "ravens"} | arguments))
    return {memory["id"]: memory["text"] for memory in answer["memories"]}


def test_recall_sees_files_that_were_added_edited_and_deleted_by_hand(call_ok: CallOk, folder: Path) -> None:
    file = put(folder, "learning/a.md", NOTE.format("ravens"))
    assert texts(call_ok) == {"notes:default/learning/a.md": "A ravens"}

    file.write_text(NOTE.format("ravens and crows"))
    assert texts(call_ok) == {"notes:default/learning/a.md": "A ravens and crows"}
    assert texts(call_ok, query="", ids=["notes:default/learning/a.md"]) == {
        "notes:default/learning/a.md": "A\nravens and crows"
    }

    file.unlink()
    assert texts(call_ok, query="", ids=["notes:default/learning/a.md"]) == {}
    assert texts(call_ok) == {}


@pytest.mark.parametrize("asked", [{"dialects": ["paths"]}, {"spaces": ["paths"]}])
def test_recall_of_other_dialects_reads_no_files(call_ok: CallOk, folder: Path, asked: dict[str, object]) -> None:
    call_ok("recall", query="ravens")
    put(folder, "learning/a.md", NOTE.format("ravens"))
    assert texts(call_ok, **asked) == {}


def test_recall_answers_although_the_folder_of_notes_cannot_be_read(
    config: Config, caller: Callable[[Dispatch], Call], tmp_path: Path
) -> None:
    (tmp_path / "away").mkdir()
    (tmp_path / "web").mkdir()
    (tmp_path / "web" / ".mnemonics").symlink_to(tmp_path / "away")
    kernel = app.open_kernel(config._replace(environment={"QUIPU_NOTES_ROOTS": str(tmp_path / "web")}))
    call = caller(kernel.dispatch)
    call("add_memory", path="birds", content="ravens")
    reply = call("recall", query="ravens")
    kernel.store.close()

    assert reply.fault is None
    assert [memory["id"] for memory in msgspec.json.decode(reply.body)["memories"]] == ["paths/birds"]
