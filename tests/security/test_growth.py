"""Work on texts of clients, memories and files takes time in proportion to any of them."""

import heapq
import io
from collections import deque
from collections.abc import Callable, Iterator, Mapping

import pytest

from handlers.brain import smart
from handlers.common import fence
from handlers.console import records, rendering
from handlers.importers import markdown
from handlers.notes import admin, front_matter, slug
from handlers.notes.memory_types import _TOKEN, _strip_jsonc
from handlers.paths.memories import _NOT_IN_PATHS
from handlers.scopes import export as pages
from handlers.scopes import locks
from handlers.sessions import entity_extraction, summary
from kernel.cli import config_files, token_cost
from kernel.core import limits, text, times, yaml
from kernel.core.config import MODEL
from kernel.core.errors import Fault
from kernel.embed.model import Embedder
from kernel.embed.tokenizer import load_encoder
from kernel.memories import json_rows
from kernel.search import equivalence, extra_terms, query, word_forms
from kernel.security.rules import injection, secrets
from tests.security.growth import KIB, growth, spent
from tests.support.security_growth import texts

SIZES = (4 * KIB, 64 * KIB)  # further apart than noise is large
SCREENED = 4 * KIB
SLOWEST = 4
SCREEN_SECONDS = 0.2


def refused(work: Callable[[str], object]) -> Callable[[str], object]:
    """The work, which may refuse a text."""

    def run(given: str) -> object:
        try:
            found = work(given)
            return deque(found, maxlen=0) if isinstance(found, Iterator) else found
        except (Fault, ValueError, RecursionError) as error:
            return error

    return run


EMBEDDER = Embedder(MODEL)
ENCODER = load_encoder((MODEL / "tokenizer.json").read_bytes(), 4)


def _says_the_same(given: str) -> object:
    other = given[::-1] + " Other"
    return equivalence.tell_apart(given, other), equivalence.tell_apart(f"{given} Zzzzzzzzz", given.swapcase())


def _encoded(given: str) -> object:
    assert ENCODER is not None
    ENCODER.clear()
    return ENCODER.encode(given)


def _compared(given: str) -> object:
    one, other = EMBEDDER.embed([given, given[::-1]])
    return EMBEDDER.unmatched(one.tokens, other.tokens), EMBEDDER.interaction(one.tokens, [other.tokens], 0.5)


WORK: Mapping[str, Callable[[str], object]] = {
    "a prompt": lambda given: fence.without_fenced(fence.without_private(given)),
    "a line of a hook": lambda given: (
        fence.harmless(given),
        fence.line(given, 200),
        fence.item(given, given, given, given),
    ),
    "a search for secrets": lambda given: secrets.find_secret([given]),
    "secrets redacted": lambda given: secrets.redact(given, "***"),
    "injection rules": injection.matched_rule,
    "front matter": lambda given: front_matter.value(front_matter.parse(f"---\n{given}\n---\n{given}"), "a"),
    "front matter of one value": lambda given: front_matter.to_list(
        front_matter.value(front_matter.parse(f"---\na: [{given}]\n---\n"), "a")
    ),
    "a slug": lambda given: (slug.slug(given), slug.kebab(given)),
    "memory types": lambda given: _TOKEN.sub(_strip_jsonc, given),
    "a path": lambda given: _NOT_IN_PATHS.sub("-", given),
    "links of a note": lambda given: admin._WIKI_LINK.findall(admin._CODE.sub("", given)),
    "Markdown sections": lambda given: [(one, *markdown.observations(one.text)) for one in markdown.sections(given)],
    "Markdown links": markdown.links,
    "a Markdown page": lambda given: (markdown.page(given), markdown.first_heading(given), markdown.plain_lines(given)),
    "a page with TOML": lambda given: markdown.page(f"+++\n{given[16:]}a = 1\n+++\n"),
    "a span": markdown.span,
    "JSON rows": lambda given: [*json_rows.rows(io.BytesIO(given.encode()))],
    "JSON rows of a document": lambda given: [
        *json_rows.rows(io.BytesIO(b'{"a": [{"b": "' + given.encode()), members=["a"])
    ],
    "JSON rows with comments": lambda given: [*json_rows.rows(io.BytesIO(b'[{"a":1,/*' + given.encode()))],
    "JSON lines": lambda given: [*json_rows.lines(io.BytesIO(given.encode()))],
    "a document of scopes": lambda given: (pages._escaped(given), pages._code_span(given), pages._quotation(given)),
    "a locked path": locks.normal_path,
    "entities": entity_extraction.extract_mentions,
    "tags": lambda given: (summary.default_tags(given), summary.first_line(given)),
    "words in common": lambda given: smart.word_overlap(given, given[::-1]),
    "a YAML block": lambda given: text.yaml_block({"a": given, given: [given, {"b": given}]}),
    "a YAML list": lambda given: text.yaml_flow([given, *given.split()]),
    "one line": lambda given: (text.one_line(given, 200), text.one_line(given, 10_000), text.visible(given)),
    "one word": lambda given: (text.one_word(given), times.utc_time(given)),
    "YAML read": lambda given: yaml.read(given, 50_000),
    "JSONC": config_files.read_json,
    "JSON of a request": lambda given: text.excess(given.encode(), limits.Limits()),
    "tokens counted": lambda given: sum(len(one) for one in token_cost._PIECES.findall(given)),
    "marked words": lambda given: rendering.highlight(given, given[:400]),
    "a comparison": lambda given: records.compare(given, given[::-1]),
    "indexed words": lambda given: (extra_terms.indexed_words(given, given), [*extra_terms.name_parts(given)]),
    "stems": lambda given: (word_forms.stems(given), word_forms.query_forms(given)),
    "character pairs": lambda given: (extra_terms.character_pairs(given), extra_terms.pair_terms(given)),
    "grams": lambda given: (query.grams(given), query.query_grams(given), query.words_beside_cjk(given)),
    "texts told apart": _says_the_same,
    "WordPiece": _encoded,
    "an embedding": lambda given: EMBEDDER.embed([given]),
    "late interaction": _compared,
}


@pytest.mark.parametrize("name", WORK)
def test_work_over_a_text_takes_time_in_proportion_to_it(name: str) -> None:
    work, slow = refused(WORK[name]), list[str]()
    work("warm it up")

    def took(made: Callable[[int], str]) -> float:
        given = made(SCREENED)
        return spent(lambda: work(given), SCREEN_SECONDS)

    for _, _, made in heapq.nlargest(SLOWEST, ((took(made), at, made) for at, made in enumerate(texts()))):
        grown = growth(work, made, SIZES)
        if not grown.linear:
            slow.append(f"{made(40)[:40]!r}: {grown}")
    assert slow == []
