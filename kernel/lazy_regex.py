"""Regular expressions that are compiled when they are first used, so that a start does not wait for all of them."""

import re
from typing import Any, cast


class LazyPattern:
    """Has what the compiled pattern has; every attribute is looked up there once."""

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
    """What `re.compile` gives, for the patterns of a module; an error in one is raised at its first use."""
    return cast(re.Pattern[str], LazyPattern(source, flags))
