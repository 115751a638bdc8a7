"""`python -m kernel`: the command line."""

import sys

from kernel.cli import hook_client

if __name__ == "__main__":
    if hook_client.is_event(sys.argv[1:]):
        hook_client.main(sys.argv[2:])
    from kernel.cli.main import main

    sys.exit(main())
