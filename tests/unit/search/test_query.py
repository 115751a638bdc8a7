"""Anybody's words become a full-text query that finds what they say and cannot be anything but words."""

import math
import re
import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel.search.index import Hit
from kernel.search.query import (
    MAX_QUERY_TERMS,
    MAX_RANKED_ROWS,
    RARE_ROWS,
    SMALL_INDEX_ROWS,
    SMALL_PARTITION_DOCS,
    STOP_WORDS,
    PartitionFilter,
    RowQuery,
    Term,
    candidate_queries,
    grams,
    match,
    match_any,
    query_grams,
    query_words,
    words_beside_cjk,
)
from kernel.search.query import quote as quoted
from kernel.store.transaction import Tx
from tests.unit.index_fixtures import SOMEBODY, Shelf, shelf_in

CJK = st.characters(min_codepoint=0x3041, max_codepoint=0x9FFF, categories=["Lo"])
MANY = settings(max_examples=200, deadline=None)

PROBES = [
    "c++",
    "don't",
    "foo-bar",
    "user@example.com",
    "a.b",
    "https://example.com/a?b=c&d=e#f",
    '"',
    '""',
    '"""',
    "AND",
    "OR",
    "NOT",
    "NEAR",
    "foo AND",
    "AND foo",
    "foo OR OR bar",
    "NOT foo",
    "foo NOT bar",
    "",
    "   ",
    "*",
    "foo*",
    "*foo",
    "nosuch:x",
    "title:x",
    "text:x",
    "{title}:x",
    "{text grams}:x",
    "-text:x",
    "place:quipuplace1",
    "^x",
    "^",
    '"a" NEAR/2 "b"',
    "NEAR(foo bar, 3)",
    "(" * 2000,
    "(foo" * 500,
    "foo + bar",
    "foo\0bar",
    "\0",
    "😀",
    "👩‍👩‍👧 foo",
    "foo\\bar",
    "'; DROP TABLE doc; --",
    "%",
    "foo_bar",
    "foo, bar; baz",
    "$1.50",
    "[foo]",
    "<foo>",
    "foo/bar\\baz",
    "\ufeff",
    "\u202e",
    "{}",
    ":",
    "x:",
    "+",
    "-",
    "--",
    "foo^2",
    "~foo",
]
DOCUMENTS = [
    "c",
    "don",
    "t",
    "foo",
    "bar",
    "foo bar",
    "baz",
    "user",
    "example",
    "com",
    "a",
    "b",
    "https",
    "d",
    "e",
    "f",
    "and",
    "or",
    "not",
    "near",
    "x",
    "title",
    "text",
    "grams",
    "place",
    "nosuch",
    "drop",
    "table",
    "doc",
    "1",
    "50",
    "2",
    "3",
    "quipuplace",
    "other words",
]


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shelf]:
    """Documents whose keys are their numbers in DOCUMENTS, searched by words alone."""
    with shelf_in(tmp_path_factory.mktemp("words"), None) as shelf:
        shelf.put(DOCUMENTS)
        yield shelf


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shelf]:
    """One document per script, under its place in SCRIPTS."""
    with shelf_in(tmp_path_factory.mktemp("scripts"), None) as shelf:
        shelf.put([text for text, _, _ in SCRIPTS])
        yield shelf


class Row(NamedTuple):
    text: str
    found: list[str]
    missed: list[str]


SCRIPTS = [
    Row(
        "使用Python编程",
        ["python", "PYTHON", "编程", "使用", "用", "程", "使用Python编程", "用python编"],
        ["使程", "java"],
    ),
    Row("東京都に住んでいます", ["東京", "京都", "都に", "住んで", "東", "す", "います"], ["東都", "大阪"]),
    Row("ジョン・スミスがパーティーに来た", ["スミス", "ジョン", "ジョン・スミス", "パーティー", "来た"], ["ミン"]),
    Row("ﾃﾞｰﾀﾍﾞｰｽ を更新", ["データベース", "ﾃﾞｰﾀﾍﾞｰｽ", "データ", "ﾍﾞｰｽ", "更新"], ["デベ"]),
    Row(unicodedata.normalize("NFD", "がぎぐ 서울특별시"), ["がぎ", "ぎぐ", "서울", "특별", "별시"], ["かき", "시서"]),
    Row("서울특별시에서 만나요", ["서울", "특별시", "울", "만나", "나요"], ["서만", "부산"]),
    Row("𠀋𡈽𡌛の字", ["𠀋𡈽", "𡈽𡌛", "𡌛", "𡌛の", "𠀋"], ["𠀋𡌛"]),
    Row("奈良県葛\U000e0100城市", ["葛城", "葛城市", "奈良"], ["良葛"]),
    Row("我们决定 deploy到生产环境 running测试", ["deploy", "生产", "run", "running", "决定", "runs"], ["们生"]),
    Row("ＰＹＴＨＯＮの本", ["python", "の本", "ＰＹＴＨＯＮの"], ["本の"]),
    Row("⽇本の⼭", ["日本", "山"], ["本山"]),
    Row("ㄅㄆㄇ注音 ㅋㅋㅋ", ["ㄅㄆ", "注音", "ㅋㅋ"], ["ㄆㄅ"]),
    Row("版本v2.0发布foo_bar完成", ["发布", "v2", "foo", "bar", "foo_bar", "完成"], ["本发"]),
]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ("plain ascii", ""),
        ("naïve café", ""),
        ("日", "日"),
        ("日本", "日本 本"),
        ("日本語", "日本 本語 語"),
        ("日本 語", "日本 本 語"),
        ("使用Python编程", "Python 使用 用 编程 程"),
        ("a日b本c", "a b c 日 本"),
        ("x_日本_y", "日本 本"),
        ("日本。東京！", "日本 本 東京 京"),
        ("ｶﾞｽ", "ガス ス"),
        ("か\u3099", "が"),
        ("葛\U000e0100城", "葛城 城"),
        ("𠀋𡈽", "𠀋𡈽 𡈽"),
    ],
)
def test_grams_are_the_overlapping_pairs_the_last_character_and_the_words_glued_to_a_run(
    text: str, expected: str
) -> None:
    assert grams(text) == expected


@MANY
@given(st.text(CJK, min_size=1, max_size=30), st.text("aZ9 é_.-", max_size=5), st.data())
def test_every_word_inside_a_run_is_found_by_its_pairs(run: str, around: str, data: st.DataObject) -> None:
    folded = unicodedata.normalize("NFKC", run)
    at = data.draw(st.integers(0, len(folded) - 1))
    word = folded[at : at + data.draw(st.integers(1, 4))]
    held = grams(around + run + around).split()

    assert all(
        any(piece.startswith(term.stem) for piece in held) if term.prefix else term.stem in held
        for term in query_grams(word)
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", []),
        ("日", [Term("日", "日", prefix=True)]),
        ("日本", [Term("日本", "日本")]),
        ("日本語 日本", [Term("日本", "日本"), Term("本語", "本語")]),
        ("Python编程", [Term("编程", "编程")]),
    ],
)
def test_a_run_is_looked_up_by_its_pairs_and_a_single_character_as_a_prefix(text: str, expected: list[Term]) -> None:
    assert query_grams(text) == expected


def test_words_glued_to_a_run_are_given_apart_from_it() -> None:
    assert words_beside_cjk("plain words") == ""
    assert words_beside_cjk("使用Running编程 v2版").split() == ["Running", "v2"]


@pytest.mark.parametrize("row", SCRIPTS, ids=lambda row: row.text[:8])
def test_scripts_without_spaces_are_found_by_any_word_in_them(scripts: Shelf, row: Row) -> None:
    key = str(SCRIPTS.index(row))

    assert [query for query in row.found if key not in scripts.by_words(query)] == []
    assert [query for query in row.missed if key in scripts.by_words(query)] == []


def test_every_character_that_counts_as_cjk_is_a_token_of_its_own_for_the_index(words: Shelf) -> None:
    letters = [chr(point) for point in (*range(0x1100, 0xD800), *range(0xE000, 0x33000))]
    counted = {letter for letter in letters if grams(letter) == letter}

    def odd(tx: Tx) -> list[str]:
        split = {letter: tx.tokenize(letter) for letter in counted}
        return [letter for letter, tokens in split.items() if [token[2] for token in tokens] != [letter]]

    assert len(counted) > 100_000
    assert words.reader.read(SOMEBODY, odd) == []


def test_a_long_text_without_spaces_costs_no_more_than_its_length() -> None:
    assert grams("é" * 1_000_000) == ""
    assert len(grams("日" * 300_000)) == 899_998


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("deploy the API", ["deploy", "API"]),
        ("The the THE", ["The"]),
        ("to be or not to be", ["to", "be", "or", "not"]),
        ("running runs run", ["running"]),
        ("who wrote it", ["wrote"]),
        ("", []),
        ("!?", []),
    ],
)
def test_words_are_looked_up_once_and_stop_words_only_where_nothing_else_is_left(
    words: Shelf, text: str, expected: list[str]
) -> None:
    def looked_up(tx: Tx) -> list[str]:
        return [term.surface for term in query_words(text, tx.tokenize(text))]

    assert words.reader.read(SOMEBODY, looked_up) == expected


def test_a_query_is_an_or_of_quoted_words_in_the_columns_of_the_text() -> None:
    terms = [Term("say", 'say "hi"'), Term("日", "日", prefix=True), Term("gone", "gone")]

    assert match(terms, {"say": 1}, 100, None) == '{text grams} : ("日"* OR "say ""hi""")'
    assert match(terms, {"say": 1}, 100, [7, 8]) == (
        'place : (quipuplace7 OR quipuplace8) AND {text grams} : ("日"* OR "say ""hi""")'
    )


def test_words_that_are_nowhere_make_no_query() -> None:
    assert match([Term("gone", "gone")], {}, 100, None) == ""
    assert match_any([Term("gone", "gone")], {}, None) == ""
    assert match([], {}, 0, [1]) == ""


def test_only_rows_with_a_rare_word_are_visited_while_every_useful_word_ranks() -> None:
    terms = [Term(name, name) for name in ("common", "middling", "rare", "rarest")]
    known = {"common": 6000, "middling": 2000, "rare": RARE_ROWS - 1, "rarest": 1}

    rare, every = '"rarest" OR "rare"', '"rarest" OR "rare" OR "middling"'
    assert match(terms, known, 10_000, None) == f"{{text grams}} : ({rare}) AND {{text grams}} : ({every})"
    assert match_any(terms, known, None) == f'{{text grams}} : ({every} OR "common")'


def test_the_first_word_is_visited_however_common_and_common_words_are_kept_where_there_are_no_others() -> None:
    assert match([Term("a", "a")], {"a": 9000}, 10_000, None) == '{text grams} : ("a")'


def test_places_with_few_documents_are_searched_for_every_word() -> None:
    terms = [Term("common", "common"), Term("rare", "rare")]
    known = {"common": 9000, "rare": 1, "quipuplace1": SMALL_PARTITION_DOCS, "quipuplace2": 1}

    assert match(terms, known, 10_000, [1]) == 'place : (quipuplace1) AND {text grams} : ("rare" OR "common")'
    assert match(terms, known, 10_000, [1, 2]) == 'place : (quipuplace1 OR quipuplace2) AND {text grams} : ("rare")'


def named(*names: str) -> list[Term]:
    return [Term(name, name) for name in names]


def test_every_row_with_a_rare_word_is_visited_and_ranked_by_every_useful_word() -> None:
    known = {"rarest": 1, "rare": RARE_ROWS - 1, "middling": 20_000, "common": 60_000}

    first, last = candidate_queries(named(*known), known, 100_000, PartitionFilter(), 100)

    picked, useful = '"rarest" OR "rare"', '"rarest" OR "rare" OR "middling"'
    assert first == RowQuery(f"{{text grams}} : ({picked}) AND {{text grams}} : ({useful})", 2, MAX_RANKED_ROWS, 1)
    assert last == RowQuery(f'{{text grams}} : ({useful} OR "common")', 0, MAX_RANKED_ROWS, 1)


def test_where_every_word_is_common_rows_with_the_rarest_together_are_visited_until_there_are_enough() -> None:
    known = {"one": 10_000, "two": 20_000, "three": 25_000}

    sought = candidate_queries(named(*known), known, 100_000, PartitionFilter(), 20)

    ranking = '{text grams} : ("one" OR "two" OR "three")'
    assert sought == [
        RowQuery(f'{{text grams}} : ("one" AND "two" AND "three") AND {ranking}', 3, MAX_RANKED_ROWS, 20),
        RowQuery(f'{{text grams}} : ("one" AND "two") AND {ranking}', 2, MAX_RANKED_ROWS, 20),
        RowQuery(f'{{text grams}} : ("one") AND {ranking}', 1, MAX_RANKED_ROWS, 20),
        RowQuery(ranking, 0, MAX_RANKED_ROWS, 1),
    ]
    assert [found.skip for found in candidate_queries(named(*known), known, 100_000, PartitionFilter(), 300)] == [
        2,
        1,
        0,
    ]


@pytest.mark.parametrize(("total", "times"), [(SMALL_INDEX_ROWS, 2), (SMALL_INDEX_ROWS + 1, 1)])
def test_of_modestly_many_rows_twice_as_many_are_visited(total: int, times: int) -> None:
    known = {"one": RARE_ROWS, "two": RARE_ROWS}
    every = '{text grams} : ("one" OR "two")'
    picked = {1: '{text grams} : ("one") AND ', 2: ""}[times]

    assert candidate_queries(named(*known), known, total, PartitionFilter(), 20) == [
        RowQuery(picked + every, 1 if picked else 0, times * MAX_RANKED_ROWS, 1),
        RowQuery(every, 0, times * MAX_RANKED_ROWS, 1),
    ]


def test_in_a_part_of_the_rows_a_word_is_as_rare_as_it_is_there_by_chance() -> None:
    known = {"one": 1000, "two": 2000}

    sought = candidate_queries(named(*known), known, 10_000, PartitionFilter([7], 0.01), 20)

    words = '{text grams} : ("one" OR "two")'
    assert sought == [RowQuery(f"place : (quipuplace7) AND {words}", 1, 2 * MAX_RANKED_ROWS, 1)] * 2
    assert candidate_queries([], {}, 10_000, PartitionFilter(), 20) == []


def test_more_rows_are_visited_where_more_are_asked_for() -> None:
    assert {
        found.limit for found in candidate_queries(named("one"), {"one": 9}, 10, PartitionFilter(), 2 * MAX_RANKED_ROWS)
    } == {2 * MAX_RANKED_ROWS}


def test_a_text_of_many_words_is_looked_up_by_its_rarest() -> None:
    terms = [Term(f"w{number}", f"w{number}") for number in range(2 * MAX_QUERY_TERMS)]
    known = {term.stem: number + 1 for number, term in enumerate(terms)}

    assert match_any(terms, known, None).count(" OR ") == MAX_QUERY_TERMS - 1
    assert '"w0"' in match_any(terms, known, None)


def expected_keys(text: str) -> set[str]:
    """The documents that hold a word of the text, by the plainest reading of both."""
    asked = set(re.findall(r"[^\W_]+", text.lower()))
    asked = asked - STOP_WORDS or asked
    return {str(number) for number, document in enumerate(DOCUMENTS) if asked & set(document.split())}


@pytest.mark.parametrize("probe", PROBES, ids=lambda probe: repr(probe)[:20])
def test_no_text_is_syntax(words: Shelf, probe: str) -> None:
    assert words.by_words(probe) == expected_keys(probe)


@pytest.mark.parametrize("probe", PROBES, ids=lambda probe: repr(probe)[:20])
def test_no_text_is_syntax_inside_a_place_either(words: Shelf, probe: str) -> None:
    assert words.by_words(probe, within=[("shelf", "")]) == expected_keys(probe)
    assert words.by_words(probe, within=[("shelf", "elsewhere")]) == set()


@MANY
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["foo", "bar", "baz", "near", "x", "title", "text", "user", "and", "not", "FOO", "NEAR"]),
            st.text(" \t\n\"'*^(){}:+-~.,;\\/@#!?%&|<>=[]$`\0\x1b", min_size=1, max_size=6),
        ),
        max_size=8,
    )
)
def test_whatever_stands_between_words_they_find_the_same(words: Shelf, parts: list[tuple[str, str]]) -> None:
    text = "".join(word + between for word, between in parts)

    assert words.by_words(text) == words.by_words(" ".join(word for word, _ in parts)) == expected_keys(text)


@MANY
@given(st.text(max_size=60))
def test_any_text_at_all_can_be_searched_for(words: Shelf, text: str) -> None:
    assert words.by_words(text) <= {str(number) for number in range(len(DOCUMENTS))}


@given(st.text(max_size=20))
def test_a_quoted_word_is_one_string_whatever_it_holds(word: str) -> None:
    inside = quoted(word)[1:-1]

    assert inside.replace('""', "").count('"') == 0
    assert inside.replace('""', '"') == word


FOREST = 4000
WORDS = ["amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heath"]


def grown(number: int) -> list[str]:
    """The words of one document; that at place n of WORDS stands in every (n + 4)th."""
    kept = [word for place, word in enumerate(WORDS) if number % (place + 4) == 0]
    rare = ["yew"] * (number % 200 == 0) + ["zelkova"] * (number % 100 == 1)
    return [f"filler{number % 7}"] * (number % 5 + 1) + kept + rare


def ranks(asked: list[str]) -> dict[str, float]:
    """BM25 by its formula, of every document that holds a word."""
    texts = [grown(number) for number in range(FOREST)]
    mean = sum(map(len, texts)) / len(texts)
    worth = {
        word: math.log1p((len(texts) - held + 0.5) / (held + 0.5))
        for word in asked
        for held in [sum(word in text for text in texts)]
    }
    return {
        str(number): sum(
            worth[word] * count * 2.2 / (count + 1.2 * (0.25 + 0.75 * len(text) / mean))
            for word in asked
            if (count := text.count(word))
        )
        for number, text in enumerate(texts)
        if not {*asked}.isdisjoint(text)
    }


def ranked(hits: list[Hit]) -> dict[str, float]:
    return {hit.id: hit.text_rank or 0.0 for hit in hits}


@pytest.fixture(scope="module")
def forest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shelf]:
    with shelf_in(tmp_path_factory.mktemp("forest"), None) as shelf:
        shelf.put([" ".join(grown(number)) for number in range(FOREST)])
        yield shelf


@pytest.mark.parametrize("asked", [["yew"], ["zelkova"], ["yew", "zelkova"], ["heath"]])
def test_every_document_with_a_word_is_found_and_ranked_by_bm25_where_they_are_few(
    forest: Shelf, asked: list[str]
) -> None:
    found = ranked(forest.search(" ".join(asked), semantic=False, limit=FOREST))

    assert found == pytest.approx(ranks(asked), rel=1e-5)
    assert list(found.values()) == sorted(found.values(), reverse=True)


def test_rows_without_a_rare_word_are_left_out_and_common_words_rank_the_others(forest: Shelf) -> None:
    every, rare = ranks(["yew", "amber", "birch"]), ranks(["yew"])

    found = ranked(forest.search("yew amber birch", semantic=False, limit=FOREST))

    assert found == pytest.approx({key: every[key] for key in rare}, rel=1e-5)


def test_of_common_words_the_documents_that_hold_most_of_them_are_found(forest: Shelf) -> None:
    asked = ["amber", "birch", "cedar"]
    every = {key for key in ranks(asked) if {*asked} <= {*grown(int(key))}}

    found = ranked(forest.search(" ".join(asked), semantic=False, limit=10))

    assert len(found) == 10
    assert {*found} <= every
