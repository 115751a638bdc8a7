"""The same memories are found on both engines, in the same order and with the same scores, whoever wrote them."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kernel.core.config import Config
from kernel.engines.postgres import database, full_text
from kernel.security.permissions import ANONYMOUS_CALLER
from kernel.server import app
from kernel.store.statements import ROOT
from tests.postgres import stores

pytestmark = pytest.mark.postgres
PAGES = Path(__file__).parents[2] / "docs"
CJK = "東京の天気は晴れ 北京大学 서울 날씨"


def texts_and_questions() -> tuple[list[str], list[str]]:
    words = [word for file in sorted(PAGES.glob("*.md")) for word in file.read_text(encoding="utf-8").split()]
    chance = random.Random(7)
    texts = [" ".join(chance.choices(words, k=25)) for _ in range(300)]
    texts += [f"{CJK[at : at + 6]} {chance.choice(words)}" for at in range(0, len(CJK), 2)]
    questions = [" ".join(chance.choices(words, k=chance.randint(1, 6))) for _ in range(60)]
    return texts, [*questions, "天気", "京", "날씨", "a the of", 'quote " and NEAR(x)', "quipuplace1"]


async def call(kernel: app.Kernel, tool: str, **arguments: Any) -> Any:
    entry = kernel.dispatch.tools[tool]
    answer: Any = await kernel.dispatch.call(entry, msgspec.json.encode(arguments), ANONYMOUS_CALLER)
    assert answer.fault is None, answer.body
    return answer.body


async def asked(kernel: app.Kernel, questions: list[str]) -> list[Any]:
    """Return the hits; after the first of them, words are known to the process."""
    return [msgspec.json.decode(await call(kernel, "recall", query=question))["memories"] for question in questions]


async def changed(kernel: app.Kernel, texts: list[str]) -> AsyncIterator[None]:
    """Adds the memories, half of them in a second step, then replaces every fifth and deletes every seventh."""
    paths = [f"{'ab'[number % 2]}/{number}" for number in range(len(texts))]
    half = len(texts) // 2
    for part in (range(half), range(half, len(texts))):
        for number in part:
            await call(kernel, "add_memory", path=paths[number], content=texts[number])
        yield
    for number in range(0, len(texts), 5):
        await call(kernel, "replace_memory", path=paths[number], content=texts[-1 - number])
    yield
    for number in range(0, len(texts), 7):
        await call(kernel, "drop_memory", path=paths[number])
    yield


def found(configs: list[Config], texts: list[str], questions: list[str]) -> list[Any]:
    """Return the hits of the last server after each step of the first."""
    with ExitStack() as stack:
        kernels: list[app.Kernel] = []
        for config in configs:
            if config.store:
                database.forget_pool(config.store)
            kernels.append(app.open_kernel(config))
            stack.callback(kernels[-1].store.close)

        async def run() -> list[Any]:
            return [await asked(kernels[-1], questions) async for _ in changed(kernels[0], texts)]

        return asyncio.run(run())


@pytest.mark.parametrize("bounds", [{}, {"MOST_DOCS": 20, "_MOST_ADDED": 10, "_MOST_BYTES": 30_000}])
def test_answers_are_those_of_sqlite(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bounds: dict[str, int]
) -> None:
    """With little room for words in memory, most questions go to the database."""
    for name, bound in bounds.items():
        monkeypatch.setattr(full_text, name, bound)
    texts, questions = texts_and_questions()
    one, other = (Config(data=tmp_path / name, store=address) for name in ("one", "other"))

    on_sqlite = found([Config(data=tmp_path / "sqlite")], texts, questions)
    on_postgres = found([one, other], texts, questions)

    assert on_postgres == on_sqlite
    assert sum(map(bool, on_sqlite[-1])) > len(questions) // 2


def test_a_run_without_a_break_is_stored_and_found(address: str, tmp_path: Path) -> None:
    """A stem as long as its text, which the index of PostgreSQL cannot hold."""
    chance = random.Random(11)
    hexes = [chance.randbytes(2000).hex() for _ in range(3)]
    characters = ["".join(chr(chance.randint(0x4E00, 0x9FA5)) for _ in range(1000)) for _ in range(2)]
    texts = [f"{run} of {number}" for number, run in enumerate([*hexes, *characters, "e" * 4000, "f" * 2599])]
    alike = f"{hexes[0][:-1]}{'1' if hexes[0][-1] == '0' else '0'}"
    questions = [*hexes, *characters, characters[0][0], characters[1][-1], alike, "e" * 4000, "f" * 2599, "of 2"]
    one, other = (Config(data=tmp_path / name, store=address, model=None) for name in ("one", "other"))

    on_sqlite = found([Config(data=tmp_path / "sqlite", model=None)], texts, questions)
    on_postgres = found([one, other], texts, questions)

    assert on_postgres == on_sqlite
    assert all(on_sqlite[0][:3])


def test_long_stems_of_an_earlier_release_are_shortened(address: str, opened: Callable[[str], app.Kernel]) -> None:
    """Those that PostgreSQL could compress were in the index as they are."""
    asyncio.run(call(opened(address), "add_memory", path="a/b", content=f"short {'щ' * 2000} words"))
    held, whole = "SELECT stems FROM quipu_data.doc_words", "щ" * 2000
    with stores.connect(address) as db:
        before = db.execute(held).fetchall()
        replace = "UPDATE quipu_data.doc_words SET stems = array_replace(stems, %s, %s)"
        db.execute(replace, (full_text.short(whole), whole))
        assert db.execute(held).fetchall() != before
        db.execute((ROOT / "postgres/schema/0021_long_stems.sql").read_text(encoding="utf-8"))
        after = db.execute(held).fetchall()

    assert after == before


@pytest.mark.slow
def test_few_words_wait_for_their_place_in_the_index(address: str, opened: Callable[[str], app.Kernel]) -> None:
    """Each look-up of a word reads all that wait."""
    kernel, chance = opened(address), random.Random(3)
    for number in range(60):
        text = " ".join(chance.randbytes(3).hex() for _ in range(60))
        asyncio.run(call(kernel, "add_memory", path=f"a/{number}", content=text))

    with stores.connect(address) as db:
        ((pages,),) = db.execute("SELECT gin_clean_pending_list('quipu_data.doc_words_by_stem')").fetchall()
    assert 0 < pages <= 8
