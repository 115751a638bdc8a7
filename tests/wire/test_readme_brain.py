"""What the README shows of brain runs as it stands, through the official client, and prints what it says it prints."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.serving import ROOT, serving

SECTION = (ROOT / "README.md").read_text(encoding="utf-8").partition("\n### brain\n")[2].partition("\n## ")[0]
SCRIPT = re.findall(r"^```python\n(.*?)^```", SECTION, re.MULTILINE | re.DOTALL)[0]
PROMISED = re.findall(r"print\(.*\)  # (.*)$", SCRIPT, re.MULTILINE)


def test_the_script_of_the_readme_prints_what_it_promises(tmp_path: Path) -> None:
    with serving(tmp_path / "data") as server:
        script = SCRIPT.replace("127.0.0.1:7847", f"127.0.0.1:{server.port}")
        assert script != SCRIPT
        done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=60)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == PROMISED
    assert len(PROMISED) > 4


@pytest.mark.parametrize("name", re.findall(r"call\(\"(\w+)\"", SCRIPT))
def test_every_tool_of_the_script_is_one_of_brain(name: str) -> None:
    from handlers import brain

    assert name in {tool.name for tool in brain.DIALECT.tools}
