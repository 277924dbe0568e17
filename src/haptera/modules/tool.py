"""Programs that modules of power run: one at a time for a machine, in a bounded time."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from subprocess import DEVNULL, PIPE
from typing import Final

from haptera.sdk import HapteraError

OUTPUT_CHARACTERS_MAX: Final = 64 << 10
# The kept tail of a program's output.
OUTPUT_BYTES_MAX: Final = 4 * OUTPUT_CHARACTERS_MAX
PIECE_BYTES: Final = 64 << 10


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a program came to: its exit status, and what it printed."""

    status: int
    out: str
    errors: str

    @property
    def last_error(self) -> str:
        lines = (line.strip() for line in reversed(self.errors.splitlines()))
        return next((line for line in lines if line), "no words")


async def start(
    words: Sequence[str],
    environment: Mapping[str, str],
    *,
    stdin: int = DEVNULL,
    output: int = PIPE,
) -> asyncio.subprocess.Process:
    """Start the program that these words name; of our environment it has the search path.

    Raises:
        HapteraError: it is not installed, or may not be run.
    """
    own = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"}
    try:
        return await asyncio.create_subprocess_exec(
            *words, stdin=stdin, stdout=output, stderr=output, env={**own, **environment}
        )
    except FileNotFoundError:
        do = "install its package on the parent"
        raise HapteraError(f"{words[0]} is not installed", do=do) from None
    except PermissionError:
        do = "let this module's user run it"
        raise HapteraError(f"{words[0]} may not be run", do=do) from None


async def run(
    words: Sequence[str],
    environment: Mapping[str, str],
    *,
    within_s: float,
    given: str | None = None,
) -> ToolResult:
    """Run a program to its end; `given` is what it reads.

    Raises:
        HapteraError: it cannot be started.
        TimeoutError: it has not ended in time, and was killed.
    """
    stdin = DEVNULL if given is None else PIPE
    process = await start(words, environment, stdin=stdin)
    try:
        async with asyncio.timeout(within_s):
            out, errors, _ = await asyncio.gather(
                _last(process.stdout), _last(process.stderr), _feed(process.stdin, given)
            )
            await process.wait()
    finally:
        # Not left behind where this call is cut short.
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode is not None
    return ToolResult(process.returncode, _text(out), _text(errors))


async def _last(printed: asyncio.StreamReader | None) -> bytes:
    """The end of a program's output, however much it prints."""
    assert printed is not None
    kept = b""
    while piece := await printed.read(PIECE_BYTES):
        kept = (kept + piece)[-OUTPUT_BYTES_MAX:]
    return kept


async def _feed(stdin: asyncio.StreamWriter | None, given: str | None) -> None:
    if stdin is None or given is None:
        return
    with suppress(BrokenPipeError, ConnectionResetError):  # It does not read all of it.
        stdin.write(given.encode())
        await stdin.drain()
    stdin.close()


def _text(output: bytes) -> str:
    return output.decode(errors="replace")[-OUTPUT_CHARACTERS_MAX:]
