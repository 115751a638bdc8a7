"""Calls, values and checks that several tests of power cut share."""

import subprocess


def run(*command: str) -> None:
    """Runs a program; raises its complaint."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode:
        raise OSError(f"{command[0]}: {done.stderr.strip()}")
