"""The Markdown file that the documentation of notes shows, seen through tools and the file system."""

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from tests.contracts.pages import blocks
from tests.reliability.server_process import serving


def without_times(text: str) -> str:
    """The text with its timestamps replaced."""
    return re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME", text)


@pytest.mark.slow
def test_tools_and_editors_share_the_same_files(tmp_path: Path) -> None:
    data = tmp_path / "data"
    (shown,) = {block.text for block in blocks("markdown") if "memory_type:" in block.text}
    file = data / "notes" / ".mnemonics" / "architectural-decision" / "use-postgresql.md"

    from mcp import Client  # here, for the import alone takes two seconds

    async def exercise(port: int) -> None:
        async with Client(f"http://127.0.0.1:{port}/mcp/notes") as client:

            async def call(name: str, **arguments: Any) -> Any:
                answer = await client.call_tool(name, arguments)
                assert not answer.is_error, answer.content
                return answer.structured_content

            assert [tool.name for tool in (await client.list_tools()).tools] == [
                "memory_list_types",
                "memory_remember",
                "memory_recall",
                "memory_forget",
                "memory_sync",
                "memory_lint",
            ]
            types = await call("memory_list_types")
            assert types["fallbackType"] == "context"
            made = await call(
                "memory_remember",
                title="Use PostgreSQL",
                memoryType="architectural-decision",
                content="We chose PostgreSQL for its JSONB support.",
                tags=["database", "infrastructure"],
            )
            assert made["filePath"] == str(file)
            written = file.read_text(encoding="utf-8")
            assert without_times(written) == without_times(shown)

            file.write_text(written.replace("JSONB support", "extensions"), encoding="utf-8")
            (found,) = (await call("memory_recall", query="extensions", type="search"))["memories"]
            assert (found["title"], found["content"]) == ("Use PostgreSQL", "We chose PostgreSQL for its extensions.")

            other = file.parent.parent / "learning" / "by-hand.md"
            other.parent.mkdir()
            other.write_text("Written in an editor.\n", encoding="utf-8")
            moved = await call(
                "memory_remember", title="x", memoryType="issue", content="Closed.", filePath="learning/by-hand.md"
            )
            assert (moved["isUpdate"], moved["filePath"]) == (True, str(file.parent.parent / "issue" / "by-hand.md"))
            assert (await call("memory_recall", isAll=True))["count"] == 2
            assert (await call("memory_lint"))["summary"]["healthScore"] == 100
            assert (await call("memory_sync"))["success"]
            gone = await call("memory_forget", filePaths=[moved["filePath"], "/etc/passwd"])
            assert (gone["deletedCount"], gone["errors"]) == (1, ["Skipped /etc/passwd: not within .mnemonics/"])
            assert (await call("memory_recall", isAll=True))["count"] == 1

            refused = await client.call_tool("memory_remember", {"title": "x", "content": "y", "memoryType": "none"})
            assert refused.is_error
            (block,) = refused.content
            assert block.model_dump()["text"].startswith(
                'Invalid memory type: "none". Must be one of the built-in types or configured custom types. '
                "These are architectural-decision, "
            )

    with serving(data) as server:
        asyncio.run(exercise(server.port))
