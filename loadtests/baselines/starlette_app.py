"""A Starlette application with one route on uvicorn: what starting a server costs at least."""

import sys

import uvicorn
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

if __name__ == "__main__":
    uvicorn.run(
        Starlette(routes=[Route("/healthz", PlainTextResponse("ok"))]),
        host="127.0.0.1",
        port=int(sys.argv[-1]),
        loop="uvloop",
        http="httptools",
        ws="none",
        lifespan="off",
        access_log=False,
        log_level="warning",
    )
