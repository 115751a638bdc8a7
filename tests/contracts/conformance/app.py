"""Serves the fixture dialect over the kernel's own HTTP edge, for the MCP conformance suite."""

import argparse
import tempfile
from pathlib import Path

import uvicorn

from kernel.core.config import Config
from kernel.http.fast_path import protocol
from kernel.server.app import open_kernel
from kernel.server.asgi import Application
from tests.contracts.conformance.fixture import DIALECT


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    port: int = parser.parse_args().port
    with tempfile.TemporaryDirectory() as folder:
        kernel = open_kernel(Config(Path(folder), port=port, model=None), (DIALECT,))
        try:
            app = Application(kernel)
            uvicorn.run(
                app, host="127.0.0.1", port=port, log_level="warning", lifespan="off", http=protocol(app.fast_routes)
            )
        finally:
            kernel.store.close()


if __name__ == "__main__":
    main()
