"""Regular expressions that are compiled at their first use, so that startup does not compile all of them."""

import re
from typing import Any, cast


class LazyPattern:
    """Compiles on the first access to an attribute of the pattern, and caches that attribute."""

    def __init__(self, source: str, flags: int) -> None:
        self.pattern = source
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        value = getattr(re.compile(self.pattern, self._flags), name)
        setattr(self, name, value)
        return value


def regex(source: str, flags: int = 0) -> re.Pattern[str]:
    """Return `re.compile`, lazily: an error in the pattern is raised at its first use."""
    return cast(re.Pattern[str], LazyPattern(source, flags))
