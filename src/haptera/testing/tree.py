"""Messages between parents of a world, and moving agents: in life, `haptera.daemon.tree`."""

from collections.abc import Callable, Iterable
from itertools import count
from typing import Final

import msgspec

from haptera.core.state.limits import MS
from haptera.core.state.side import PARENT
from haptera.core.sync.peers import LOST_AFTER, Tier
from haptera.core.sync.relay import changes, relayed
from haptera.core.sync.reporter import Reporter
from haptera.model.entity import EntityId
from haptera.model.events import Proposed, ReportAnswer, Reported, Silenced, ToldFromAbove
from haptera.testing.disk import Disk
from haptera.testing.world_process import WorldProcess

# A request over TLS, one way.
ONE_WAY_NS: Final = 10 * MS
# How often, in H, an agent tries whether an earlier parent is there again.
RETURN_EVERY: Final = 5
# The tickets of what a parent below proposes to itself; those of people are smaller.
_TICKETS: Final = 1 << 40


class ParentTraffic:
    """Follows and reports for all parents of a world; `above` says whom one below may follow."""

    def __init__(
        self, parents: Iterable[WorldProcess], above: Callable[[str], tuple[str, ...]]
    ) -> None:
        self._parents = tuple(parents)
        self._above = above
        self._lives: dict[str, tuple[int, Listening, SubtreeFollower | None]] = {}

    def advance(self) -> None:
        """Do what is due, for each that is awake."""
        for process in self._parents:
            if process.awake:
                now = process.clock.now
                _, listening, follower = self._life(process)
                listening.notice(now)
                if follower is not None:
                    follower.work(now)

    def _life(self, process: WorldProcess) -> "tuple[int, Listening, SubtreeFollower | None]":
        """What this life of a process has; another one begins anew."""
        life = self._lives.get(process.name)
        if life is None or life[0] != process.instance:
            follower = None
            if process.name != PARENT:
                follower = SubtreeFollower(process, self._above(process.name), self.take)
                process.heed = follower.changed
            life = self._lives[process.name] = process.instance, Listening(process), follower
        return life

    def take(self, process: WorldProcess, report: Reported) -> tuple[int, ReportAnswer]:
        """A report has arrived."""
        return self._life(process)[1].take(report)


class Listening:
    """Of one life of a parent: which parents below report, each with its log."""

    def __init__(self, process: WorldProcess) -> None:
        self._process = process
        self._logs = count(process.instance)
        self._heard: dict[str, tuple[int, int]] = {}

    def take(self, report: Reported) -> tuple[int, ReportAnswer]:
        """Hand a report on; another log than before asks for all."""
        log = self._heard[report.parent][0] if report.parent in self._heard else next(self._logs)
        self._heard[report.parent] = log, report.arrived_at
        self._process.deliver([report])
        assert self._process.engine is not None
        return log, self._process.engine.requests.answer(report.parent, report.arrived_at)

    def notice(self, now: int) -> None:
        """Who has not reported for too long is silent."""
        late = now - LOST_AFTER * self._process.world.hello_ns // 10
        for parent in [one for one, (_, at) in self._heard.items() if at < late]:
            del self._heard[parent]
            self._process.deliver([Silenced(parent)])


class SubtreeFollower:
    """Of one life of a parent below: it follows the first of those `above` that it reaches."""

    def __init__(
        self,
        process: WorldProcess,
        above: Iterable[str],
        report: Callable[[WorldProcess, Reported], tuple[int, ReportAnswer]],
    ) -> None:
        engine = process.engine
        assert engine is not None
        near = engine.neighbours
        assert near.reports is not None
        self._process, self._engine = process, engine
        self._above = tuple(above)
        self._report = report
        self._reporter = Reporter(engine.table, near.charge, near.reports)
        self._followed: WorldProcess | None = None
        self._log = 0
        self._due_at = 0
        self._ticket: int | None = None
        # Of what was found to be as it should: the store above, its revision and ours.
        self._seen: tuple[Disk | None, int, int] = (None, 0, 0)
        self._tickets = count(_TICKETS)

    def changed(self, entities: Iterable[EntityId]) -> None:
        """What is known of these is another than before."""
        self._reporter.changed(entities)
        self._due_at = 0

    def work(self, now: int) -> None:
        """Do what is due: propose what is desired above, and report."""
        above = self._reached()
        if above is None:
            self._reporter.repeat()
            self._followed = None
            return
        if above is not self._followed:
            self._followed, self._due_at = above, 0
            self._reporter.repeat()
        self._relay(above)
        if now >= self._due_at or self._engine.safety.exchange.asks.lacks_permits(now):
            self._due_at = now + self._process.world.hello_ns
            updates, nodes = self._reporter.draft(now)
            notes = self._engine.requests.notes(now)
            report = Reported(self._process.name, updates, nodes, now, notes)
            self._process.world.clock.after(ONE_WAY_NS, self._arrive, above, report)

    def _reached(self) -> WorldProcess | None:
        """The parent that is followed, as long as it answers; else another one."""
        world = self._process.world
        found = [one for name in self._above if (one := world.process(name)) is not None]
        found.sort(key=lambda one: one is not self._followed)
        return next((one for one in found if _reaches(self._process, one)), None)

    def _relay(self, above: WorldProcess) -> None:
        if self._ticket is not None and self._ticket not in self._process.replies:
            return
        seen = above.disk, above.disk.revision, self._engine.table.revision
        if seen == self._seen:
            return
        wanted = relayed(above.disk.entities.values(), self._process.name)
        made = changes(wanted, self._engine.table.stored())
        if not made:
            self._seen = seen
        else:
            self._ticket = next(self._tickets)
            self._process.deliver([Proposed(self._ticket, made, self._engine.table.revision)])

    def _arrive(self, above: WorldProcess, report: Reported) -> None:
        """Until now the report has the time at which it was sent, by the sender's clock."""
        if not _reaches(self._process, above):
            self._reporter.repeat()
            return
        arrived = msgspec.structs.replace(report, arrived_at=above.clock.now)
        log, answer = self._report(above, arrived)
        told = ToldFromAbove(answer, report.arrived_at)
        self._process.world.clock.after(ONE_WAY_NS, self._heed, above, told)
        if log != self._log:
            self._log, self._due_at = log, 0
            self._reporter.repeat()

    def _heed(self, above: WorldProcess, told: ToldFromAbove) -> None:
        if _reaches(self._process, above) and self._process.engine is self._engine:
            self._process.deliver([told])


class Moving:
    """Of one agent: it goes to the next parent on its list, and back when it can."""

    def __init__(self, process: WorldProcess, parents: tuple[str, ...]) -> None:
        self._process, self._parents = process, parents
        self._at = self._hellos = 0

    def work(self) -> None:
        """Move where it is due; called once each H."""
        process, world = self._process, self._process.world
        self._hellos += 1
        if not process.awake or process.engine is None:
            return
        peer = process.engine.neighbours.parent
        if peer is not None and peer.tier is Tier.LOST:
            self._go((self._at + 1) % len(self._parents))
        elif self._hellos % RETURN_EVERY == 0:
            earlier = [world.process(name) for name in self._parents[: self._at]]
            for at, one in enumerate(earlier):
                if one is not None and _reaches(process, one):
                    self._go(at)
                    return

    def _go(self, at: int) -> None:
        self._at = at
        self._process.move(self._parents[at])


def _reaches(process: WorldProcess, other: WorldProcess) -> bool:
    cut = frozenset((process.name, other.name)) in process.world.network.cut
    return process.awake and other.awake and not cut
