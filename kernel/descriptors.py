"""How many connections the operating system lets a process hold."""

import sys

_OWN = 128  # files, threads' pipes, listeners
_ENOUGH = 1 << 20


def room(wanted: int) -> int:
    """At most `wanted` connections: as many as there are descriptors for, after asking for all we may have."""
    if sys.platform == "win32":
        return wanted
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _ENOUGH if hard == resource.RLIM_INFINITY else hard
    if soft != resource.RLIM_INFINITY and soft < min(most, wanted + _OWN):
        soft = min(most, wanted + _OWN)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return wanted if soft == resource.RLIM_INFINITY else max(1, min(wanted, soft - _OWN))
