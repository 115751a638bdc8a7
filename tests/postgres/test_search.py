"""The same memories are found on both engines, in the same order and with the same scores."""

import asyncio
import random
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kernel import app
from kernel.config import Config
from kernel.security.permissions import ANONYMOUS_CALLER

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


def found(config: Config, texts: list[str], questions: list[str]) -> list[Any]:
    """What is found after every fifth memory was replaced and every seventh deleted."""
    kernel = app.open_kernel(config)

    async def call(tool: str, **arguments: Any) -> Any:
        entry = kernel.dispatch.tools[tool]
        answer: Any = await kernel.dispatch.call(entry, msgspec.json.encode(arguments), ANONYMOUS_CALLER)
        assert answer.fault is None, answer.body
        return answer.body

    async def run() -> list[Any]:
        for number, text in enumerate(texts):
            await call("add_memory", path=f"{'ab'[number % 2]}/{number}", content=text)
        for number in range(0, len(texts), 5):
            await call("replace_memory", path=f"{'ab'[number % 2]}/{number}", content=texts[-1 - number])
        for number in range(0, len(texts), 7):
            await call("drop_memory", path=f"{'ab'[number % 2]}/{number}")
        answers = [await call("recall", query=question) for question in questions]
        return [msgspec.json.decode(answer)["memories"] for answer in answers]

    try:
        return asyncio.run(run())
    finally:
        kernel.store.close()


def test_answers_are_those_of_sqlite(address: str, tmp_path: Path) -> None:
    texts, questions = texts_and_questions()

    on_sqlite = found(Config(data=tmp_path / "sqlite"), texts, questions)
    on_postgres = found(Config(data=tmp_path / "postgres", store=address), texts, questions)

    assert on_postgres == on_sqlite
    assert sum(map(bool, on_sqlite)) > len(questions) // 2
