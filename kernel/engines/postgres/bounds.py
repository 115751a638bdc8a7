"""How long a connection waits, and how much it takes at once."""

BUSY_MILLISECONDS = 5000  # for the writer of another process
IDLE_MILLISECONDS = 60_000  # between two statements of a writer: one that stands still gives its lock to others
LARGE_FACTOR = 60  # times the usual time limits, for a call with a transaction of its own
CANCEL_SECONDS = 2.0  # for the database to take note that a statement is to stop
FATE_SECONDS = 30.0  # for what became of a commit that was not answered
FATE_POLL = 0.1
PAGE = 200  # rows of a result that is read as it is needed
MARKS_FORGOTTEN = 64  # old marks of transactions are deleted by one of so many
