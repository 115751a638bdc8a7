"""The cost of observability: processor time of one tools/call with metrics, a log line per call, traces, and none.

The plain server runs twice; the difference of the two is the noise of the benchmark. Every reply is checked.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from statistics import median

from loadtests.benchmarks import call_overhead
from loadtests.benchmarks.call_overhead import Run
from loadtests.lib.servers import Server, budget, budgets, finish, machine, options, paired, rounds, served, table

_OFF, _AGAIN, _METRICS, _CALLS, _TRACES = "none", "none, again", "metrics", "metrics and call log", "traces"
_SIDES = {_OFF: (), _AGAIN: (), _METRICS: ("--metrics",), _CALLS: ("--metrics", "--log_calls"), _TRACES: ("--traces",)}
_TEXTS = 256
_CLOSED_PORT_EXPORTER = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "OTEL_BSP_EXPORT_TIMEOUT": "100"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; return 1 if a reply was wrong."""
    chosen = options(
        __doc__,
        arguments,
        rounds=15,
        callers={"type": int, "default": 16},
        seconds={"type": float, "default": 1.0, "help": "length of one run"},
    )
    seconds = 0.2 if chosen.quick else chosen.seconds
    requests = [call_overhead.request("modern", number) for number in range(_TEXTS)]
    machine()

    def run(server: Server) -> Run:
        return call_overhead.run(server, requests, chosen.callers, seconds)

    with ExitStack() as stack:
        servers = {
            name: stack.enter_context(
                served("loadtests.baselines.echo_servers", "quipu", *more, environ=_CLOSED_PORT_EXPORTER)
            )
            for name, more in _SIDES.items()
        }
        for server in servers.values():
            server.wait("/mcp", status=0)
            run(server)
        found = rounds(chosen.rounds, {name: lambda server=server: run(server) for name, server in servers.items()})
    _show(found, chosen.rounds)
    return finish([run.seen.complaint for side in found.values() for run in side if run.seen.errors])


def _show(found: dict[str, list[Run]], count: int) -> None:
    cpu = {name: [run.cpu for run in runs] for name, runs in found.items()}
    over = {name: paired(side, cpu[_OFF]) for name, side in cpu.items()}
    table(
        f"an echo over MCP, {count} rounds",
        ("enabled", "least cpu us", "median", "over none", "least over least"),
        [
            (name, min(side), median(side), f"{over[name]:.3f}", f"{min(side) / min(cpu[_OFF]):.3f}")
            for name, side in cpu.items()
        ],
    )
    budgets([budget("metrics over none", over[_METRICS], 1.03)])


if __name__ == "__main__":
    raise SystemExit(main())
