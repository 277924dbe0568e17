"""The readings that a disruptive step needs, and how fresh they must be."""

from collections.abc import Collection, Iterator
from typing import Final

from haptera.core.act.look import LookScheduler
from haptera.core.modules.catalog import Catalog
from haptera.core.modules.gates import MEND, never_permits
from haptera.core.state.entity.decision import Lacking
from haptera.core.state.limits import MS
from haptera.core.state.row import EntityState
from haptera.core.state.side import Side
from haptera.core.sync.peers import SUSPECT_AFTER
from haptera.core.sync.presence import is_vouched
from haptera.model.facts import Fact, Method
from haptera.model.parts import Context, Look, Requirement, Step
from haptera.planner.domain.domain import Domain

# What an entity's parts call the variables of its node.
_NODE: Final = "node."


class Evidence:
    """A memory is no evidence: what a disruptive step goes by, a look must have found."""

    def __init__(self, side: Side, looks: LookScheduler, catalog: Catalog) -> None:
        self._side = side
        self._looks = looks
        self._catalog = catalog

    def never_permitted(self, node: EntityState, asked: Collection[Context]) -> Lacking | None:
        """Why no permit can ever come, where only gates of this side are asked for one."""
        alone = set(asked) == {Context.PARENT}
        text = never_permits(self._catalog, node) if alone else None
        return None if text is None else Lacking(text, MEND)

    def unknown(
        self, row: EntityState, node: EntityState, step: Step, contexts: Collection[Context]
    ) -> Lacking | None:
        """What the step excludes and nobody knows not to be so now, though looks could find out.

        Only looks that run in these contexts count: on a node that nothing can harm any more, its
        agent is not waited for. Where no look could tell, the permit alone decides.
        """
        for one in step.excludes:
            holder, name = _holder(row, node, one)
            looks = [
                look
                for look in self._telling(holder, node, name, one.values)
                if look.context in contexts
            ]
            fact = holder.belief.known.get(name)
            if looks and (fact is None or fact.method is not Method.READ):
                return Lacking(_unread(holder, name, looks), f"a reading of {one.name}")
        return None

    def unseen(self, row: EntityState, domain: Domain, step: Step, now: int) -> Lacking | None:
        """Each variable that the step names and this side looks at must have been read lately."""
        named = {one.variable for one in step.changes}
        named |= {one.name for one in (*step.requires, *step.excludes)}
        for look in domain.looks:
            if look.at not in named or not self._looks.can(look):
                continue
            fact = row.belief.known.get(look.at)
            old_ns = max(SUSPECT_AFTER * self._side.hello_ns // 10, look.within_ms * MS)
            if fact is None or fact.at < now - old_ns or not _was_read(look.at, fact):
                return Lacking(f"{look.path} looks at {look.at} first", looks=(look,))
        return None

    def _telling(
        self, holder: EntityState, node: EntityState, name: str, excluded: Collection[str]
    ) -> Iterator[Look]:
        """The looks that can find something else than is excluded."""
        domain = self._catalog.domain(holder, node)
        for look in domain.looks:
            if look.at == name and not set(look.outcomes) <= set(excluded):
                yield look


def _was_read(name: str, fact: Fact) -> bool:
    return fact.method is Method.READ and not is_vouched(name, fact)


def _holder(row: EntityState, node: EntityState, one: Requirement) -> tuple[EntityState, str]:
    """Whose variable a condition names, and its name there."""
    if one.name.startswith(_NODE):
        return node, one.name.removeprefix(_NODE)
    return row, one.name


def _unread(holder: EntityState, name: str, looks: list[Look]) -> str:
    memory = holder.belief.remembered.get(name)
    known = "is not known" if memory is None else f"is only remembered as {memory.value}"
    failing = holder.attempts.failing is not None and holder.attempts.failing in {
        look.path for look in looks
    }
    error = f": {holder.attempts.error}" if failing else f", until {looks[0].path} reads it"
    return f"{name} {known}{error}"
