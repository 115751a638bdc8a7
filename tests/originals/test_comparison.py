"""Every kind of difference between two answers is seen, and ids, times and folders are none."""

import pytest

from tests.originals.comparison import Answer, Difference, Names, decoded, differences, layout
from tests.originals.originals import Rule

ORDER = Difference("[]", "order", "[1, 3]", "[3, 1]")
SAID = Answer(False, "JSON, without blanks", "none", {})


def compared(original: object, ours: object) -> list[Difference]:
    return list(differences(SAID._replace(body=original), SAID._replace(body=ours)))


@pytest.mark.parametrize(
    ("original", "ours", "expected"),
    [
        ({"a": 1}, {"a": 1.0}, []),
        ({"a": 1}, {"a": 2}, [Difference("a", "value", "1", "2")]),
        ({"a": 1}, {"a": True}, [Difference("a", "type", "1", "true")]),
        ({"a": None}, {"a": ""}, [Difference("a", "type", "null", "")]),
        ({"a": {"b": 1}}, {"a": {}}, [Difference("a.b", "missing", "1", "")]),
        ({"a": {}}, {"a": {"b": 1}}, [Difference("a.b", "added", "", "1")]),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, [Difference("body", "order", '["a", "b"]', '["b", "a"]')]),
        ([{"a": 1}, {"a": 2}], [{"a": 1}, {"a": 3}], [Difference("[].a", "value", "2", "3")]),
        (
            [{"id": 1, "a": 2}, {"id": 3}],
            [{"id": 3}, {"id": 1, "a": 4}],
            [ORDER, Difference("[].a", "value", "2", "4")],
        ),
        (["a", "b"], ["b", "a"], [Difference("[]", "order", '["a", "b"]', '["b", "a"]')]),
        ({"a": 0.50001}, {"a": 0.5}, []),
        ({"a": [1]}, {"a": [1, 2]}, [Difference("a[]", "length", "[1]", "[1, 2]")]),
        ({"a": '{"b": 1}'}, {"a": '{"b":2}'}, [Difference("a: b", "value", "1", "2")]),
        ("one", "two", [Difference("body", "value", "one", "two")]),
    ],
)
def test_each_kind_of_difference_is_seen_where_it_is(
    original: object, ours: object, expected: list[Difference]
) -> None:
    assert compared(original, ours) == expected


def test_of_a_call_that_one_refuses_only_the_refusal_is_a_difference() -> None:
    refusal = Answer(True, "a text", "none", "No such thing")
    assert list(differences(SAID, refusal)) == [Difference("outcome", "refused", "{}", "No such thing")]
    assert list(differences(refusal, SAID)) == [Difference("outcome", "answered", "No such thing", "{}")]


def test_an_error_that_is_no_refusal_is_compared_with_the_refusal() -> None:
    original, ours = SAID._replace(body={"error": "a"}), SAID._replace(refused=True, body={"error": "b"})
    assert [one.at for one in differences(original, ours)] == ["outcome", "error"]


def test_layout_and_structured_content_are_compared() -> None:
    ours = SAID._replace(layout="JSON, indented", structured="the same")
    assert list(differences(SAID, ours)) == [
        Difference("structured", "value", "none", "the same"),
        Difference("layout", "value", "JSON, without blanks", "JSON, indented"),
    ]


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ([], "0 texts"),
        (["Deleted"], "a text"),
        (["5"], "a text"),
        (['{"a":1}'], "JSON, without blanks"),
        (['{"a": 1}'], "JSON, with blanks"),
        (['{\n  "a": 1\n}'], "JSON, indented"),
    ],
)
def test_layout_of_a_text(texts: list[str], expected: str) -> None:
    assert layout(texts) == expected
    assert decoded(["{"]) == "{"


def test_kept_ids_have_names_and_others_times_and_folders_placeholders() -> None:
    names = Names(r"org_\d+", "/data", "/work")
    names.keep(
        {"org": "organization.id", "first": "ids.0|id", "none": "missing"}, {"organization": {"id": "org_1"}, "id": 7}
    )

    assert names.filled({"id": "$org", "n": ["$first", "$none", "<data>/x"]}) == {
        "id": "org_1",
        "n": [7, "$none", "/data/x"],
    }
    assert names.neutral(
        {"id": "org_1", "text": "org_1, org_2, /data/x in /work", "memory_id": 7, "count": 7, "avg_time_ms": 3.5}
    ) == {
        "id": "$org",
        "text": "$org, <id>, <data>/x in <folder>",
        "memory_id": "<number>",
        "count": 7,
        "avg_time_ms": "<milliseconds>",
    }
    assert names.neutral(["2026-01-02T03:04:05.678Z", "2026-01-02 03:04:05"]) == ["<time>", "<time without zone>"]


def test_a_rule_covers_what_fits_each_of_its_patterns() -> None:
    one = Difference("tags[].id", "value", "a [1]", "b")
    assert Rule("row", "tag* || other", "tags[].*", original="a [*]").covers("tag list", one)
    assert not Rule("row", "other").covers("tag list", one)
    assert not Rule("row", at="tags").covers("tag list", one)
    assert not Rule("row", kind="order").covers("tag list", one)
    assert not Rule("row", original="a 1").covers("tag list", one)
    assert not Rule("row", ours="c").covers("tag list", one)
