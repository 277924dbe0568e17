"""What daemons import when they start: an agent runs on every node, and has to stay small.

A lab forks all of them from a process that has imported what they import; numpy starts threads,
and a process with threads cannot be forked.
"""

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("daemon", "heavy"),
    [
        ("haptera.daemon.agent", {"numpy", "starlette", "uvicorn", "rich", "prometheus_client"}),
        ("haptera.daemon.parent", {"numpy"}),
    ],
)
def test_a_daemon_starts_without(daemon: str, heavy: set[str]) -> None:
    loads = f"import sys, {daemon}\nprint(sorted({heavy} & set(sys.modules)))"
    ended = subprocess.run([sys.executable, "-c", loads], capture_output=True, text=True)
    assert (ended.stdout, ended.stderr) == ("[]\n", "")
