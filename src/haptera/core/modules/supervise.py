"""The processes of modules: started when they are needed, replaced, and started again if they die.

A module is an entity too. On its own side it is not planned for: what is desired of it is
compared here with its processes, and what they are is known at first hand.
"""

from dataclasses import dataclass, field
from typing import Final

from haptera.core.modules.calls import Calls
from haptera.core.modules.catalog import Catalog
from haptera.core.modules.module_parts import BY, START
from haptera.core.state.entity.attempts import Tried
from haptera.core.state.entity.verdict import Verdict
from haptera.core.state.limits import MS, S
from haptera.core.state.row import EntityState
from haptera.core.state.side import Side
from haptera.core.state.table import EntityTable
from haptera.core.state.timers import Timers
from haptera.core.state.turn import Turn
from haptera.kinds import module
from haptera.kinds.module import ModuleRun
from haptera.model.answers.views import Condition
from haptera.model.effects import Start, Stop
from haptera.model.entity import EntityId
from haptera.model.events import Exited, LoopBlocked, Ready
from haptera.model.facts import Fact, Method
from haptera.model.policy import RESTARTING

# A module that dies more often than five times within so long has failed, and is left alone.
DEATHS_WITHIN_NS: Final = 600 * S
# A module that served for this long is started again at once when it dies.
SERVED_WELL_NS: Final = 1 * S
# How soon it is tried again whether the version that is desired of a module is installed by now.
VERSION_AGAIN_NS: Final = 60 * S
# For how long a module is stuck after a function of it has blocked all its calls.
BLOCKED_TOLD_NS: Final = 60 * S


@dataclass(slots=True)
class ModuleProcess:
    """One process of a module; `digest` stands for the desired data that it was started with.

    An `outdated` one has other code than is installed by now. `blocked` is what kept it from all
    its calls; shown until `blocked_until`.
    """

    number: int
    digest: str
    version: str | None
    ready_at: int | None = None
    outdated: bool = False
    blocked: str = ""
    blocked_until: int = 0


@dataclass(slots=True)
class Supervised:
    """One module of this side.

    New calls go to the `serving` process; a `coming` one takes over once it is ready; those that
    are `leaving` finish their calls, those that are `ending` were asked to end. `needed` is set
    once a part of it was to be taken.
    """

    entity: EntityId
    needed: bool = False
    count: int = 0
    serving: ModuleProcess | None = None
    coming: ModuleProcess | None = None
    leaving: set[int] = field(default_factory=set)
    ending: set[int] = field(default_factory=set)
    deaths: list[int] = field(default_factory=list)


class Supervisor:
    """The modules of this side, by name; their rows say what is desired of them."""

    def __init__(self, catalog: Catalog, side: Side, table: EntityTable, timers: Timers) -> None:
        self._side = side
        self._catalog = catalog
        self._exclusive = catalog.exclusive
        self._table = table
        self._timers = timers
        self._modules = {
            name: Supervised(EntityId(module.kind.name, name, side.node))
            for name in catalog.modules(side.context)
        }

    def runs(self, entity: EntityId) -> bool:
        """Whether this is the entity of a module whose processes are ours."""
        one = self._modules.get(entity.name)
        return one is not None and one.entity == entity

    def knows(self, name: str) -> bool:
        """Whether a module of this name runs on this side."""
        return name in self._modules

    def need(self, turn: Turn, name: str) -> None:
        """A part of this module is to be taken."""
        one = self._modules.get(name)
        if one is not None and not one.needed:
            one.needed = True
            turn.dirty.add(one.entity)

    def ready(self, name: str) -> bool:
        return self._serving(name) is not None

    def started(self, name: str) -> int:
        """How many of its processes were started so far."""
        return self._modules[name].count

    def process(self, name: str) -> int:
        """The process that new calls of this module go to; 0 where there is none."""
        serving = self._serving(name)
        return 0 if serving is None else serving.number

    def failed(self, name: str) -> bool:
        """Whether the module died too often, and is left alone for a while."""
        one = self._modules.get(name)
        return one is not None and one.serving is None and self._given_up(self._row(one))

    def at_rest(self, name: str) -> str | None:
        """Why no process of this module serves or is to: it is disabled, or left alone."""
        one = self._modules[name]
        row = self._row(one)
        resting = one.serving is None and (_disabled(row) or self._given_up(row))
        return self.blocked(name) if resting else None

    def blocked(self, name: str) -> str | None:
        """Why no part of this module can be taken now."""
        one = self._modules[name]
        if one.serving is not None:
            return None
        row = self._row(one)
        if _disabled(row):
            return f"module {name} is disabled"
        if self._given_up(row):
            return f"module {name} has failed: {row.attempts.error}"
        if row.attempts.error is not None:
            return f"module {name} waits to be restarted: {row.attempts.error}"
        return f"module {name} is starting"

    def decide(self, turn: Turn, row: EntityState) -> None:
        """Bring the module's processes to what is desired of it, and say where it stands."""
        one = self._modules[row.id.name]
        if _disabled(row):
            self._leave(turn, one, one.coming)
            self._leave(turn, one, one.serving)
            one.coming = one.serving = None
            row.attempts.recover()
        else:
            self._bring(turn, row, one)
        self._know(turn, row, one)
        if row.stance.arrive(Verdict(*self._standing(row, one, turn.now)), turn.now):
            turn.changed.add(row.id)

    def awaits(self, event: Ready) -> bool:
        """Whether this process is to serve; one that was ended meanwhile is not."""
        one = self._modules.get(event.module)
        return one is not None and one.coming is not None and one.coming.number == event.process

    def declines(self, turn: Turn, event: Ready) -> bool:
        """Whether the awaited process is of another version than is desired: then it is ended.

        That is no death of it. What serves goes on, with other code than is installed.
        """
        one = self._modules[event.module]
        coming = one.coming
        assert coming is not None
        if coming.version in (None, event.version):
            return False
        self._leave(turn, one, coming)
        one.coming = None
        row = self._row(one)
        error = (
            f"version {coming.version} is desired, and version {event.version} is installed: "
            f"install {coming.version}, or haptera unset {row.id} {module.version.name}"
        )
        if one.serving is not None:
            one.serving.outdated = True
            error += "; the process before it goes on serving"
        row.attempts.blame(START.path, error)
        row.attempts.bar(0, START.path, turn.now + VERSION_AGAIN_NS, turn.now)
        self._changed(turn, one)
        return True

    def serves(self, turn: Turn, event: Ready) -> bool:
        """Have the awaited process take over; tells whether it replaces one."""
        one = self._modules[event.module]
        coming = one.coming
        assert coming is not None
        old, one.serving, one.coming = one.serving, coming, None
        coming.ready_at = turn.now
        row = self._row(one)
        row.attempts.absolve()
        self._changed(turn, one)
        self._leave(turn, one, old)
        return old is not None

    def refuse(self, turn: Turn, name: str, text: str) -> None:
        """The process that was to serve is not what it should be: end it."""
        one = self._modules[name]
        assert one.coming is not None
        self._leave(turn, one, one.coming)
        one.coming = None
        self._died(turn, one, text, after_ns=0)

    def blocked_loop(self, turn: Turn, event: LoopBlocked) -> None:
        """A function of the module kept it from all its calls."""
        one = self._modules[event.module]
        if one.serving is not None and one.serving.number == event.process:
            one.serving.blocked = event.text
            one.serving.blocked_until = turn.now + BLOCKED_TOLD_NS
            self._timers.soonest(("decide", one.entity), one.serving.blocked_until)
            turn.dirty.add(one.entity)

    def exited(self, turn: Turn, event: Exited) -> None:
        """A process is gone; unless it was to go, there will be another."""
        one = self._modules[event.module]
        one.leaving.discard(event.process)
        one.ending.discard(event.process)
        for process in (one.serving, one.coming):
            if process is not None and process.number == event.process:
                served_ns = 0 if process.ready_at is None else turn.now - process.ready_at
                if process is one.serving:
                    one.serving = None
                else:
                    one.coming = None
                self._died(turn, one, event.text, after_ns=served_ns)
        turn.dirty.add(one.entity)

    def dismiss(self, turn: Turn, calls: Calls) -> None:
        """End the processes that were to leave and have finished their calls."""
        for name, one in self._modules.items():
            for number in sorted(one.leaving):
                if not calls.of_process(name, number):
                    one.leaving.discard(number)
                    one.ending.add(number)
                    turn.effects.append(Stop(name, number))
                    turn.dirty.add(one.entity)

    def check(self) -> None:
        """Assert what must hold between any two calls."""
        for one in self._modules.values():
            numbers = [process.number for process in (one.serving, one.coming) if process]
            assert len({*numbers, *one.leaving}) == len(numbers) + len(one.leaving), one.entity
            assert one.serving is None or one.serving.ready_at is not None, one.entity

    def _bring(self, turn: Turn, row: EntityState, one: Supervised) -> None:
        """Start what should run, and what should replace that which runs with other data."""
        digest = row.digest(module.applied.name)
        if one.coming is not None and one.coming.digest != digest:
            self._leave(turn, one, one.coming)
            one.coming = None
        wanted = one.needed or row.desired.values.get(module.run.name) is not None
        serving = one.serving
        stale = serving is not None and (serving.digest != digest or serving.outdated)
        if one.serving is not None and not stale:
            row.attempts.absolve()
        if one.coming is not None or not (stale or (wanted and one.serving is None)):
            return
        if self._exclusive(row.id.name) and (one.serving or one.leaving or one.ending):
            # The next one is started once this one is gone.
            self._leave(turn, one, one.serving)
            one.serving = None
            return
        again_at = row.attempts.barred.get(_BAR, 0)
        if again_at > turn.now:
            self._timers.soonest(("decide", row.id), again_at)
            return
        if self._given_up(row):
            row.attempts.retry(START.path)  # its cool-down is over
        one.count += 1
        data = row.plain()
        version = data.get(module.version.name)
        one.coming = ModuleProcess(one.count, digest, None if version is None else str(version))
        settings = str(data.get(module.settings.name, ""))
        turn.effects.append(Start(row.id.name, one.count, settings))

    def _died(self, turn: Turn, one: Supervised, text: str, *, after_ns: int) -> None:
        """Start it again at once if it had served well, else after its back-off, or cool-down."""
        row = self._row(one)
        if START.path not in row.attempts.failures:
            one.deaths.clear()  # a person asked, or something else is desired
        one.deaths = [at for at in one.deaths if turn.now - at < DEATHS_WITHIN_NS] + [turn.now]
        deaths, error = len(one.deaths), text
        row.attempts.note(Tried(START.path, turn.now, text))
        wait_ms = 0
        if RESTARTING.gives_up(deaths):
            minutes = DEATHS_WITHIN_NS // S // 60
            error = f"{text}; it failed {deaths} times within {minutes} min"
            wait_ms = RESTARTING.cool_down_ms
        elif after_ns < SERVED_WELL_NS:
            wait_ms = RESTARTING.wait_ms(deaths, self._side.draw())
        row.attempts.count(START.path, deaths, error)
        row.attempts.bar(0, START.path, turn.now + wait_ms * MS, turn.now)
        self._changed(turn, one)

    def _leave(self, turn: Turn, one: Supervised, process: ModuleProcess | None) -> None:
        """Let a process finish its calls; it gets no new ones."""
        if process is not None:
            one.leaving.add(process.number)
            self._changed(turn, one)

    def _know(self, turn: Turn, row: EntityState, one: Supervised) -> None:
        if one.serving is not None:
            self._learn(turn, row, module.run.name, ModuleRun.RUNNING)
            self._learn(turn, row, module.applied.name, one.serving.digest)
            return
        self._learn(turn, row, module.run.name, self._run(row, one))
        if row.belief.forget(module.applied.name, turn.now):
            turn.changed.add(row.id)

    def _run(self, row: EntityState, one: Supervised) -> ModuleRun:
        if one.leaving:
            return ModuleRun.RUNNING
        return ModuleRun.FAILED if self._given_up(row) else ModuleRun.STOPPED

    def _learn(self, turn: Turn, row: EntityState, name: str, value: str) -> None:
        """What is so is known at first hand, and does not age."""
        held = row.belief.known.get(name)
        if held is None or held.value != value:
            beyond = self._catalog.manifests[row.id.name].beyond
            note = f"needs {beyond}" if beyond and name == module.run.name else None
            row.belief.learn(name, Fact(value, BY, Method.READ, turn.now, 0, note))
            turn.changed.add(row.id)

    def _standing(
        self, row: EntityState, one: Supervised, now: int
    ) -> tuple[Condition, str | None]:
        name, asked = row.id.name, row.desired.values or one.needed
        if row.attempts.error is not None:
            return Condition.STUCK, row.attempts.error
        if one.coming is not None:
            doing = "starting" if one.serving is None else "being replaced"
            return Condition.ACTING, f"module {name} is {doing}"
        if one.serving is None and (one.leaving or (one.ending and asked)):
            return Condition.ACTING, f"module {name} finishes its calls"
        if one.serving is not None and one.serving.blocked_until > now:
            return Condition.STUCK, one.serving.blocked
        return (Condition.CONVERGED if asked else Condition.IDLE), None

    def _given_up(self, row: EntityState) -> bool:
        return RESTARTING.gives_up(row.attempts.failures.get(START.path, 0))

    def _serving(self, name: str) -> ModuleProcess | None:
        one = self._modules.get(name)
        return None if one is None else one.serving

    def _row(self, one: Supervised) -> EntityState:
        return self._table.make(one.entity)

    def _changed(self, turn: Turn, one: Supervised) -> None:
        """All that may need this module is decided on again."""
        turn.dirty.add(one.entity)
        turn.all_due = True


_BAR: Final = (0, START.path)


def _disabled(row: EntityState) -> bool:
    wanted = row.desired.values.get(module.run.name)
    return wanted is not None and wanted.value == ModuleRun.STOPPED
