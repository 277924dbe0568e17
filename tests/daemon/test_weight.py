"""What is imported at a start: an agent runs on every node, and a command should not be waited for.

What asks a parent is for commands that ask.
"""

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("program", "heavy"),
    [
        ("haptera.daemon.agent", {"starlette", "uvicorn", "rich", "prometheus_client"}),
        ("haptera.cli.main", {"asyncio", "h11", "rich", "ssl"}),
    ],
)
def test_a_program_starts_without(program: str, heavy: set[str]) -> None:
    loads = f"import sys, {program}\nprint(sorted({heavy} & set(sys.modules)))"
    ended = subprocess.run([sys.executable, "-c", loads], capture_output=True, text=True)
    assert (ended.stdout, ended.stderr) == ("[]\n", "")
