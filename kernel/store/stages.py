"""The stages of a call that is traced: in the queue, embedding, at work, committing."""

from contextvars import ContextVar

from kernel.core.ids import now_ns

# Of the call that is being submitted, for the jobs it queues; None of a call that is not traced.
current_stages: ContextVar["Stages | None"] = ContextVar("current_stages", default=None)


class Stages(list[tuple[str, int]]):
    """The name of each stage so far, and when it ended, in nanoseconds since 1970; each begins where the last ended."""

    def end(self, name: str) -> None:
        self.append((name, now_ns()))
