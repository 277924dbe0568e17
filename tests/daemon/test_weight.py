"""What an agent's process imports: it runs on every node, and has to stay small."""

import subprocess
import sys

HEAVY = ("numpy", "starlette", "uvicorn", "rich", "prometheus_client")


def test_an_agent_imports_neither_numpy_nor_the_web_stack() -> None:
    loads = f"import sys, haptera.daemon.agent\nprint(sorted(set({HEAVY}) & set(sys.modules)))"
    ended = subprocess.run([sys.executable, "-c", loads], capture_output=True, text=True)
    assert (ended.stdout, ended.stderr) == ("[]\n", "")
