"""A smart save asks before it stores a duplicate; a correction archives the wrong memory."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handlers.brain.smart import word_overlap
from kernel.core.config import Config
from kernel.server.app import Kernel, open_kernel
from loadtests.quality import duplicate_threshold, paraphrases
from tests.conftest import Clock, everything
from tests.support.handlers_brain_memories import LATER, NOW, by_words, events, row
from tests.unit.handlers.brain.conftest import CallOk, read

HOME = "The user lives in Lyon."


@pytest.fixture
def home(call_ok: CallOk, clock: Clock) -> dict[str, Any]:
    """One memory, saved an hour ago."""
    saved = call_ok("save_memory", db="core", content=HOME, category="fact", subcategory="home", tags=["home"])
    clock.move(hours=1)
    return saved


def test_new_memory_is_added(call_ok: CallOk, kernel: Kernel, clock: Clock) -> None:
    answer = call_ok("smart_save_memory", db="core", content=HOME, category="fact")

    assert answer == {"action": "added", "memory": row("mem_1", HOME)}
    assert list(answer) == ["action", "memory"]
    assert call_ok("get_memories", db="core") == [answer["memory"]]
    assert by_words(kernel, "Lyon") == {"mem_1"}
    assert events(kernel, "mem_1") == [("created", None, HOME, "Proactive save")]


def test_every_field_of_a_smart_save_is_kept(call_ok: CallOk, clock: Clock) -> None:
    answer = call_ok(
        "smart_save_memory",
        db="dnd",
        content="x",
        category="pattern",
        subcategory="s",
        tags=["t"],
        importance=2,
        project_id="web",
        confidence=0.25,
    )

    assert answer["memory"] == row(
        "mem_1", "x", "pattern", subcategory="s", tags='["t"]', importance=2, project_id="web", confidence=0.25
    )


def test_similar_memory_is_returned_and_nothing_saved(call_ok: CallOk, kernel: Kernel, home: dict[str, Any]) -> None:
    before = everything(kernel)

    answer = call_ok("smart_save_memory", db="core", content="User lives in Lyon", category="fact")

    assert list(answer) == ["action", "similar", "message", "suggested_action"]
    assert (answer["action"], answer["suggested_action"]) == ("needs_decision", "review")
    assert all(word in answer["message"] for word in ("update_memory", "supersede_memory", "force_add", "do nothing"))
    (similar,) = answer["similar"]
    distance, similarity = similar.pop("distance"), similar.pop("similarity")
    assert similar == home
    assert 0 < distance < 0.9
    assert similarity == pytest.approx(1 - distance**2 / 2, abs=0.006)
    assert everything(kernel) == before


def test_the_same_again_has_the_distance_zero(call_ok: CallOk, home: dict[str, Any]) -> None:
    (similar,) = call_ok("smart_save_memory", db="core", content=HOME, category="fact")["similar"]

    assert (similar["distance"], similar["similarity"]) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("stored", "new"),
    [
        ("The landlord is Herr Brandt.", "The landlord is Frau Seidel."),
        ("My dentist is Dr. Okafor on Elm Street.", "My dentist is Dr. Lindqvist on Harbour Road."),
        ("Herr Brandt is the landlord.", "Frau Seidel is the landlord."),
        ("Feature flags are read from a YAML file.", "Feature flags are read from LaunchDarkly."),
    ],
)
def test_another_thing_said_of_a_subject_is_shown_however_far_it_is_by_meaning(
    call_ok: CallOk, stored: str, new: str
) -> None:
    call_ok("save_memory", db="core", content=stored, category="fact")

    answer = call_ok("smart_save_memory", db="core", content=new, category="fact")

    assert (answer["action"], [similar["content"] for similar in answer["similar"]]) == ("needs_decision", [stored])
    assert answer["similar"][0]["distance"] > 0.9


@pytest.mark.parametrize(
    ("stored", "new"),
    [
        ("The key of the garage hangs by the door.", "The key of the cellar lies in the drawer."),
        ("To rotate the API key, create a new one.", "To rotate the TLS certificate, run certbot renew."),
        ("On 12 May 2026 we shipped the search page.", "On 12 May 2026 Jo joined the team."),
        ("Mia's birthday is 4 May 1990.", "Oskar's birthday is 4 May 1985."),
        ("Suppliers in Spain: Torres and Vega.", "Suppliers in Norway: Hagen and Lund."),
    ],
)
def test_a_common_beginning_that_says_nothing_of_the_subject_stops_no_write(
    call_ok: CallOk, stored: str, new: str
) -> None:
    call_ok("save_memory", db="core", content=stored, category="fact")
    assert call_ok("smart_save_memory", db="core", content=new, category="fact")["action"] == "added"


@pytest.mark.parametrize(
    ("new", "action"),
    [("Ines supports Sevilla in football", "needs_decision"), ("Hugo supports Sevilla in football", "added")],
)
def test_a_fact_about_another_person_is_shown_only_if_it_is_nearer(call_ok: CallOk, new: str, action: str) -> None:
    call_ok("save_memory", db="core", content="Ines supports Benfica in football", category="fact")
    assert call_ok("smart_save_memory", db="core", content=new, category="fact")["action"] == action


@pytest.mark.parametrize(
    ("new", "action"),
    [("The rain barrel holds 300 litres.", "added"), ("The hot tub takes in 900 litres.", "needs_decision")],
)
def test_a_number_of_another_subject_is_shown_only_if_it_is_nearer(call_ok: CallOk, new: str, action: str) -> None:
    call_ok("save_memory", db="core", content="The hot tub holds 900 litres.", category="fact")
    assert call_ok("smart_save_memory", db="core", content=new, category="fact")["action"] == action


@pytest.mark.parametrize("content", ["!!!", "\U0001f389", "\u2192 \u2192"])
def test_text_without_words_matches_only_identical_text(call_ok: CallOk, content: str) -> None:
    for other in ("...", "The user lives in Lyon.", f"{content} a party in Lyon"):
        call_ok("save_memory", db="core", content=other, category="fact")
    saved = call_ok("save_memory", db="core", content=content, category="fact")
    call_ok("save_memory", db="dnd", content=content, category="fact")

    answer = call_ok("smart_save_memory", db="core", content=content, category="fact")

    assert answer["action"] == "needs_decision"
    assert answer["similar"] == [{**saved, "distance": 0.0, "similarity": 1.0}]
    assert call_ok("smart_save_memory", db="core", content="?!?", category="fact")["action"] == "added"


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("create_entity", {"name": "Falcon", "type": "project"}),
        ("save_note", {"title": "Falcon", "content": "A bird"}),
    ],
)
def test_only_memories_have_history(call_ok: CallOk, name: str, arguments: dict[str, Any]) -> None:
    key = call_ok(name, db="core", **arguments)["id"]

    assert call_ok("get_memory_history", memory_id=key) == f"No history found for memory '{key}'"


def test_a_similar_memory_that_has_ended_is_named_as_such(call_ok: CallOk, clock: Clock) -> None:
    ended = {"content": "The VPN uses port 1194", "category": "fact", "valid_until": "2020-01-31"}
    key = call_ok("save_memory", db="core", **ended)["id"]
    answer = call_ok("smart_save_memory", db="core", content="The VPN uses port 1195", category="fact")
    said = "Similar memories are stored. The new one says 1195 where mem_1 (ended on 2020-01-31) says 1194. Choose: "
    assert (key, answer["message"][: len(said)]) == ("mem_1", said)


def test_force_add_skips_the_duplicate_check(call_ok: CallOk, home: dict[str, Any]) -> None:
    answer = call_ok("smart_save_memory", db="core", content=HOME, category="fact", force_add=True)

    assert answer["action"] == "added"
    assert len(call_ok("get_memories", db="core")) == 2


@pytest.mark.parametrize(
    "arguments", [{"category": "fact", "is_correction": True, "importance": 1}, {"category": "correction"}]
)
def test_a_correction_is_of_the_highest_importance(call_ok: CallOk, kernel: Kernel, arguments: dict[str, Any]) -> None:
    memory = call_ok("smart_save_memory", db="core", content=HOME, **arguments)["memory"]

    assert (memory["importance"], memory["category"]) == (5, arguments["category"])
    reason = "User correction" if "is_correction" in arguments else "Proactive save"
    assert events(kernel, memory["id"]) == [("created", None, HOME, reason)]


def test_correction_suggests_supersede(call_ok: CallOk, home: dict[str, Any]) -> None:
    answer = call_ok("smart_save_memory", db="core", content=HOME, category="fact", is_correction=True)

    assert answer["suggested_action"] == "supersede"


def test_only_active_memories_of_this_database_are_similar_and_no_entity(call_ok: CallOk, home: dict[str, Any]) -> None:
    call_ok("save_memory", db="therapy", content="Sleep is better", category="fact")
    call_ok("create_entity", db="core", name="Sleep is better", type="concept")
    call_ok("update_memory", db="core", id=home["id"], status="archived")

    assert call_ok("smart_save_memory", db="core", content="Sleep is better", category="fact")["action"] == "added"
    assert call_ok("smart_save_memory", db="core", content=HOME, category="fact")["action"] == "added"


def test_inactive_memories_do_not_hide_an_active_duplicate(call_ok: CallOk, home: dict[str, Any]) -> None:
    for mark in "abcdefghijkl":
        near = call_ok("smart_save_memory", db="core", content=f"{HOME} ({mark})", category="fact", force_add=True)
        call_ok("update_memory", db="core", id=near["memory"]["id"], status="archived")

    answer = call_ok("smart_save_memory", db="core", content=f"{HOME} (e)", category="fact")

    assert [memory["id"] for memory in answer["similar"]] == [home["id"]]


def test_the_five_nearest_are_shown_nearest_first(call_ok: CallOk, clock: Clock) -> None:
    for word in ("", "in", "the", "yes", "it", "of", "at", "to", "so"):
        call_ok("save_memory", db="core", content=f"{HOME} {word}", category="fact")

    similar = call_ok("smart_save_memory", db="core", content=HOME, category="fact")["similar"]

    distances = [memory["distance"] for memory in similar]
    assert (len(similar), similar[0]["id"]) == (5, "mem_1")
    assert distances == sorted(distances)


def test_words_are_compared_only_without_embedding(
    call_ok: CallOk, tmp_path: Path, caller: Any, home: dict[str, Any]
) -> None:
    other = "The user in deep trouble"
    kernel = open_kernel(Config(data=tmp_path / "wordless", model=None))
    call = caller(kernel.dispatch)
    call("save_memory", db="core", content=HOME, category="fact")

    (similar,) = read(call("smart_save_memory", db="core", content=other, category="fact"))["similar"]
    kernel.store.close()

    assert (similar["similarity"], "distance" in similar) == (0.6, False)
    assert word_overlap(HOME, other) > 0.5
    assert call_ok("smart_save_memory", db="core", content=other, category="fact")["action"] == "added"


@pytest.mark.slow
def test_nearly_every_memory_in_other_words_or_with_a_newer_value_is_shown(
    call_ok: CallOk, capsys: pytest.CaptureFixture[str]
) -> None:
    one = duplicate_threshold.built("held out", paraphrases.HELD_OUT)
    for start in range(0, len(one.stored), 100):
        items = [{"content": text, "category": "fact"} for text in one.stored[start : start + 100]]
        call_ok("bulk_save_memories", db="core", memories=items)

    answers = [call_ok("smart_save_memory", db="core", content=text, category="fact") for text in one.known]
    shown = sum(answer["action"] == "needs_decision" for answer in answers)

    with capsys.disabled():
        print(f"\nshown: {shown} of {len(one.known)}")
    assert shown >= 0.9 * len(one.known)


@pytest.mark.parametrize(
    ("stored", "new", "difference"),
    [
        ("Python 3.11 is required", "Python 3.12 is required", "says 3.12 where {} says 3.11"),
        ("The office is in Berlin", "The office is in Paris", "says Paris where {} says Berlin"),
        ("Invoice 4711 is paid", "Invoice 4712 is paid", "says 4712 where {} says 4711"),
        ("The meeting is at 10", "The meeting is at 11", "says 11 where {} says 10"),
        ("Deploys run on Friday", "Deploys never run on Friday", "denies what {} says"),
        ("Deploys never run on Friday", "Deploys run on Friday", "says what {} denies"),
        (
            "Deploys happen on Tuesday from the release branch",
            "Deploys happen on Thursday from the release branch",
            "says Thursday where {} says Tuesday",
        ),
        (
            "User prefers dark mode and terse answers",
            "The user likes dark mode and short answers",
            "says likes short where {} says prefers terse",
        ),
        ("User prefers dark mode.", "The user likes dark themes", "says likes themes where {} says prefers mode"),
        ("Her birthday is 4 May 1990", "born on May 4th 1991", "says 4th 1991 where {} says 4 1990"),
        ("Tom was born in 1980.", "Tom's year of birth is 1982.", "says Tom's 1982 where {} says Tom 1980"),
        ("The licence costs $99.", "The licence costs €99.", "says €99 where {} says $99"),
        ("The feature flag is on.", "The feature flag is off.", "says off where {} says on"),
        ("Prices went up in May.", "Prices went down in May.", "says down where {} says up"),
        ("The user's birthday is 4 May 1990", "The user was born May 4th", "says 4th where {} says 4 1990"),
        ("The flight to Oslo is booked", "The flight to Oslo is booked.", "says the same as {}"),
        ("The flight to Oslo is booked", "The early flight to Oslo is booked", "adds early to {}"),
        ("The early flight to Oslo is booked", "The flight to Oslo is booked", "leaves out early of {}"),
    ],
)
def test_a_similar_memory_is_shown_with_its_difference_in_words(
    call_ok: CallOk, kernel: Kernel, stored: str, new: str, difference: str
) -> None:
    key = call_ok("save_memory", db="core", content=stored, category="fact")["id"]
    before = everything(kernel)

    answer = call_ok("smart_save_memory", db="core", content=new, category="fact")

    assert (answer["action"], answer["suggested_action"]) == ("needs_decision", "review")
    assert [memory["id"] for memory in answer["similar"]] == [key]
    assert f"The new one {difference.format(key)}." in answer["message"]
    assert everything(kernel) == before


def test_a_correction_by_content_archives_all_equal_memories(call_ok: CallOk) -> None:
    twins = [call_ok("save_memory", db="core", content="The sky is green", category="fact")["id"] for _ in range(3)]

    answer = call_ok("handle_correction", db="core", wrong_content="The sky is green", correct_content="It is blue")

    assert answer["archived_memory_id"] in twins
    archived = call_ok("get_memories", db="core", status="archived")
    assert {row["id"] for row in archived} == {*twins}
    assert {row["superseded_by"] for row in archived} == {answer["correction_memory"]["id"]}


@pytest.mark.parametrize(
    ("one", "other", "share"),
    [
        ("a b", "a b", 1.0),
        ("a b", "B A", 1.0),
        ("a b", "a c", 0.5),
        ("a b c d", "a", 0.25),
        ("a a a a", "a", 1.0),
        ("", "a", 0.0),
        ("", "", 0.0),
    ],
)
def test_word_overlap_is_relative_to_the_longer_text(one: str, other: str, share: float) -> None:
    assert word_overlap(one, other) == word_overlap(other, one) == share


@pytest.mark.slow
@given(st.text(), st.text())
def test_word_overlap_stays_in_0_to_1(one: str, other: str) -> None:
    assert 0 <= word_overlap(one, other) <= 1


def test_a_correction_by_id_archives_the_wrong_memory(call_ok: CallOk, kernel: Kernel, home: dict[str, Any]) -> None:
    answer = call_ok(
        "handle_correction", db="core", wrong_memory_id=home["id"], correct_content="The user lives in Nantes."
    )

    right = row(
        "mem_2",
        "The user lives in Nantes.",
        "correction",
        subcategory="home",
        tags='["home"]',
        importance=5,
        created_at=LATER,
        updated_at=LATER,
    )
    assert answer == {"action": "corrected", "archived_memory_id": "mem_1", "correction_memory": right}
    assert list(answer) == ["action", "archived_memory_id", "correction_memory"]
    assert call_ok("get_memories", db="core", status="archived") == [
        {**home, "status": "archived", "superseded_by": "mem_2", "updated_at": LATER}
    ]
    assert call_ok("get_memories", db="core") == [right]
    assert call_ok("get_links", db="core") == [
        {
            "id": "lnk_3",
            "source_type": "memory",
            "source_id": "mem_2",
            "target_type": "memory",
            "target_id": "mem_1",
            "relationship": "corrects",
            "strength": 1.0,
            "context": "User correction",
            "bidirectional": 0,
            "metadata": None,
            "created_at": LATER,
        }
    ]
    assert by_words(kernel, "user lives") == {"mem_2"}
    assert events(kernel, "mem_1")[1:] == [("corrected", HOME, None, "Corrected to: The user lives in Nantes.")]
    assert events(kernel, "mem_2") == [("created", HOME, "The user lives in Nantes.", "User correction")]


def test_category_and_tags_of_a_correction_can_be_given(call_ok: CallOk, home: dict[str, Any]) -> None:
    right = call_ok(
        "handle_correction", db="core", wrong_memory_id=home["id"], correct_content="x", category="preference", tags=[]
    )["correction_memory"]

    assert (right["category"], right["tags"], right["project_id"]) == ("preference", "[]", None)


@pytest.mark.parametrize("words", ["lives in Lyon", "LYON", "The user lives in Lyon", "User is living in Lyon."])
def test_wrong_memory_is_found_by_content(call_ok: CallOk, home: dict[str, Any], words: str) -> None:
    call_ok("save_memory", db="core", content="The user likes the metro of Lille.", category="fact")

    answer = call_ok("handle_correction", db="core", wrong_content=words, correct_content="The user lives in Nantes.")

    assert answer["archived_memory_id"] == home["id"]


@pytest.mark.slow
def test_a_wrong_memory_of_a_megabyte_is_found_by_its_content_among_others(call_ok: CallOk) -> None:
    texts = [" ".join(f"w{seed * number % 4001:x}" for number in range(190_000)) for seed in range(3, 11)]
    keys = [call_ok("save_memory", db="core", content=text, category="fact")["id"] for text in texts]

    answer = call_ok("handle_correction", db="core", wrong_content=texts[2], correct_content="There is no list.")

    assert answer["archived_memory_id"] == keys[2]


@pytest.mark.parametrize("arguments", [{}, {"wrong_content": "The cat is called Ada"}, {"wrong_content": "\u200b"}])
def test_correction_without_match_is_only_saved(
    call_ok: CallOk, home: dict[str, Any], arguments: dict[str, str]
) -> None:
    answer = call_ok("handle_correction", db="core", correct_content="The dog is called Ada", **arguments)

    assert answer["archived_memory_id"] is None
    assert answer["correction_memory"]["category"] == "correction"
    assert call_ok("get_memories", db="core", status="archived") == []
    assert call_ok("get_links", db="core") == []


def test_an_archived_memory_can_be_corrected_by_its_id_but_is_not_found_by_content(
    call_ok: CallOk, home: dict[str, Any]
) -> None:
    call_ok("update_memory", db="core", id=home["id"], status="archived")

    by_content = call_ok("handle_correction", db="core", wrong_content=HOME, correct_content="Roses want water")
    by_id = call_ok("handle_correction", db="core", wrong_memory_id=home["id"], correct_content="Tea is at 70 degrees")

    assert (by_content["archived_memory_id"], by_id["archived_memory_id"]) == (None, home["id"])


def change(number: int, key: str, operation: str, **more: Any) -> dict[str, Any]:
    known = {"content_before": None, "content_after": None, "reason": None, "changed_at": LATER, **more}
    return {"id": f"mhist_{number:021}", "db": "core", "memory_id": key, "operation": operation, **known}


def test_history_returns_all_events_in_order(call_ok: CallOk, home: dict[str, Any]) -> None:
    call_ok("update_memory", db="core", id="mem_1", content="Lyon it is")
    call_ok("supersede_memory", db="core", old_id="mem_1", new_content="Nantes")
    call_ok("update_memory", db="core", id="mem_1", status="active")
    call_ok("handle_correction", db="core", wrong_memory_id="mem_1", correct_content="Lille")
    call_ok("delete_memory", db="core", id="mem_1")

    answer = call_ok("get_memory_history", memory_id="mem_1")

    assert list(answer) == ["db", "history"]
    assert answer["db"] == "core"
    assert [one["id"][:6] for one in answer["history"]] == ["mhist_"] * 6
    for one in answer["history"]:
        one["id"] = ""
    assert answer["history"] == [
        {**change(0, "mem_1", "created", content_after=HOME, changed_at=NOW), "id": ""},
        {
            **change(0, "mem_1", "updated", content_before=HOME, content_after="Lyon it is", reason="Changed content"),
            "id": "",
        },
        {**change(0, "mem_1", "superseded", content_before="Lyon it is", reason="Superseded by mem_2"), "id": ""},
        {
            **change(
                0, "mem_1", "updated", content_before="Lyon it is", content_after="Lyon it is", reason="Changed status"
            ),
            "id": "",
        },
        {**change(0, "mem_1", "corrected", content_before="Lyon it is", reason="Corrected to: Lille"), "id": ""},
        {**change(0, "mem_1", "deleted", content_before="Lyon it is"), "id": ""},
    ]


def test_an_event_has_an_id_of_the_contracts_form(call_ok: CallOk, home: dict[str, Any]) -> None:
    assert call_ok("get_memory_history", memory_id="mem_1")["history"] == [
        change(1, "mem_1", "created", content_after=HOME, changed_at=NOW)
    ]


def test_history_is_found_in_any_database(call_ok: CallOk, clock: Clock) -> None:
    key = call_ok("bulk_save_memories", db="hlg", memories=[{"content": "x", "category": "fact"}])["ids"][0]

    answer = call_ok("get_memory_history", memory_id=key)

    assert (answer["db"], [one["db"] for one in answer["history"]]) == ("hlg", ["hlg"])


def test_no_history_is_a_sentence_and_no_error(call_ok: CallOk) -> None:
    assert call_ok("get_memory_history", memory_id="mem_x") == "No history found for memory 'mem_x'"


@pytest.mark.parametrize(
    ("moment", "content", "operations"),
    [
        ("2026-01-02T03:00:00Z", None, []),
        (NOW, HOME, ["created"]),
        ("2026-01-02 03:30", HOME, ["created"]),
        ("2026-01-02T05:30:00+01:00", "changed", ["created", "updated"]),
        ("2026-01-02T06:00", None, ["created", "updated", "superseded"]),
        ("2027-01-01", None, ["created", "updated", "superseded", "deleted"]),
    ],
)
def test_as_of_returns_content_at_that_time(
    call_ok: CallOk, home: dict[str, Any], clock: Clock, moment: str, content: str | None, operations: list[str]
) -> None:
    call_ok("update_memory", db="core", id="mem_1", content="changed")
    clock.move(hours=1)
    call_ok("supersede_memory", db="core", old_id="mem_1", new_content="new")
    clock.move(hours=20)
    call_ok("delete_memory", db="core", id="mem_1")

    answer = call_ok("get_memory_history", memory_id="mem_1", as_of=moment)

    assert list(answer) == ["db", "history", "as_of", "content"]
    assert (answer["content"], [one["operation"] for one in answer["history"]]) == (content, operations)


def test_as_of_returns_no_content_while_a_memory_is_archived(
    call_ok: CallOk, home: dict[str, Any], clock: Clock
) -> None:
    def content() -> str | None:
        return call_ok("get_memory_history", memory_id="mem_1", as_of=clock.move(hours=1))["content"]

    call_ok("update_memory", db="core", id="mem_1", status="archived")
    archived = content()
    call_ok("update_memory", db="core", id="mem_1", content="changed")
    changed = content()
    call_ok("update_memory", db="core", id="mem_1", status="active")

    assert (archived, changed, content()) == (None, None, "changed")


def test_invalid_as_of_is_refused(refused: Callable[..., Any]) -> None:
    assert refused("get_memory_history", memory_id="mem_1", as_of="then") == (
        "invalid",
        "Error: Invalid arguments: as_of is no time or date, such as 2026-01-31 or 2026-01-31T08:00:00Z",
    )
