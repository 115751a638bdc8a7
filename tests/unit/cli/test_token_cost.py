"""Estimated token counts of tool lists against published tokenizers."""

import re

import pytest

from kernel.cli.main import main
from kernel.cli.token_cost import estimate_tokens, tool_list_tokens
from kernel.server import app
from tests.reliability.server_process import ROOT

# Counted with o200k_base and cl100k_base (js-tiktoken 1.0.21) and by @anthropic-ai/tokenizer 0.0.4.
READ_MEMORY = (
    '{"name":"read_memory","description":"Read the memory at a path.","input_schema":{"description":"The memo'
    'ry to read.","type":"object","properties":{"path":{"description":"Path of the memory to read","type":"st'
    'ring"}},"required":["path"],"additionalProperties":false}}'
)
CREATE_LINK = (
    '{"name":"create_link","description":"Link two memories or entities, of this database or another.","input'
    '_schema":{"description":"A relationship from a source to a target.","type":"object","properties":{"db":{'
    '"description":"Which database","enum":["core","therapy","dnd","hlg"],"type":"string","maxLength":64},"so'
    'urce_type":{"description":"What the source is","enum":["entity","memory"]},"source_id":{"description":"I'
    'd of the source","type":"string","maxLength":128,"minLength":1},"target_type":{"description":"What the t'
    'arget is","enum":["entity","memory"]},"target_id":{"description":"Id of the target","type":"string","max'
    'Length":128,"minLength":1},"relationship":{"description":"relates_to, supersedes, contradicts, depends_o'
    'n, part_of or another word","type":"string","maxLength":256,"minLength":1},"strength":{"description":"Ho'
    'w strong it is, 0 to 1","type":"number","minimum":0,"maximum":1,"default":1.0},"metadata":{"description"'
    ':"Any JSON","anyOf":[{"type":"object"},{"type":"null"}],"default":null}},"required":["db","source_type",'
    '"source_id","target_type","target_id","relationship"],"additionalProperties":false}}'
)


@pytest.mark.parametrize(("text", "counted"), [(READ_MEMORY, (57, 56, 60)), (CREATE_LINK, (270, 264, 282))])
def test_estimate_is_within_a_tenth_of_published_tokenizers(text: str, counted: tuple[int, ...]) -> None:
    assert [estimate_tokens(text)] * 3 == [pytest.approx(count, rel=0.1) for count in counted]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("", 0), ("word", 1), (" word", 1), ("memorization", 2), ("1234567", 3), ('":{"', 1), ('"}}],', 2), ("a  b", 3)],
)
def test_pre_tokens_are_counted(text: str, tokens: int) -> None:
    assert estimate_tokens(text) == tokens


@pytest.mark.slow
def test_output_schemas_add_tokens_and_reads_take_fewer() -> None:
    for dialect in app.DIALECTS:
        plain, whole = (tool_list_tokens(dialect.tools, results=results) for results in (False, True))
        reading = tool_list_tokens([tool for tool in dialect.tools if tool.mode == "read"], results=False)
        assert 0 < reading <= plain < whole


@pytest.mark.slow
def test_readme_token_counts_are_within_a_tenth(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tools", "--tokens"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[1:]]
    found = {address: (int(tools), int(tokens)) for address, tools, tokens, _ in rows}
    assert list(found)[:2] == ["/mcp", "/mcp?tools=read"]
    assert len(found) == 4 + 2 * len(app.DIALECTS)
    shown = re.findall(
        r"^\| `(/mcp\S*)` \| (\d+) \| ([\d,]+) \| (\d+) \| ([\d,]+) \|$",
        (ROOT / "docs" / "clients.md").read_text(),
        re.M,
    )
    assert [row[0] for row in shown] == list(found)[::2]
    for address, tools, tokens, reading, fewer in shown:
        for end, count, shown_tokens in (("", tools, tokens), ("?tools=read", reading, fewer)):
            assert int(count) == found[address + end][0]
            assert int(shown_tokens.replace(",", "")) == pytest.approx(found[address + end][1], rel=0.1)
