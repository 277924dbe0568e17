"""Fuzz a parser: `python -m tests.fuzzing NAME [--seconds 30] [--keep]`; without NAME, names them.

It begins with the inputs that are kept of it. --keep keeps those found that reach something new.
What breaks it is told with the command that tries it again: `--input HEX`.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path
from typing import Final

import atheris

with atheris.instrument_imports(include=["haptera"], enable_loader_override=False):
    from tests.fuzzing.targets import TARGETS

from tests.fuzzing.corpus import keep, kept

INPUT_BYTES_MAX: Final = 4_096
# A parser that takes longer for one input is broken.
BROKEN: Final = 77
ANSWERED_WITHIN_S: Final = 10
MEMORY_MB_MAX: Final = 2_048


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzzing", description=__doc__)
    parser.add_argument("name", nargs="?", choices=TARGETS)
    parser.add_argument("--seconds", type=int, default=30)
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--input", type=bytes.fromhex)
    given = parser.parse_args()
    if given.name is None:
        print(*TARGETS, sep="\n")  # noqa: T201
        return 0
    if given.input is not None:
        TARGETS[given.name](given.input)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        found, broken = Path(folder, "found"), Path(folder, "broken")
        found.mkdir()
        broken.mkdir()
        for number, one in enumerate(kept(given.name)):
            (found / f"{number}").write_bytes(one)
        code = _fuzz(given.name, given.seconds, found, broken)
        if given.keep:
            keep(given.name, [one.read_bytes() for one in found.iterdir()])
        for one in broken.iterdir():
            command = f"python -m tests.fuzzing {given.name} --input {one.read_bytes().hex()}"
            print(command)  # noqa: T201
        return code


def _fuzz(name: str, seconds: int, found: Path, broken: Path) -> int:
    """The status of a process of its own: libFuzzer ends the one that it is in."""
    options = [
        f"-max_total_time={seconds}",
        f"-max_len={INPUT_BYTES_MAX}",
        f"-timeout={ANSWERED_WITHIN_S}",
        f"-rss_limit_mb={MEMORY_MB_MAX}",
        f"-artifact_prefix={broken}/",
        str(found),
    ]
    child = os.fork()
    if child == 0:
        try:
            atheris.Setup([sys.argv[0], *options], TARGETS[name])
            atheris.Fuzz()
        finally:
            os._exit(BROKEN)  # A parser is broken: no clean-up but the parent's.
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


if __name__ == "__main__":
    sys.exit(main())
