"""A shell that tests type commands to, one after the other, as a person does at a terminal."""

import os
import select
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from haptera.lab.tree import descendants, kill
from tests.cli.rig import LAB_ENDS_S_MAX, environment
from tests.lab.rig import wait_for


class Going(NamedTuple):
    """What goes on until it is interrupted: its process group, and the file that it writes to."""

    group: int
    written: Path


class Shell:
    """One bash: where it has gone and what it has set holds for what is typed next."""

    def __init__(
        self, folder: Path, variables: Mapping[str, str], within: Sequence[str] = ()
    ) -> None:
        programs = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        kept = {name: text for name, text in environment().items() if name != "HAPTERA_JOBS"}
        # What is refused over HTTP is no success to curl either.
        (folder / ".curlrc").write_text("fail-with-body\n")
        self._folder = folder
        self._typed = 0
        self._bash = subprocess.Popen(
            [*within, "bash"],
            cwd=folder,
            env={**kept, "PATH": programs, "HOME": str(folder), "COLUMNS": "100", **variables},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
            start_new_session=True,
        )
        # Each command has a process group of its own then, and heeds interrupts.
        self._say("set -m")

    def type(self, command: str, within_s: float = LAB_ENDS_S_MAX) -> tuple[int, str]:
        """Its exit code, and what it wrote; `exit` ends the shell, and its code is that."""
        written = self._next()
        self._say(f"eval {shlex.quote(command)} {_to(written)}; echo $?")
        answer = self._heard(within_s)
        code = int(answer) if answer else self._bash.wait(LAB_ENDS_S_MAX)
        return code, written.read_text(encoding="utf-8")

    def begin(self, command: str) -> Going:
        """Type what goes on until it is interrupted."""
        written = self._next()
        self._say(f"eval {shlex.quote(command)} {_to(written)} & echo $!")
        return Going(int(self._heard()), written)

    def interrupt(self, going: Going) -> int:
        """Ctrl-C, and the code that it exits with."""
        os.killpg(going.group, signal.SIGINT)
        return self.type(f"wait {going.group}")[0]

    def end(self) -> None:
        """End the shell, and all that it left running."""
        while living := [one for one in descendants([self._bash.pid]) if not one.dead]:
            for one in living:
                kill(one)
        self._bash.kill()
        self._bash.communicate()

    def _next(self) -> Path:
        # A file, not a pipe: what goes on in the background would hold that open.
        self._typed += 1
        written = self._folder / f".written-{self._typed}"
        written.touch()
        return written

    def _say(self, line: str) -> None:
        assert self._bash.stdin is not None
        self._bash.stdin.write(f"{line}\n")

    def _heard(self, within_s: float = LAB_ENDS_S_MAX) -> str:
        assert self._bash.stdout is not None
        heard, _, _ = select.select([self._bash.stdout], [], [], within_s)
        assert heard, "a command does not end"
        return self._bash.stdout.readline()


def _to(written: Path) -> str:
    return f"</dev/null >{shlex.quote(str(written))} 2>&1"


@contextmanager
def shell(
    folder: Path, variables: Mapping[str, str] | None = None, within: Sequence[str] = ()
) -> Iterator[Shell]:
    """A shell there with these variables, started by the command `within`, if there is one."""
    one = Shell(folder, variables or {}, within)
    try:
        yield one
    finally:
        one.end()


def said(going: Going, text: str) -> None:
    """Wait until it has written this."""
    wait_for(lambda: text in going.written.read_text(encoding="utf-8"))
