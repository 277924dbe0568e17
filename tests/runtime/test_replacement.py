"""A module replaced again and again, with steps in flight: none is lost, none done twice."""

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from haptera.core.engine import Engine
from haptera.core.modules.catalog import Catalog
from haptera.core.state.limits import S
from haptera.core.state.side import Side
from haptera.kinds import KINDS
from haptera.model.answers.views import Condition
from haptera.model.changes import Change, Declare, SetDesired, Stored
from haptera.model.effects import Call, Cancel, Effect, Start, Stop, Write
from haptera.model.entity import EntityId, node_id
from haptera.model.events import Event, Proposed, Ready, Written
from haptera.model.parts import Context
from haptera.runtime import clock
from haptera.runtime.driver import Driver
from haptera.runtime.processes.forking import PRELOAD, LoopZygote, exec_zygote
from haptera.runtime.processes.process import ModuleProcesses
from tests.kills.processes import names_below
from tests.lab.rig import until
from tests.runtime.stepper import module

pytestmark = [pytest.mark.net, pytest.mark.slow]

MODULE = EntityId("module", "stepper", None)
SWITCHES = 50
NODES_A_SWITCH = 4
WAIT_S = 60


class Cluster:
    """A parent's engine over real processes; what it writes is durable at once."""

    def __init__(self, run_dir: Path) -> None:
        side = Side(Context.PARENT, None, 1, "boot", 5 * S)
        stored = Stored(1, 0, [], [], {})
        catalog = Catalog(KINDS, [module.manifest()])
        self.engine = Engine(side, catalog, stored, 0, clock.now_ns())
        self.driver = Driver(self.engine)
        self.revision = 0
        self.zygote = LoopZygote(lambda: exec_zygote(PRELOAD))
        self.processes = ModuleProcesses(
            self.zygote,
            self._hear,
            places={"stepper": "tests.runtime.stepper:module"},
            run_dir=run_dir,
            log_dir=run_dir / "log",
        )
        self._steps = run_dir / "steps"
        self._turned = asyncio.Event()
        self.in_flight = self.ready = 0

    def desire(self, number: int) -> list[EntityId]:
        """Other settings of the module, and new nodes to switch on, all at once."""
        self._tell("desired", number)
        nodes = [node_id(f"n{number}-{one}") for one in range(NODES_A_SWITCH)]
        changes: list[Change] = [Declare(node, {}, "site") for node in nodes]
        changes += [SetDesired(node, "power", "on", "site") for node in nodes]
        changes.append(SetDesired(MODULE, "settings", f'{{"number": {number}}}', "site"))
        self.driver.deliver([Proposed(1, tuple(changes))])
        return nodes

    async def converges(self, entities: list[EntityId]) -> None:
        async with asyncio.timeout(WAIT_S):
            while not all(self._is_there(entity) for entity in entities):
                self._turned.clear()
                await self._turned.wait()

    def _is_there(self, entity: EntityId) -> bool:
        row = self.engine.table.get(entity)
        return row is not None and row.stance.condition is Condition.CONVERGED

    def _hear(self, events: list[Event]) -> None:
        """What modules say; counts who is ready, and how many steps are in flight at that time."""
        for event in events:
            if isinstance(event, Ready):
                self.ready += 1
                text = self._steps.read_text() if self._steps.exists() else ""
                self.in_flight += text.count("begins") - text.count("ends")
                self._tell("ready", self.ready)
        self.driver.deliver(events)

    def _tell(self, name: str, number: int) -> None:
        """What the module's steps go by."""
        draft = self._steps.with_name("draft")
        draft.write_text(str(number))
        draft.replace(self._steps.with_name(name))

    def perform(self, effects: list[Effect]) -> None:
        self.engine.check()
        self._turned.set()
        for effect in effects:
            match effect:
                case Call():
                    self.processes.call(effect)
                case Cancel():
                    self.processes.cancel(effect)
                case Start():
                    self.processes.start(effect)
                case Stop():
                    self.processes.stop(effect)
                case Write(ticket, changes):
                    self.revision += len(changes)
                    self.driver.deliver([Written(ticket, self.revision)])
                case _:
                    pass

    def close(self) -> None:
        self.processes.close()
        self.zygote.close()


async def old_processes_end() -> None:
    await until(lambda: names_below().count("module stepper") <= 2)


async def test_each_step_in_flight_at_any_of_50_switches_is_done_exactly_once(
    tmp_path: Path,
) -> None:
    cluster = Cluster(tmp_path)
    running = asyncio.create_task(cluster.driver.run(cluster.perform))
    try:
        for number in range(1, SWITCHES + 1):
            await cluster.converges([*cluster.desire(number), MODULE])
        await old_processes_end()
        assert [row.attempts.error for row in cluster.engine.table if row.attempts.error] == []
        assert cluster.ready >= SWITCHES, "each takes a process of its own"
        assert cluster.in_flight > SWITCHES, "too few to prove anything"
    finally:
        running.cancel()
        cluster.close()

    lines = [line.split() for line in (tmp_path / "steps").read_text().splitlines()]
    begun = Counter(intent for what, intent, *_ in lines if what == "begins")
    ended = Counter(intent for what, intent, *_ in lines if what == "ends")
    assert begun == ended
    assert set(begun.values()) == {1}
