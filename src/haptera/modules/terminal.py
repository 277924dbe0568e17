"""Consoles that a program brings to a terminal: what comes after its own words."""

import asyncio
import os
import tty
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Final

from haptera.modules.console import READ_BYTES, ConsoleError, ConsoleRecord, record_stream
from haptera.sdk.commands import Program

# What of these first bytes is the console's; None where they are the program's own words so far.
Opened = Callable[[bytes], bytes | None]

# How long the program has to close its session.
CLOSE_S_MAX: Final = 1.5
_WORDS_MAX: Final = 300


async def record_terminal(program: Program, opened: Opened, record: ConsoleRecord) -> None:
    """Record one session of a program, from where it has `opened` until it ends.

    Raises:
        HapteraError: the program is not installed.
        ConsoleError: it ended before that, with its words.
        OSError: the record cannot be written.
    """
    # The program wants a terminal, and closes its session when that hangs up. Nothing is ever
    # written there: what records does not type.
    ours, theirs = os.openpty()
    with os.fdopen(ours, "rb", 0) as terminal:
        try:
            tty.setraw(theirs)
            at_it = replace(program, given=theirs, output=theirs, errors=theirs)
            running = await at_it.start()
        finally:
            os.close(theirs)
        sent = asyncio.StreamReader()
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(sent), terminal
        )
        try:
            first = await _opened(sent, opened)
            await record_stream(sent, record, first)
        finally:
            transport.close()
            terminal.close()
            with suppress(TimeoutError):  # It is ended all the same.
                await running.ends(CLOSE_S_MAX)


async def _opened(sent: asyncio.StreamReader, opened: Opened) -> bytes:
    words = b""
    while (first := opened(words)) is None:
        data = b""
        # Its terminal ends with an error once the program has left it.
        with suppress(OSError):
            data = await sent.read(READ_BYTES)
        words += data
        if not data or len(words) > READ_BYTES:
            said = " ".join(words[:_WORDS_MAX].decode(errors="replace").split()) or "no words"
            raise ConsoleError(said)
    return first
