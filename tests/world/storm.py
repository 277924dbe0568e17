"""A cluster on which all goes wrong at once, by seed; the oracle judges what comes of it."""

from collections.abc import Callable
from random import Random

from haptera.core.safety.tenure import Tenure
from haptera.core.state.limits import S
from haptera.core.views.query import view
from haptera.model.answers.views import Condition
from haptera.model.changes import Change, Declare, SetDesired, Undeclare, UnsetDesired
from haptera.model.entity import EntityId, node_id
from haptera.modules import load
from haptera.planner.search.search_budget import WORK_MAX
from haptera.testing.machine import Machine, Trouble
from haptera.testing.network import NetworkFaults
from haptera.testing.world import World
from haptera.testing.world_process import WorldProcess
from tests.world.evidence import Told
from tests.world.history import CALM, web
from tests.world.oracle import judge

NODES = ("n01", "n02")
MODULES = ("labnode", "service", "jobs")
# Turns that a process may take in a simulated second, from what is sent, asked and answered in it.
TURNS_A_SECOND_MAX = 250
# A module that died too often is left alone for ten minutes, a step that was given up for 30.
CALM_S, SETTLE_S, GIVEN_UP_S = 15, 700, 1_800
JOB_S_MAX = 40
# The ticket of what a root acknowledged and its standby had not heard of: nobody has it any more.
LOST = -1
PAUSES_S = (1, 3, 10, 90)
# How long a lease is, and how much later than the root asked its store took a request.
LEASE_NS, LEASE_LATE_S = 15 * S, (0, 0, 0.4)

Key = tuple[EntityId, str]


class Storm:
    """One seed's mix of faults, and the history that it makes."""

    listen_s = 1
    sort: type[World] = World

    def __init__(self, seed: int, work_max: int = WORK_MAX) -> None:
        self.manifests = [load(name).manifest() for name in MODULES]
        self._begin(self.sort(seed, NODES, self.manifests, CALM, work_max))

    def _begin(self, world: World) -> None:
        self.world = world
        self.rng = self.world.clock.rng("storm")
        self.asked: list[tuple[int, WorldProcess, tuple[Change, ...]]] = []
        self.told: list[Told] = []
        self.turns_max = 0
        for name in world.machines:
            self._ask(self._declaring(name))
        self._run(self.rng.random() * 20)
        self._brew()

    def unfold(self, steps: int) -> None:
        for _ in range(steps):
            self._run(self.rng.random() * self.rng.choice((0.2, 3, 3, 12)))
            self._happen(self.rng.choice([*self.world.machines]))

    def calm_down(self) -> bool:
        """No fault from now on, and all is wished for again: tells whether it comes about."""
        world = self.world
        world.network.faults, world.network.cut = CALM, set()
        world.workers_killed = 0.0
        for machine in world.machines.values():
            machine.trouble = Trouble()
        for disk in world.disks:
            disk.refusing, disk.slow_ms, disk.full = 0.0, 20, False
        self._run(max(PAUSES_S) + 5)
        for name in world.machines:
            self._ask(self._declaring(name))
        self._run(CALM_S)
        return world.settle(SETTLE_S) or (self._gives_up() and world.settle(GIVEN_UP_S))

    def _gives_up(self) -> bool:
        """Whether something is left alone because it failed too often."""
        engine = self.world.parent.engine
        return engine is not None and any(
            row.stance.condition is Condition.STUCK for row in engine.table
        )

    def _run(self, seconds: float) -> None:
        """Let time pass, count turns, and keep what people would be told."""
        end = self.world.clock.now + int(seconds * S)
        while self.world.clock.now < end:
            processes = [*self.world.parents, *self.world.agents.values()]
            before = [one.turns for one in processes]
            self.world.clock.run_until(min(end, self.world.clock.now + self.listen_s * S))
            for process, turns in zip(processes, before, strict=True):
                self.turns_max = max(self.turns_max, process.turns - turns)
            self._listen()

    def _listen(self) -> None:
        now = self.world.clock.now
        for one in (*self.world.parents, *self.world.agents.values()):
            if one.awake and one.engine is not None:
                views = [view(row, one.clock.now) for row in one.engine.table]
                self.told += [Told(now, one.name, one.instance, told) for told in views]

    def _brew(self) -> None:
        """Each seed its own mix, so that no fault hides another in all of them."""
        rng, world = self.rng, self.world
        world.network.faults = NetworkFaults(
            some(rng, 0.3), some(rng, 0.1), some(rng, 0.1)
        )  # loss, copies, late
        for machine in world.machines.values():
            machine.trouble = Trouble(
                silent=some(rng, 0.2),
                fatal=some(rng, 0.1),
                idle=some(rng, 0.5),
                slow=some(rng, 0.3),
                failing=some(rng, 0.3),
                lying=some(rng, 0.05),
                stale=some(rng, 0.8),
                crowded=some(rng, 0.8),
            )
        world.parent.disk.refusing = some(rng, 0.3)
        world.parent.disk.slow_ms = rng.choice((20, 20, 500, 3_000))
        self.agents_refusing = some(rng, 0.3)
        self.happenings = rng.sample(self._possible(), rng.randrange(4, 15))

    def _happen(self, name: str) -> None:
        self.rng.choice(self.happenings)(name)

    def _possible(self) -> tuple[Callable[[str], None], ...]:
        return (
            self._kill_parent,
            self._kill_agent,
            self._lose_journal,
            self._cut_power,
            self._end_services,
            self._kill_modules,
            self._cut_off,
            self._pause_parent,
            self._pause_agent,
            self._declare_anew,
            self._begin_job,
            self._wish_off,
            self._wish_run,
            self._wish_port,
        )

    def _kill_parent(self, _: str) -> None:
        if self.world.parent.engine is not None:
            self.world.crash(self.world.parent)

    def _kill_agent(self, name: str) -> None:
        agent = self.world.agents.get(name)
        if agent is not None and agent.engine is not None:
            self.world.crash(agent)

    def _lose_journal(self, name: str) -> None:
        if (agent := self.world.agents.get(name)) is not None:
            agent.disk.refusing = self.agents_refusing
            agent.disk.lose()
            self._kill_agent(name)

    def _cut_power(self, name: str) -> None:
        self.world.machines[name].cut()

    def _end_services(self, name: str) -> None:
        self.world.clock.happened["services ended"] += len(self.world.machines[name].services)
        self.world.machines[name].services.clear()

    def _kill_modules(self, name: str) -> None:
        self.world.parent.lose_module("labnode")
        if (agent := self.world.agents.get(name)) is not None:
            agent.lose_module("service")

    def _cut_off(self, name: str) -> None:
        pair = frozenset(("parent", name))
        self.world.network.cut.add(pair)
        self.world.clock.happened["link cut"] += 1
        delay_ns = int(self.rng.random() * 8 * S)
        self.world.clock.after(delay_ns, self.world.network.cut.discard, pair)

    def _lose_lease(self) -> int:
        """The root cannot renew its lease any more; tells when another may have it.

        The root counts it on its own clock, from when it asked for the last time; the store from
        when it took that.
        """
        world, root, tenure = self.world, self.world.parent, Tenure()
        tenure.renewed(root.clock.now, LEASE_NS)
        world.clock.after(root.clock.reaches(tenure.until) - world.clock.now, root.crash)
        world.clock.happened["lease lost"] += 1
        free_in_ns = int(self.rng.choice(LEASE_LATE_S) * S) + LEASE_NS
        world.clock.after(free_in_ns, self._check_ended, root)
        return world.clock.now + free_in_ns

    def _check_ended(self, root: WorldProcess) -> None:
        assert root.engine is None, "acts though another may hold its lease"

    def _pause_parent(self, _: str) -> None:
        self.world.parent.pause(self.rng.choice(PAUSES_S))

    def _pause_agent(self, name: str) -> None:
        if (agent := self.world.agents.get(name)) is not None:
            agent.pause(self.rng.choice(PAUSES_S))

    def _declare_anew(self, name: str) -> None:
        self._ask(self._undeclaring(name))
        if self.rng.random() < 0.7:
            self._ask(self._declaring(name))

    def _begin_job(self, name: str) -> None:
        machine = self.world.machines[name]
        delay_ns = int(self.rng.random() * JOB_S_MAX * S)
        if machine.start_job():
            self.world.clock.happened["job began"] += 1
            self.world.clock.after(delay_ns, self._end_job, machine, machine.cuts)

    def _end_job(self, machine: Machine, cuts: int) -> None:
        if machine.cuts == cuts:
            machine.end_job()

    def _wish_off(self, name: str) -> None:
        node = node_id(name)
        self._ask((SetDesired(node, "power", "off", "site"), UnsetDesired(node, "agent")))

    def _wish_run(self, name: str) -> None:
        run = self.rng.choice(("stopped", "running"))
        self._ask((SetDesired(web(name), "run", run, "site"),))

    def _wish_port(self, name: str) -> None:
        self._ask((SetDesired(web(name), "port", self.rng.randrange(1000, 9999), "site"),))

    def _ask(self, changes: tuple[Change, ...]) -> None:
        if self.world.parent.engine is not None:
            self.world.clock.happened["wish asked"] += 1
            ticket = self.world.propose(changes)
            self.asked.append((ticket, self.world.parent, changes))

    def _declaring(self, name: str) -> tuple[Change, ...]:
        node, service = node_id(name), web(name)
        return (
            Declare(node, {"platform": "labnode"}, "site"),
            SetDesired(node, "power", "on", "site"),
            SetDesired(node, "agent", "up", "site"),
            Declare(service, {}, "site"),
            SetDesired(service, "run", "running", "site"),
            SetDesired(service, "command", "web", "site"),
        )

    def _undeclaring(self, name: str) -> tuple[Change, ...]:
        whole = (Undeclare(web(name)), Undeclare(node_id(name)))
        return self.rng.choice((whole, whole[:1], whole[1:]))


def some(rng: Random, most: float) -> float:
    """None in half of all seeds, else up to `most`."""
    return rng.choice((0.0, rng.random() * most))


def check(storm: Storm) -> None:
    """What was recorded keeps every promise, and what was acknowledged is there."""
    judge(storm.world, storm.manifests, storm.told)
    check_acknowledged(storm)
    assert storm.turns_max <= TURNS_A_SECOND_MAX * storm.listen_s, storm.turns_max


def check_acknowledged(storm: Storm) -> None:
    """The disk holds of each value what was last acknowledged, or what was asked for after it."""
    allowed: dict[Key, set[str | int | None]] = {}
    for ticket, parent, changes in storm.asked:
        reply = parent.replies.get(ticket)
        sure = reply is not None and reply.revision is not None
        if reply is not None and reply.revision is None:
            continue
        for key, value in effects(changes, set(allowed)):
            allowed[key] = {value} if sure else allowed.get(key, {None}) | {value}
    entities = storm.world.parent.disk.entities
    for (entity, name), values in allowed.items():
        stored = entities.get(entity)
        desired = None if stored is None else stored.desired.get(name)
        assert (None if desired is None else desired.value) in values, (entity, name)


def effects(changes: tuple[Change, ...], keys: set[Key]) -> list[tuple[Key, str | int | None]]:
    """What each key should be after these changes, in their order."""
    found: list[tuple[Key, str | int | None]] = []
    for change in changes:
        match change:
            case SetDesired(entity, name, value):
                found.append(((entity, name), value))
            case UnsetDesired(entity, name):
                found.append(((entity, name), None))
            case Undeclare(entity):
                found += [(key, None) for key in sorted(keys, key=str) if key[0] == entity]
            case _:
                pass
    return found
