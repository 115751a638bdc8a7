"""Unknown variables of the environment, which are mostly misspelt settings."""

from collections.abc import Iterator, Set

from kernel.core.config import PREFIX, Config, variables
from kernel.core.text import did_you_mean

_LAUNCHER = frozenset({"QUIPU_PROGRAM", "QUIPU_UNPACK_DIR"})  # read by .ci/ship/launcher.c and set for `setup`
_OF_HOOKS = frozenset({"QUIPU_HOOKS", "QUIPU_HOOKS_OFF", "QUIPU_KEY", "QUIPU_URL"})  # read by hook_client.py
_WITHOUT_PREFIX = frozenset({"HOST", "PORT"})


def unknown_variables(config: Config, also: str | None = None) -> Iterator[str]:
    """Yield a sentence for each variable that begins like a setting and is none; `also` names a used variable."""
    names = {name for name, value in config.environment.items() if name.startswith(PREFIX) and value}
    unknown = names - variables() - _LAUNCHER - _OF_HOOKS - {also}
    if not unknown:
        return
    # The dialects' settings are imported only if a variable may be such a setting, for a quick start.
    from kernel.server import app

    of_dialects = {setting.name for dialect in app.DIALECTS for setting in dialect.settings}
    for name in sorted(unknown - of_dialects):
        yield f"{name} is no setting{_hint(name, variables() | of_dialects)}"


def _hint(name: str, settings: Set[str]) -> str:
    bare = name.removeprefix(PREFIX)
    if bare in _WITHOUT_PREFIX:
        return f": did you mean {bare}?"
    names = sorted(setting.removeprefix(PREFIX) for setting in settings if setting.startswith(PREFIX))
    return did_you_mean(bare, names, PREFIX)
