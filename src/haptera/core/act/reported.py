"""Readings that programs outside haptera report: what may be reported, and what that changes."""

from typing import Final

from haptera.core.act.look import LookScheduler
from haptera.core.modules.catalog import Catalog
from haptera.core.state.limits import S
from haptera.core.state.row import EntityState
from haptera.core.state.side import Side
from haptera.core.state.table import EntityTable
from haptera.core.state.turn import Turn
from haptera.core.sync.neighbours import Neighbours
from haptera.core.sync.presence import is_hearing
from haptera.kinds import module
from haptera.kinds.node import agent, work
from haptera.model.declared.desired_check import check_read
from haptera.model.errors import ConflictError, HapteraError
from haptera.model.events import ReadingReported
from haptera.model.facts import Fact, Method

# What haptera alone can know: what its own processes do, and hear.
OWN: Final = frozenset({agent.path, work.path, *(one.path for one in module.kind.variables)})
# A report must be so much newer than what a look has found to contest it, and has the look taken no
# sooner after the last: who reports without end holds up no step for ever, and wears out no device.
NEWER_NS: Final = 1 * S


class ReportedReadings:
    """Has what others read count for no more than a memory wherever a look can tell.

    So no step begins by a report that a look could deny, and the outcome of none is known by it.
    """

    def __init__(
        self,
        side: Side,
        table: EntityTable,
        catalog: Catalog,
        near: Neighbours,
        looks: LookScheduler,
    ) -> None:
        self._side = side
        self._table = table
        self._catalog = catalog
        self._near = near
        self._looks = looks

    def check(self, one: ReadingReported) -> None:
        """See that this can be read of such an entity, and is for this parent to hear.

        Raises:
            HapteraError: it is not.
        """
        entity = one.entity
        variable = check_read(self._catalog.kinds[entity.kind], one.variable, one.value)
        if variable.path in OWN:
            raise HapteraError(f"{variable.path} is observed by haptera itself", do="leave it out")
        if not self._near.keeps(entity.node):
            listed = self._near.charge.listed(str(entity.node))
            do = f"report it to {listed[0] if listed else 'the parent above'}"
            raise ConflictError(f"{entity} is kept by another parent", do=do)

    def receive(self, turn: Turn, event: ReadingReported) -> None:
        """Know it, remember it or dispute what is known, unless something later was read."""
        row, name = self._table.get(event.entity), event.variable
        if row is None or not _is_latest(row, event):
            return
        fact = Fact(event.value, event.by, Method.REPORTED, event.at, 0, event.note)
        domain = self._catalog.domain(row, self._table.node_of(row))
        looks = [look for look in domain.looks if look.at == name]
        mine = [look for look in looks if self._side.runs(look) and not is_hearing(look)]
        held = row.belief.known.get(name)
        if held is not None and held.method is not Method.REPORTED:
            if not mine:
                return  # What an agent, or haptera itself, last said holds until it says otherwise.
            second = row.belief.second.get(name)
            # What is contested already is settled by looks, whatever is reported meanwhile.
            settled = second is None or second.value == held.value
            if settled and event.at >= held.at + NEWER_NS:
                row.belief.dispute(name, fact)
        elif looks:
            row.belief.forget(name, turn.now)
            row.belief.remember(name, fact)
        else:
            row.belief.learn(name, fact)
        for look in mine:
            looking = row.work.looks.get(look.path)
            again_at = turn.now if looking is None else looking.asked_at + NEWER_NS
            self._looks.schedule(row, look, max(turn.now, again_at))
        turn.touch(row.id)


def _is_latest(row: EntityState, event: ReadingReported) -> bool:
    """True if no source has a later reading of the variable."""
    belief, name = row.belief, event.variable
    held = (belief.known.get(name), belief.remembered.get(name), belief.second.get(name))
    return all(one is None or one.at <= event.at for one in held)
