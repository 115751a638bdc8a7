"""Unknown variables of the environment, which are mostly misspelt settings."""

from collections.abc import Iterator, Set

from kernel.core.config import PREFIX, Config, variables

_LAUNCHER = frozenset({"QUIPU_PROGRAM", "QUIPU_UNPACK_DIR"})  # read by .ci/ship/unpack.sh and set for `setup`
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
        near = _nearest(name, variables() | of_dialects)
        yield f"{name} is no setting" + (f": did you mean {near}?" if near else "")


def _nearest(name: str, candidates: Set[str]) -> str:
    from difflib import get_close_matches

    bare = name.removeprefix(PREFIX)
    if bare in _WITHOUT_PREFIX:
        return bare
    settings = sorted(candidate.removeprefix(PREFIX) for candidate in candidates if candidate.startswith(PREFIX))
    return "".join(PREFIX + near for near in get_close_matches(bare, settings, 1))
