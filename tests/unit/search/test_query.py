"""Any text becomes an FTS5 expression that matches its terms, and none of it is read as syntax."""

import math
import re
import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel.search import lexical
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
from tests.unit.index_fixtures import CALLER, IndexedStore, open_indexed_store

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
def lexical_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IndexedStore]:
    """DOCUMENTS under their positions as keys, searched lexically."""
    with open_indexed_store(tmp_path_factory.mktemp("words"), None) as store:
        store.put(DOCUMENTS)
        yield store


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IndexedStore]:
    """One document per script; its key is its position in SCRIPTS."""
    with open_indexed_store(tmp_path_factory.mktemp("scripts"), None) as store:
        store.put([text for text, _, _ in SCRIPTS])
        yield store


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
def test_grams_are_bigrams_the_last_character_and_words_attached_to_a_run(text: str, expected: str) -> None:
    assert grams(text) == expected


@pytest.mark.slow
@MANY
@given(st.text(CJK, min_size=1, max_size=30), st.text("aZ9 é_.-", max_size=5), st.data())
def test_every_substring_of_a_run_is_found_by_its_bigrams(run: str, around: str, data: st.DataObject) -> None:
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
def test_query_grams_are_bigrams_or_a_prefix_for_one_character(text: str, expected: list[Term]) -> None:
    assert query_grams(text) == expected


def test_words_attached_to_a_run_are_separated() -> None:
    assert words_beside_cjk("plain words") == ""
    assert words_beside_cjk("使用Running编程 v2版").split() == ["Running", "v2"]


@pytest.mark.parametrize("row", SCRIPTS, ids=lambda row: row.text[:8])
def test_scripts_without_spaces_are_found_by_their_words(scripts: IndexedStore, row: Row) -> None:
    key = str(SCRIPTS.index(row))

    assert [query for query in row.found if key not in scripts.lexical_keys(query)] == []
    assert [query for query in row.missed if key in scripts.lexical_keys(query)] == []


@pytest.mark.slow
def test_tokenizer_keeps_every_cjk_character_as_a_token(lexical_store: IndexedStore) -> None:
    letters = [chr(point) for point in (*range(0x1100, 0xD800), *range(0xE000, 0x33000))]
    counted = {letter for letter in letters if grams(letter) == letter}

    def differing(tx: Tx) -> list[str]:
        split = {letter: tx.tokenize(letter) for letter in counted}
        return [letter for letter, tokens in split.items() if [token[2] for token in tokens] != [letter]]

    assert len(counted) > 100_000
    assert lexical_store.reader.read(CALLER, differing) == []


@pytest.mark.slow
def test_grams_of_a_long_text_take_linear_time() -> None:
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
def test_query_words_are_distinct_and_drop_stop_words_if_others_are_left(
    lexical_store: IndexedStore, text: str, expected: list[str]
) -> None:
    def looked_up(tx: Tx) -> list[str]:
        return [term.surface for term in query_words(text, tx.tokenize(text))]

    assert lexical_store.reader.read(CALLER, looked_up) == expected


def test_match_is_a_disjunction_of_quoted_terms_in_the_text_columns() -> None:
    terms = [Term("say", 'say "hi"'), Term("日", "日", prefix=True), Term("gone", "gone")]

    assert match(terms, {"say": 1}, 100, None) == '{text grams} : ("日"* OR "say ""hi""")'
    assert match(terms, {"say": 1}, 100, [7, 8]) == (
        'place : (quipuplace7 OR quipuplace8) AND {text grams} : ("日"* OR "say ""hi""")'
    )


def test_terms_missing_from_the_index_make_no_expression() -> None:
    assert match([Term("gone", "gone")], {}, 100, None) == ""
    assert match_any([Term("gone", "gone")], {}, None) == ""
    assert match([], {}, 0, [1]) == ""


def test_match_selects_by_rare_terms_and_ranks_by_every_useful_term() -> None:
    terms = [Term(name, name) for name in ("common", "middling", "rare", "rarest")]
    known = {"common": 6000, "middling": 2000, "rare": RARE_ROWS - 1, "rarest": 1}

    rare, every = '"rarest" OR "rare"', '"rarest" OR "rare" OR "middling"'
    assert match(terms, known, 10_000, None) == f"{{text grams}} : ({rare}) AND {{text grams}} : ({every})"
    assert match_any(terms, known, None) == f'{{text grams}} : ({every} OR "common")'


def test_common_term_selects_rows_if_there_is_no_other() -> None:
    assert match([Term("a", "a")], {"a": 9000}, 10_000, None) == '{text grams} : ("a")'


def test_small_partitions_are_searched_for_every_term() -> None:
    terms = [Term("common", "common"), Term("rare", "rare")]
    known = {"common": 9000, "rare": 1, "quipuplace1": SMALL_PARTITION_DOCS, "quipuplace2": 1}

    assert match(terms, known, 10_000, [1]) == 'place : (quipuplace1) AND {text grams} : ("rare" OR "common")'
    assert match(terms, known, 10_000, [1, 2]) == 'place : (quipuplace1 OR quipuplace2) AND {text grams} : ("rare")'


def named(*names: str) -> list[Term]:
    return [Term(name, name) for name in names]


def test_candidates_have_a_rare_term_and_rank_by_every_useful_term() -> None:
    known = {"rarest": 1, "rare": RARE_ROWS - 1, "middling": 20_000, "common": 60_000}

    first, last = candidate_queries(named(*known), known, 100_000, PartitionFilter(), 100)

    picked, useful = '"rarest" OR "rare"', '"rarest" OR "rare" OR "middling"'
    assert first == RowQuery(
        f"{{text grams}} : ({picked}) AND {{text grams}} : ({useful})",
        2,
        MAX_RANKED_ROWS,
        1,
        (f"{{text grams}} : ({picked})", f'{{text grams}} : ({picked}) AND {{text grams}} : ("middling")'),
    )
    every = f'{{text grams}} : ({useful} OR "common")'
    assert last == RowQuery(every, 0, MAX_RANKED_ROWS, 1, (every,))


def test_conjunctions_of_common_terms_shrink_until_enough_rows_match() -> None:
    known = {"one": 10_000, "two": 20_000, "three": 25_000}

    sought = candidate_queries(named(*known), known, 100_000, PartitionFilter(), 20)

    ranking = '{text grams} : ("one" OR "two" OR "three")'
    all_three, two, one = (
        f"{{text grams}} : ({words})" for words in ('"one" AND "two" AND "three"', '"one" AND "two"', '"one"')
    )
    further, others = '{text grams} : ("three")', '{text grams} : ("two" OR "three")'
    assert sought == [
        RowQuery(f"{all_three} AND {ranking}", 3, MAX_RANKED_ROWS, 20, (all_three,)),
        RowQuery(f"{two} AND {ranking}", 2, MAX_RANKED_ROWS, 20, (two, f"{two} AND {further}")),
        RowQuery(f"{one} AND {ranking}", 1, MAX_RANKED_ROWS, 20, (one, f"{one} AND {others}")),
        RowQuery(ranking, 0, MAX_RANKED_ROWS, 1, (ranking,)),
    ]
    assert [found.skip for found in candidate_queries(named(*known), known, 100_000, PartitionFilter(), 300)] == [
        2,
        1,
        0,
    ]


@pytest.mark.parametrize(("total", "times"), [(SMALL_INDEX_ROWS, 2), (SMALL_INDEX_ROWS + 1, 1)])
def test_row_limits_double_in_a_small_index(total: int, times: int) -> None:
    known = {"one": RARE_ROWS, "two": RARE_ROWS}
    every = '{text grams} : ("one" OR "two")'
    one, two = '{text grams} : ("one")', '{text grams} : ("two")'
    all_rows = RowQuery(every, 0, times * MAX_RANKED_ROWS, 1, (every,))
    picked = RowQuery(f"{one} AND {every}", 1, MAX_RANKED_ROWS, 1, (one, f"{one} AND {two}"))

    found = candidate_queries(named(*known), known, total, PartitionFilter(), 20)
    assert found == [{1: picked, 2: all_rows}[times], all_rows]


def test_partition_share_scales_document_frequencies() -> None:
    known = {"one": 1000, "two": 2000}

    sought = candidate_queries(named(*known), known, 10_000, PartitionFilter([7], 0.01), 20)

    words = '{text grams} : ("one" OR "two")'
    expression = f"place : (quipuplace7) AND {words}"
    assert sought == [RowQuery(expression, 1, 2 * MAX_RANKED_ROWS, 1, (expression,))] * 2
    assert candidate_queries([], {}, 10_000, PartitionFilter(), 20) == []


def test_row_limit_grows_with_the_result_limit() -> None:
    assert {
        found.limit for found in candidate_queries(named("one"), {"one": 9}, 10, PartitionFilter(), 2 * MAX_RANKED_ROWS)
    } == {2 * MAX_RANKED_ROWS}


def test_long_query_uses_its_rarest_terms() -> None:
    terms = [Term(f"w{number}", f"w{number}") for number in range(2 * MAX_QUERY_TERMS)]
    known = {term.stem: number + 1 for number, term in enumerate(terms)}

    assert match_any(terms, known, None).count(" OR ") == MAX_QUERY_TERMS - 1
    assert '"w0"' in match_any(terms, known, None)


def expected_keys(text: str) -> set[str]:
    """The documents that hold a word of the text, by a regular expression instead of the index."""
    query_terms = set(re.findall(r"[^\W_]+", text.lower()) + re.findall(r"[a-z]{2,}(?=[0-9])", text.lower()))
    query_terms = query_terms - STOP_WORDS or query_terms
    return {str(number) for number, document in enumerate(DOCUMENTS) if query_terms & set(document.split())}


@pytest.mark.parametrize("probe", PROBES, ids=lambda probe: repr(probe)[:20])
def test_query_text_is_never_syntax(lexical_store: IndexedStore, probe: str) -> None:
    assert lexical_store.lexical_keys(probe) == expected_keys(probe)


@pytest.mark.parametrize("probe", PROBES, ids=lambda probe: repr(probe)[:20])
def test_query_text_is_never_syntax_within_a_partition(lexical_store: IndexedStore, probe: str) -> None:
    assert lexical_store.lexical_keys(probe, within=[("docs", "")]) == expected_keys(probe)
    assert lexical_store.lexical_keys(probe, within=[("docs", "elsewhere")]) == set()


@pytest.mark.slow
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
def test_separators_between_words_do_not_matter(lexical_store: IndexedStore, parts: list[tuple[str, str]]) -> None:
    text = "".join(word + between for word, between in parts)

    assert (
        lexical_store.lexical_keys(text)
        == lexical_store.lexical_keys(" ".join(word for word, _ in parts))
        == expected_keys(text)
    )


@pytest.mark.slow
@MANY
@given(st.text(max_size=60))
def test_any_text_is_a_valid_query(lexical_store: IndexedStore, text: str) -> None:
    assert lexical_store.lexical_keys(text) <= {str(number) for number in range(len(DOCUMENTS))}


@given(st.text(max_size=20))
def test_quoted_word_is_one_string(word: str) -> None:
    inside = quoted(word)[1:-1]

    assert inside.replace('""', "").count('"') == 0
    assert inside.replace('""', '"') == word


CORPUS_SIZE = 4000
WORDS = ["amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heath"]


def document(number: int) -> list[str]:
    """The words of one document; the word at position n of WORDS is in every (n + 4)th document."""
    kept = [word for at, word in enumerate(WORDS) if number % (at + 4) == 0]
    rare = ["yew"] * (number % 200 == 0) + ["zelkova"] * (number % 100 == 1)
    return [f"filler{'abcdefg'[number % 7]}"] * (number % 5 + 1) + kept + rare


@pytest.fixture(params=["small", "large"])
def index_size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Whether FTS5 ranks, as in a small index, or this package."""
    if request.param == "large":
        monkeypatch.setattr(lexical, "_FTS5_RANKED_ROWS", 0)
    return request.param


def expected_ranks(query_terms: list[str], index_size: str) -> dict[str, float]:
    """BM25 by its formula for every document that holds a term; FTS5 counts the term of the partition too."""
    texts = [document(number) for number in range(CORPUS_SIZE)]
    logarithm, more = (math.log, 1) if index_size == "small" else (math.log1p, 0)
    mean = sum(map(len, texts)) / len(texts) + more
    idf = {
        word: logarithm((len(texts) - held + 0.5) / (held + 0.5))
        for word in query_terms
        for held in [sum(word in text for text in texts)]
    }
    return {
        str(number): sum(
            idf[word] * count * 2.2 / (count + 1.2 * (0.25 + 0.75 * (len(text) + more) / mean))
            for word in query_terms
            if (count := text.count(word))
        )
        for number, text in enumerate(texts)
        if not {*query_terms}.isdisjoint(text)
    }


def rank_by_key(hits: list[Hit]) -> dict[str, float]:
    return {hit.id: hit.text_rank or 0.0 for hit in hits}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IndexedStore]:
    with open_indexed_store(tmp_path_factory.mktemp("corpus"), None) as store:
        store.put([" ".join(document(number)) for number in range(CORPUS_SIZE)])
        yield store


@pytest.mark.slow
@pytest.mark.parametrize("query_terms", [["yew"], ["zelkova"], ["yew", "zelkova"], ["heath"]])
def test_documents_with_rare_terms_are_all_found_and_ranked_by_bm25(
    corpus: IndexedStore, query_terms: list[str], index_size: str
) -> None:
    found = rank_by_key(corpus.search(" ".join(query_terms), semantic=False, limit=CORPUS_SIZE))

    assert found == pytest.approx(expected_ranks(query_terms, index_size), rel=1e-5)
    assert list(found.values()) == sorted(found.values(), reverse=True)


@pytest.mark.slow
def test_rows_without_a_rare_term_are_left_out_and_common_terms_rank(corpus: IndexedStore, index_size: str) -> None:
    every, rare = (expected_ranks(words, index_size) for words in (["yew", "amber", "birch"], ["yew"]))

    found = rank_by_key(corpus.search("yew amber birch", semantic=False, limit=CORPUS_SIZE))

    assert found == pytest.approx({key: every[key] for key in rare}, rel=1e-5)


def test_documents_with_all_common_terms_are_found_first(corpus: IndexedStore, index_size: str) -> None:
    query_terms = ["amber", "birch", "cedar"]
    every = {key for key in expected_ranks(query_terms, index_size) if {*query_terms} <= {*document(int(key))}}

    found = rank_by_key(corpus.search(" ".join(query_terms), semantic=False, limit=10))

    assert len(found) == 10
    assert {*found} <= every
