"""The installed command: in the wheel this file is `quipu_memory/__main__.py`, next to `_app` with the code."""

import os
import sys

TYPE_CHECKING = False  # `typing` is slow to import
_PACKAGES = {"kernel", "handlers"}


def main() -> None:
    """Run the command line with the packages of the wheel first on `sys.path`, before others of the same name."""
    if sys.argv[1:2] == ["hook"]:
        if TYPE_CHECKING:
            from kernel.cli import hook_client
        else:
            from quipu_memory import hook_client  # beside this file in the wheel

        if hook_client.is_event(sys.argv[1:]):
            hook_client.main(sys.argv[2:])

    # A .pth file or sitecustomize may have imported other packages of these names.
    for name in [name for name in sys.modules if name.partition(".")[0] in _PACKAGES]:
        del sys.modules[name]
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "_app"))
    from kernel.cli.entry import main as run

    sys.exit(run())


if __name__ == "__main__":
    main()
