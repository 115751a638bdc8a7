"""The local memory tool of the vendor's Python SDK: a command a line in, its answer and all files a line out, as JSON.

Run by a Python that has the SDK, with a folder as its argument. A line with null empties the folder. Directories that a
command leaves empty are removed: that they stay is a deviation.
"""

import importlib
import json
import sys
from pathlib import Path
from typing import Any

SDK: Any = importlib.import_module("anthropic.tools")


def main(folder: Path) -> None:
    tool = SDK.BetaLocalFilesystemMemoryTool(str(folder))
    root = folder / "memories"
    for line in sys.stdin:
        command = json.loads(line)
        if command is None:
            tool.clear_all_memory()
            continue
        found: dict[str, Any] = {"refused": False, "host": False}
        try:
            found["text"] = tool.call(command)
        except SDK.ToolError as error:
            found |= {"text": str(error), "refused": True}
        except OSError as error:
            found |= {"text": str(error), "refused": True, "host": True}
        for directory in sorted(root.rglob("*"), reverse=True):
            if directory.is_dir() and not any(directory.iterdir()):
                directory.rmdir()
        files = [path for path in root.rglob("*") if path.is_file()]
        found["files"] = {f"/{path.relative_to(root)}": path.read_bytes().decode() for path in files}
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
