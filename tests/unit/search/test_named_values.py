"""A question that names a version, id, number, day or time has the memory with it first, and no other is strong."""

from collections.abc import Callable

import msgspec
import pytest

from kernel.search.fusion import STRONG
from kernel.search.named_values import named_values
from tests.conftest import Call

# Neighbours of the same form stand beside each other; a question for every one.
FACTS = """
Version 2.3.1 of the parser was released on 3 May 2025.|Which day was 2.3.1 released?
Version 2.3.2 of the parser was released on 7 June 2025.|When was 2.3.2 released?
Version 3.2.2 of the parser was released on 1 August 2025.|Which parser release was 3.2.2?
Invoice 10423 was paid by Ada.|Who paid invoice 10423?
Invoice 10432 is still open; Grace has to call them.|Has invoice 10432 been paid?
The meeting on 2024-03-03 was about the budget.|What was the meeting on 3 March 2024 about?
The meeting on 2024-03-13 was about the office move.|what did we discuss on 2024-03-13
Port 8080 is the proxy.|What runs on port 8080?
Port 8081 is the metrics endpoint.|who listens on 8081
The deposit for the flat was 1,250 euros.|what cost us 1250
The deposit for the car was 1,520 euros.|Which deposit was 1520 euros?
Commit 4f3c2a1 broke the build on Windows.|What broke in 4f3c2a1b7?
Commit 4f3c2b9 fixed the build on Windows.|What did commit 4f3c2b9 do?
Ticket PROJ-142 is about the login page.|tell me about ticket proj 142
Ticket PROJ-124 is about slow exports.|What is PROJ-124 about?
Flight LH 1234 leaves in the morning.|When does flight LH 1234 leave?
Flight LH 1243 leaves at night.|When does LH1243 leave?
Version 3.2 was released in May.|When was version 3.2 released?
Version 3.3 was released in September.|what came with version 3.3
Room 12b has no projector.|Does room 12b have a projector?
Room 21b has the large screen.|which room is 21b
The backup runs at 03:10 every night.|what happens at 3:10 am
The team meets at 10:30 on Mondays.|what is at 10:30?
The router's address is 192.168.1.1.|what is on 192.168.1.1
The printer's address is 192.168.1.11.|Which device has 192.168.1.11?
Das Auto hat das Kennzeichen B-QX 4417.|was hat das Kennzeichen BQX4417
""".strip().splitlines()
WITHOUT = (
    "When was 2.4.7 released?",
    "What is PROJ-999 about?",
    "Who paid invoice 10777?",
    "What was the meeting on 2023-11-02 about?",
    "When does LH 4321 leave?",
    "What does room 33c have?",
)


@pytest.fixture
def recalled(call: Call) -> Callable[[str], list[tuple[str, float]]]:
    """The numbers and strengths of the facts that a question gets, in a store of all facts."""
    for number, line in enumerate(FACTS):
        call("add_memory", path=f"facts/{number}", content=line.partition("|")[0])

    def ask(question: str) -> list[tuple[str, float]]:
        reply = msgspec.json.decode(call("recall", query=question, floor="none").structured or b"")
        return [(memory["id"].rpartition("/")[2], memory["strength"]) for memory in reply["memories"]]

    return ask


@pytest.mark.slow
def test_the_memory_with_the_value_that_a_question_names_is_first_and_others_in_its_place_are_never_strong(
    recalled: Callable[[str], list[tuple[str, float]]],
) -> None:
    questions = [line.rpartition("|")[2] for line in FACTS]
    assert [question for number, question in enumerate(questions) if recalled(question)[0][0] != str(number)] == []
    assert [question for question in WITHOUT if max(strength for _, strength in recalled(question)) >= STRONG] == []


@pytest.mark.parametrize(
    "question",
    [
        "Which of the three plans did we take?",
        "What happened in 2024?",
        "What did she move to in the late 60s?",
        "How far is 5km from here?",
        "What is done in 2.5 hours?",
        "What does the 2nd floor have?",
        "x" * 400 + " 12345",
    ],
)
def test_counts_years_units_and_long_texts_name_no_value(question: str) -> None:
    assert named_values(question) is None


@pytest.mark.parametrize(
    ("question", "text", "share"),
    [
        ("who handles C++?", "C++ is handled by Bodo.", 1.0),
        ("who handles C++?", "C# is handled by Carl.", None),
        ("who added -f", "The flag -F was added by Dora.", None),
        ("who sets DATABASE_URL", "Ann sets (DATABASE_URL).", 1.0),
        ("who sets DATABASE_URL", "Ann sets TEST_DATABASE_URL.", None),
        ("what is @acme/ui's license", "@acme/ui has MIT", 1.0),
    ],
)
def test_a_name_with_marks_counts_as_a_value_that_others_do_not_replace(
    question: str, text: str, share: float | None
) -> None:
    values = named_values(question)
    assert values is not None
    assert values.share(text, str.isspace) == share
