"""Calls, values and checks that several tests of console share."""

import json

from tests.security.authenticated_server import House


def memories_of(server: House) -> set[str]:
    """The ids of all memories that anything ever happened to."""
    seen: set[str] = set()
    below: int | None = 2**62
    while below is not None:
        found = json.loads(server.ask("GET", f"/ui/timeline.json?before={below}").body)
        seen |= {event["id"] for event in found["events"]}
        below = found["next"]
    return seen
