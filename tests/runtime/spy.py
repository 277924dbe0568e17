"""`python -m tests.runtime.spy CONFINEMENT PATH...`: confined so, what of these it can reach."""

import json
import os
import signal
import sys
from pathlib import Path

import msgspec

from haptera.runtime.processes.confinement import Confinement, confine_to


def tried(deed):
    try:
        deed()
    except OSError as error:
        return type(error).__name__
    return "done"


def memory_of_the_parent():
    os.close(os.open(f"/proc/{os.getppid()}/mem", os.O_RDONLY))


def privileges():
    status = Path("/proc/self/status").read_bytes().decode()
    return dict(line.split(":\t") for line in status.splitlines())["NoNewPrivs"]


if __name__ == "__main__":
    wanted = msgspec.json.decode(sys.argv[1], type=Confinement)
    paths = [Path(one) for one in sys.argv[2:]]
    confine_to(wanted)
    own = Path(wanted.folder) / "mine"
    told = {
        "own": tried(lambda: own.write_text("x")),
        "kill": tried(lambda: os.kill(os.getppid(), signal.SIGURG)),
        "trace": tried(memory_of_the_parent),
        "privileges": privileges(),
        "uid": os.getuid(),
        "read": {one.name: tried(one.read_bytes) for one in paths},
        "replaced": {one.name: tried(one.unlink) for one in paths},
        "listed": tried(lambda: os.listdir(paths[0].parent)),
        "made": tried(lambda: (paths[0].parent / "new").write_text("x")),
    }
    sys.stdout.write(json.dumps(told))
