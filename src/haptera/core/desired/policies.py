"""On which terms a part is run on an entity: its own, and what policies of that entity put over."""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import islice
from typing import Final, TypeGuard

from haptera.core.modules.catalog import Catalog
from haptera.core.state.row import EntityState
from haptera.core.state.rules import Rules, selector_of
from haptera.core.state.selecting import Attributes, Declared, attributes_of
from haptera.core.state.table import EntityTable
from haptera.core.state.turn import Turn
from haptera.kinds.rules import policy
from haptera.model.changes import (
    Change,
    CloseIntent,
    Declare,
    Desired,
    OpenIntent,
    SetDesired,
    Undeclare,
    UnsetDesired,
)
from haptera.model.declared.desired_check import nearest
from haptera.model.declared.schema import Kind
from haptera.model.entity import EntityId, node_id
from haptera.model.errors import HapteraError
from haptera.model.parts import Look, Part
from haptera.model.policy import Policy
from haptera.planner.domain.pieces import Pieces, slices
from haptera.selectors.selector import Selector

_KIND: Final = policy.kind.name
_OF_POLICY: Final = tuple(one.name for one in fields(Policy))
# Work, in moves that a search could try: going through a change, asking whether a policy is for an
# entity, and putting those together that are for one.
CHECKING_EACH: Final = 5
MEANING_EACH: Final = 20
SUMMING: Final = 500
# Changes or entities that are gone through at once; entities that are asked.
CHECKED_AT_ONCE: Final = 50
ASKED_AT_ONCE: Final = 100

Values = Mapping[str, Desired]
OfPolicy = Declare | Undeclare | SetDesired | UnsetDesired


@dataclass(frozen=True, slots=True)
class PartTerms:
    """What a part's failures come to, how long it may take, and what its time-out tells."""

    policy: Policy
    within_ms: int
    fails_to: str | None


class Policies:
    """The policies of a cluster, which hold on both sides; planning goes by parts as declared."""

    def __init__(self, table: EntityTable, catalog: Catalog) -> None:
        self._table = table
        self._catalog = catalog
        self._rules = Rules(table, _KIND)
        # The rows that are still to be asked, and what selects those that are tried again.
        self._asking: deque[tuple[Iterator[EntityState], list[Selector]]] = deque()

    def terms(self, entity: EntityId, part: Part) -> PartTerms:
        """The terms of a part on an entity; its own, where only half of a change has arrived."""
        rules = self._rules.of(entity)
        if not rules:
            return _own_terms(part)
        over = _in_order({row.id: row.desired.values for row in rules})
        try:
            return _terms(part, self._catalog.kinds[part.kind], over)
        except HapteraError:
            return _own_terms(part)

    def follow(self, turn: Turn) -> None:
        """Where policies changed, what had failed, or was given up, is tried at once.

        That is, once all entities were asked whether these are for them, which takes many turns.
        """
        if changed := self._rules.changed():
            self._asking.append((iter([*self._table]), changed))
        while self._asking and turn.allowance.has_time:
            rows, changed = self._asking[0]
            some = list(islice(rows, ASKED_AT_ONCE))
            for row in self._rules.selected(some, changed):
                row.relent()
                turn.dirty.add(row.id)
            turn.allowance.spend(MEANING_EACH * len(some) * len(changed))
            if not some:
                self._asking.popleft()

    @property
    def waits(self) -> bool:
        """Whether a turn had no time to ask all entities."""
        return bool(self._asking)

    def checking(self, changes: Sequence[Change]) -> Pieces[str | None]:
        """What in a proposal would make a policy that means nothing, or terms that cannot be."""
        ours = list[OfPolicy]()
        declared, gone = dict[EntityId, Mapping[str, str]](), set[EntityId]()
        for some in slices(changes, CHECKED_AT_ONCE):
            ours += (one for one in some if _is_of_policy(one))
            declared |= {one.entity: one.attributes for one in some if isinstance(one, Declare)}
            gone |= {one.entity for one in some if isinstance(one, Undeclare)}
            yield CHECKING_EACH * len(some)
        drafts, touched = self._drafts(ours), {one.entity for one in ours}
        for entity in sorted(touched & drafts.keys()):
            for problem in self._aims_at_nothing(entity, drafts[entity]):
                return problem
        if not drafts:
            return None
        there = (row.id for row in self._table) if touched else ()
        entities = [one for one in {*declared, *there} if one not in gone]
        return (yield from self._make_no_sum(entities, self._attributes(declared), drafts))

    def _attributes(self, declared: Mapping[EntityId, Mapping[str, str]]) -> Attributes:
        """Those of nodes as they would be, if these are declared."""
        there = attributes_of(self._table)
        return lambda name: declared.get(node_id(name)) or there(name)

    def _drafts(self, changes: Iterable[Change]) -> dict[EntityId, dict[str, Desired]]:
        """The policies as they would be."""
        drafts = {row.id: dict(row.desired.values) for row in self._rules.all()}
        for change in changes:
            match change:
                case Declare(entity) if entity.kind == _KIND:
                    drafts.setdefault(entity, {})
                case Undeclare(entity):
                    drafts.pop(entity, None)
                case SetDesired(entity, name, value, owner) if entity in drafts:
                    drafts[entity][name] = Desired(value, owner)
                case UnsetDesired(entity, name) if entity in drafts:
                    drafts[entity].pop(name, None)
        return drafts

    def _aims_at_nothing(self, entity: EntityId, values: Values) -> Iterator[str]:
        """A policy may name no part that there is, or none that can fail to its value."""
        parts, kinds = self._catalog.parts(), self._catalog.kinds
        named, fails_to = _value(values, "parts"), _value(values, "fails_to")
        covered = [part for part in parts if _covers(named, part)]
        if not covered:
            known = {name for part in parts for name in (part.module, part.path)}
            yield f"{entity}: there is no part {named!r} ({nearest(str(named), known)})"
        elif fails_to is not None and not any(
            _can_fail_to(part, kinds[part.kind], fails_to) for part in covered
        ):
            yield f"{entity}: no step that it applies to can fail to {fails_to!r}"

    def _make_no_sum(
        self,
        entities: Sequence[EntityId],
        attributes: Attributes,
        drafts: Mapping[EntityId, Values],
    ) -> Pieces[str | None]:
        """Policies may be impossible together; the first entity of each sort is named."""
        sorts: dict[tuple[str, tuple[EntityId, ...]], EntityId] = {}
        for some in slices(entities, CHECKED_AT_ONCE):
            for entity in some:
                subject = Declared(entity, attributes)
                over = [one for one in drafts if selector_of(drafts[one]).means(subject)]
                if over:
                    sort = entity.kind, tuple(sorted(over))
                    sorts[sort] = min(sorts.get(sort, entity), entity, key=str)
            yield MEANING_EACH * len(some) * len(drafts)
        for (_, named), entity in sorted(sorts.items(), key=lambda one: str(one[1])):
            for problem in self._makes_no_sum(entity, {one: drafts[one] for one in named}):
                return problem
            yield SUMMING
        return None

    def _makes_no_sum(self, entity: EntityId, over: Mapping[EntityId, Values]) -> Iterator[str]:
        kind = self._catalog.kinds[entity.kind]
        for part in (one for one in self._catalog.parts() if one.kind == kind.name):
            try:
                _terms(part, kind, _in_order(over))
            except HapteraError as error:
                names = " and ".join(str(one) for one in sorted(over))
                yield f"{names}: {part.path} on {entity}: {error}"


def _terms(part: Part, kind: Kind, over: Iterable[Values]) -> PartTerms:
    """A part's own terms, with those put over that the later policies say.

    Raises:
        HapteraError: together they are no policy.
    """
    values: dict[str, str | int] = {}
    for one in over:
        if _covers(_value(one, "parts"), part):
            values |= {name: desired.value for name, desired in one.items()}
    own, fails_to = _own_terms(part), values.get("fails_to")
    return PartTerms(
        replace(own.policy, **{name: int(values[name]) for name in _OF_POLICY if name in values}),
        int(values.get("within_ms", own.within_ms)),
        str(fails_to)
        if fails_to is not None and _can_fail_to(part, kind, fails_to)
        else own.fails_to,
    )


def _own_terms(part: Part) -> PartTerms:
    fails_to = None if isinstance(part, Look) else part.fails_to
    return PartTerms(part.policy, part.within_ms, fails_to)


def _in_order(policies: Mapping[EntityId, Values]) -> list[Values]:
    """By rank, then by name: the last one holds."""
    order = sorted(policies.items(), key=lambda one: (int(_value(one[1], "rank") or 0), one[0]))
    return [values for _, values in order]


def _covers(named: str | int | None, part: Part) -> bool:
    return named in (None, part.module, part.path)


def _can_fail_to(part: Part, kind: Kind, value: str | int) -> bool:
    """Whether a step's time-out could tell this of its first variable."""
    if isinstance(part, Look):
        return False
    variable = kind.variable(part.changes[0].variable)
    if variable is None:
        return False
    return value in [str(one) for one in variable.values if one is not variable.unknown]


def _value(values: Values, name: str) -> str | int | None:
    desired = values.get(name)
    return None if desired is None else desired.value


def _is_of_policy(change: Change) -> TypeGuard[OfPolicy]:
    return not isinstance(change, OpenIntent | CloseIntent) and change.entity.kind == _KIND
