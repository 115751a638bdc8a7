"""The README as the package index shows it: links into the repository become absolute."""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_LINK = re.compile(r"(\]\(|src=\"|href=\")(?![a-z]+:|#|//)([^)\"\s]+)")


class Readme(MetadataHookInterface):
    """Fills the dynamic field `readme`."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Sets the text with its links at the version of the package."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        source = f"{metadata['urls']['Source']}/blob/v{metadata['version']}/"
        absolute = _LINK.sub(lambda found: found[1] + source + found[2], text)
        metadata["readme"] = {"content-type": "text/markdown", "text": absolute}
