"""Recorders of consoles: one session after the other, the next at once where a machine starts."""

import asyncio
from pathlib import Path

import pytest

from haptera.modules import recorders
from haptera.modules.console import ConsoleError, ConsoleRecord
from haptera.modules.recorders import Consoles

WITHIN_S = 60.0


class Computer:
    """Each session that somebody begins with it; there is nothing to record while it is off."""

    def __init__(self) -> None:
        self.sessions: asyncio.Queue[ConsoleRecord] = asyncio.Queue()

    async def session(self, record: ConsoleRecord) -> None:
        self.sessions.put_nowait(record)
        raise ConsoleError("it is off")

    async def begun(self) -> ConsoleRecord:
        async with asyncio.timeout(WITHIN_S):
            return await self.sessions.get()


async def test_a_machine_that_starts_is_recorded_at_once_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorders, "AGAIN_S", 86_400.0)

    starts, stays = Computer(), Computer()
    async with asyncio.TaskGroup() as tasks:
        consoles = Consoles(tmp_path, tasks)
        consoles.keep("n01", "a", starts.session)
        consoles.keep("n02", "b", stays.session)
        first = await starts.begun()
        await stays.begun()
        consoles.begin("n01")
        consoles.begin("n09")
        assert await starts.begun() is first
        assert stays.sessions.empty()
        consoles.end()


async def test_a_node_with_another_address_is_recorded_there_and_no_longer_here(
    tmp_path: Path,
) -> None:
    old, new = Computer(), Computer()
    async with asyncio.TaskGroup() as tasks:
        consoles = Consoles(tmp_path, tasks)
        consoles.keep("n01", "a", old.session)
        await old.begun()
        consoles.keep("n01", "b", new.session)
        await new.begun()
        consoles.begin("n01")
        await new.begun()
        assert old.sessions.empty()
        consoles.end()
