"""What parents below report, taken in at the parent above: state, sessions, and their silence."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count, islice
from typing import Final

import msgspec

import haptera
from haptera.core.engine import Engine
from haptera.core.state.allowance import READ_AT_ONCE, READING_EACH
from haptera.core.state.limits import MS, S
from haptera.core.sync.peers import LOST_AFTER
from haptera.model.answers.views import ParentView
from haptera.model.errors import Code, HapteraError, LimitError
from haptera.model.events import Event, Reported, Silenced
from haptera.model.messages import ObservedUpdate, ReportNotes
from haptera.model.walltime import AGE_MS_MAX
from haptera.planner.domain.pieces import Pieces, slices
from haptera.rest.schemas import ReportTaken
from haptera.runtime.clock import now_ns
from haptera.runtime.store.sessions import SavedSession
from haptera.selectors.nodeset import NameFolder

# Parents that one may have below it.
PARENTS_MAX: Final = 1_000
_TENTHS: Final = 10


class SubtreeReport(msgspec.Struct, frozen=True):
    """What a parent reports, as `Reported` has it, and the sessions that were made there.

    `parents` are itself and those below it, `doubted` the incarnations, by node, whose token two
    have claimed since its last report; a parent of an earlier version reports neither.
    """

    parent: str
    updates: tuple[ObservedUpdate, ...]
    nodes: Mapping[str, bool] | None
    sessions: tuple[SavedSession, ...]
    notes: ReportNotes | None = None
    parents: tuple[ParentView, ...] = ()
    doubted: Mapping[str, int] = {}


Adopt = Callable[[Sequence[SavedSession]], Awaitable[None]]
# A node, and its incarnation.
Doubt = Callable[[str, int], Awaitable[None]]


class Below:
    """Hands on what parents report: `adopt` the sessions they made, `doubt` the nodes they doubt.

    A parent that is heard for the first time, or was silent for too long, is answered with another
    log than before: it has to tell all. `first_log` is what these are counted from.
    """

    def __init__(
        self,
        engine: Engine,
        deliver: Callable[[Iterable[Event]], None],
        adopt: Adopt,
        doubt: Doubt,
        first_log: int,
    ) -> None:
        self._engine = engine
        self._deliver = deliver
        self._adopt = adopt
        self._doubt = doubt
        self._logs = count(first_log)
        # By parent: its log, when it was last heard, and what it told of parents.
        self._heard: dict[str, tuple[int, int, tuple[ParentView, ...]]] = {}
        self._keeps: list[str] = []
        self._folded = ""
        self._folded_at: int | None = None

    async def take(self, body: bytes) -> ReportTaken:
        """Take a report in.

        Raises:
            HapteraError: it is none.
        """
        try:
            report = msgspec.msgpack.decode(body, type=SubtreeReport)
        except (ValueError, RecursionError) as error:
            raise HapteraError(
                f"this is not a report: {error}",
                do="run the same version of haptera on both",
                code=Code.VERSION_MISMATCH,
            ) from None
        parent = report.parent
        if parent not in self._heard and len(self._heard) >= PARENTS_MAX:
            raise LimitError(f"{PARENTS_MAX} parents report already", do="use fewer")
        charge = self._engine.neighbours.charge
        mine = [one for one in report.sessions if charge.leads(parent, one.peer)]
        if mine:
            await self._adopt(mine)
        for node, incarnation in report.doubted.items():
            if charge.leads(parent, node):
                await self._doubt(node, incarnation)
        now = now_ns()
        log = self._heard[parent][0] if parent in self._heard else next(self._logs)
        told = (one for one in report.parents if one.name == parent or self._is_below(parent, one))
        self._heard[parent] = log, now, tuple(islice(told, PARENTS_MAX))
        self._deliver([Reported(parent, report.updates, report.nodes, now, report.notes)])
        # What this report asks for is answered with the next one.
        return ReportTaken(log, msgspec.msgpack.encode(self._engine.requests.answer(parent, now)))

    def check_reach(self, node: str) -> None:
        """What is asked of a node that another parent keeps goes down by what that one reports.

        Raises:
            HapteraError: it does not report.
        """
        if (parent := self._engine.requests.out_of_reach(node)) is not None:
            raise HapteraError(
                f"{parent}, by which {node} is reached, does not report on it",
                do=f"see whether {parent} runs, or ask the parent that keeps {node} now",
                code=Code.CONFLICT,
            )

    def parents(self) -> Pieces[list[ParentView]]:
        """This parent, and all that are known below it; also those that do not report."""
        kept = yield from self._kept()
        silent = set().union(*(yield from self._engine.neighbours.charge.levelling()))
        found = {one: ParentView(one) for one in silent}
        # Who has moved is told of by two for a while: it is where it was heard last.
        for one in sorted(self._told(now_ns()), key=lambda one: one.heard_ms or 0, reverse=True):
            found[one.name or ""] = one
        own = ParentView(self._engine.side.name, None, haptera.__version__, kept, 0)
        return [own, *(one for _, one in sorted(found.items()))]

    def faults(self) -> Pieces[list[str]]:
        """What is wrong below, in words: parents that do not report."""
        silent = set().union(*(yield from self._engine.neighbours.charge.levelling()))
        silent -= {one.name for one in self._told(now_ns())}
        known = "what is below is shown as it was last reported"
        return [f"{one} is a parent that does not report: {known}" for one in sorted(silent)]

    def _told(self, now: int) -> Iterator[ParentView]:
        for parent, (_, at, told) in self._heard.items():
            quiet_ms = (now - at) // MS
            for one in told or (ParentView(parent, heard_ms=0),):
                above = one.above or (None if one.name == parent else parent)
                heard_ms = min((one.heard_ms or 0) + quiet_ms, AGE_MS_MAX)
                yield msgspec.structs.replace(one, above=above, heard_ms=heard_ms)

    def _kept(self) -> Pieces[str]:
        """The nodes that are kept here, read once in a hello interval."""
        engine, now = self._engine, now_ns()
        if self._folded_at is None or now - self._folded_at >= engine.side.hello_ns:
            keeps: list[str] = []
            for some in slices(engine.table.nodes(), READ_AT_ONCE):
                keeps += filter(engine.neighbours.charge.keeps, some)
                yield READING_EACH * len(some)
            if keeps != self._keeps:
                folder = NameFolder()
                for some in slices(keeps, READ_AT_ONCE):
                    for one in some:
                        folder.add(one)
                    yield READING_EACH * len(some)
                self._keeps, self._folded = keeps, folder.text()
            self._folded_at = now
        return self._folded

    def _is_below(self, parent: str, told: ParentView) -> bool:
        charge = self._engine.neighbours.charge
        return told.name is not None and charge.leads(parent, told.name)

    async def watch(self) -> None:
        """Notice, until cancelled, who has not reported for too long."""
        hello_ns = self._engine.side.hello_ns
        while True:
            await asyncio.sleep(hello_ns / S)
            late = now_ns() - LOST_AFTER * hello_ns // _TENTHS
            for parent in [one for one, (_, at, _) in self._heard.items() if at < late]:
                del self._heard[parent]
                self._deliver([Silenced(parent)])
