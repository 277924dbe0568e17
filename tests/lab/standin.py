"""Tiny processes that stand in for the real agent and parent."""

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

# Those between have ended before it says that it is there.
DAEMON = (
    "import os, signal, sys, time\n"
    "def leave():\n"
    "    parent = os.getpid()\n"
    "    if os.fork(): os._exit(0)\n"
    "    while os.getppid() == parent: time.sleep(0.001)\n"
    "leave()\n"
    "os.setsid()\n"
    "leave()\n"
    "open(sys.argv[1] + '.new', 'w').write(f'{os.getpid()}\\n')\n"
    "os.replace(sys.argv[1] + '.new', sys.argv[1])\n"
    "signal.pause()\n"
)


def agent(arguments: dict[str, Any], descriptors: list[int]) -> None:
    """Note what it was given, leave a daemon behind that escapes its session, and wait."""
    directory = Path(arguments["directory"])
    secret = None
    if "boot" in arguments:
        secret = os.read(descriptors[arguments["boot"]], 1 << 16).decode()
    environment = Path("/proc/self/environ").read_bytes().decode()
    seen = {
        "secret": secret,
        "environ": environment,
        "cmdline": Path("/proc/self/cmdline").read_bytes().decode(),
    }
    write(directory / f"seen-{os.getpid()}", json.dumps(seen))
    if not (directory / "daemon").exists():
        os.spawnv(
            os.P_WAIT, sys.executable, [sys.executable, "-c", DAEMON, str(directory / "daemon")]
        )
    signal.pause()


def parent(arguments: dict[str, Any], descriptors: list[int]) -> None:
    """Note what it was given, and wait."""
    write(
        Path(arguments["directory"]) / "seen",
        json.dumps({"arguments": arguments, "fds": len(descriptors)}),
    )
    signal.pause()


def write(path: Path, text: str) -> None:
    draft = path.with_name(path.name + ".new")
    draft.write_text(text)
    draft.replace(path)
