"""Leads links out of the documentation to the repository, for the pages of the site."""

import re
from typing import Any

_OUTSIDE = re.compile(r"(?<=\]\()(?:\.\./)+(?=[\w.])")


def on_page_markdown(markdown: str, config: Any, **_: object) -> str:
    """Return the text of a page with addresses of the repository for its links to files outside of the site."""
    return _OUTSIDE.sub(f"{config.repo_url}/blob/main/", markdown)
