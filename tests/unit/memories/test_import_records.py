"""What an import leaves out is counted by reason, and damage is told before anything is written."""

from pathlib import Path
from time import process_time

import pytest

from kernel.core.errors import Fault
from kernel.memories.import_records import Digests, LeftOut, Remarks, Source, stable_id


def remarks(*parts: LeftOut) -> Remarks:
    remarked = Remarks()
    for part in parts:
        remarked.add(part)
    return remarked


def source(*, strict: bool = False) -> Source:
    return Source(Path("notes"), None, {}, Path("copies"), strict=strict)


def test_digests_are_a_set_of_hashes() -> None:
    digests, numbers = Digests(), [hash(str(number)) for number in range(10_000)]
    digests.add(*numbers[::2], *numbers[::4])
    assert [number for number in numbers if number in digests] == numbers[::2]


def test_digests_take_time_in_proportion_to_their_number_however_they_are_chosen() -> None:
    def seconds(count: int) -> float:
        digests, began = Digests(), process_time()
        digests.add(*range(0, count << 40, 1 << 40))
        assert ((count - 1) << 40 in digests, count << 40 in digests) == (True, False)
        return process_time() - began

    assert seconds(32_000) < 32 * max(seconds(4000), 0.01)  # in quadratic time 64


def test_reasons_are_told_with_some_names_the_most_frequent_first() -> None:
    lines = remarks(LeftOut("empty", "a.md"), *[LeftOut("no text", f"{n}.md") for n in range(99)]).lines()
    assert lines[0].startswith("left out: 99 0.md, 1.md, ")
    assert lines[0].endswith(" more: no text")
    assert lines[1] == "left out: 1 a.md: empty"


def test_a_name_is_told_once() -> None:
    assert remarks(*[LeftOut("empty", name) for name in ("a.md", "a.md", "b.md")]).lines() == [
        "left out: 3 a.md, b.md: empty"
    ]


def test_parts_that_are_only_mentioned_are_not_left_out() -> None:
    remarked = Remarks()
    remarked.add(LeftOut("cut", "a.md"), "shortened")
    assert (remarked.left_out, remarked.lines()) == (0, ["shortened: 1 a.md: cut"])


def test_a_source_with_nothing_but_damage_is_refused() -> None:
    damaged = remarks(LeftOut("bad JSON", "a.json", is_damage=True))
    with pytest.raises(Fault, match=r"holds nothing that can be imported: a\.json: bad JSON"):
        damaged.check(source(), 0)
    damaged.check(source(), 1)


def test_a_strict_import_takes_no_damage() -> None:
    damaged = remarks(LeftOut("bad JSON", "a.json", is_damage=True))
    with pytest.raises(Fault, match=r"a\.json: bad JSON"):
        damaged.check(source(strict=True), 1)


def test_an_id_depends_on_its_texts_alone() -> None:
    assert stable_id("mem", "a", "b") == stable_id("mem", "a", "b")
    assert len({stable_id("mem", *parts) for parts in (("a", "b"), ("ab",), ("a", "", "b"))}) == 3
    assert stable_id("mem", "a").startswith("mem_")
