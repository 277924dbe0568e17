"""The validation of changes: some at a time, the first proposal first."""

from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import msgspec

from haptera.core.desired.capacity import checking_work
from haptera.core.desired.contradictions import Contradictions
from haptera.core.desired.crowding import checking_count
from haptera.core.desired.fitting import checking_fit
from haptera.core.desired.new_code import NewCode
from haptera.core.desired.policies import Policies
from haptera.core.desired.whole import checking_whole
from haptera.core.modules.catalog import Catalog
from haptera.core.state.table import EntityTable
from haptera.core.state.turn import Turn
from haptera.kinds import module, node
from haptera.model.changes import (
    Author,
    Cause,
    Change,
    Declare,
    SetDesired,
    Undeclare,
    UnsetDesired,
)
from haptera.model.declared.desired_check import check_desired
from haptera.model.declared.remote_schema import ModuleSum
from haptera.model.declared.secrets import SECRET_DO, open_secrets
from haptera.model.declared.uniqueness import Unique
from haptera.model.entity import EntityId, node_id
from haptera.model.errors import HapteraError
from haptera.planner.domain.pieces import Pieces, slices

# Work, in moves that a search could try: going through a change, and completing it.
CHECKING_EACH: Final = 20
COMPLETING_EACH: Final = 10
# Changes that are gone through at once.
CHECKED_AT_ONCE: Final = 50
# What checks take of a turn: half of it, so that others are decided on meanwhile.
CHECKED_WORK_MAX: Final = 10_000
# Proposals and plans that wait to be checked: more than the API lets in at a time.
WAITING_MAX: Final = 1_024
# How often a check is begun anew because something else is desired than when it was begun.
ANEW_MAX: Final = 8
# Whether values can be desired, as far as it is known, while a proposal is gone through.
UNFIT_CACHED_MAX: Final = 1_024
_MODULE: Final = module.kind.name
_NODE: Final = node.kind.name
# Why a value cannot be desired of a variable of a kind, if it cannot.
Unfit = Callable[[str, str, str | int], str | None]


@dataclass(frozen=True, slots=True)
class ProposalRefusal:
    """Why changes cannot be meant, or cannot be checked now."""

    text: str
    cause: Cause


# The changes, with all that has to be declared for them.
Checked = tuple[Change, ...] | ProposalRefusal


@dataclass(slots=True)
class Check:
    """Changes that are checked, for what is desired and declared as of when that was begun."""

    changes: tuple[Change, ...]
    then: Callable[[Turn, Checked], None]
    author: Author | None
    made_for: tuple[int, Mapping[str, ModuleSum]] | None = None
    pieces: Pieces[Checked] | None = None
    anew: int = 0


class Checks:
    """Checks that wait for their turn. Its result holds at the moment of the answer.

    `settling` tells whether what is desired is just being taken over: a check that goes on longer
    than a turn waits until that is over, or it would be begun anew each time.
    """

    def __init__(
        self, table: EntityTable, catalog: Catalog, policies: Policies, settling: Callable[[], bool]
    ) -> None:
        self._table = table
        self._catalog = catalog
        self._policies = policies
        self._settling = settling
        self._contradictions = Contradictions(table, catalog)
        self._code = NewCode(table, catalog)
        self._waiting: deque[Check] = deque()
        self._work_left = CHECKED_WORK_MAX

    @property
    def waits(self) -> bool:
        """Whether a turn had no time for all of them."""
        return bool(self._waiting)

    def ask(
        self,
        turn: Turn,
        changes: tuple[Change, ...],
        then: Callable[[Turn, Checked], None],
        author: Author | None = None,
    ) -> None:
        """Check these after all that were asked for before, at once where there is time.

        Without an author nothing is written, or haptera itself writes.
        """
        if len(self._waiting) >= WAITING_MAX:
            text = f"{WAITING_MAX} changes are queued for checking already; try again later"
            then(turn, ProposalRefusal(text, Cause.STORAGE))
            return
        self._waiting.append(Check(changes, then, author))
        self._go_on(turn)

    def advance(self, turn: Turn) -> None:
        """A turn begins: go on, as far as it has time for this."""
        under_way = bool(self._waiting) and self._waiting[0].pieces is not None
        self._work_left = 0 if under_way and self._settling() else CHECKED_WORK_MAX
        self._go_on(turn)

    def _go_on(self, turn: Turn) -> None:
        while self._waiting and self._work_left > 0:
            check = self._waiting[0]
            found = self._next(turn, check)
            if found is not None:
                self._waiting.popleft()
                check.then(turn, found)

    def _next(self, turn: Turn, check: Check) -> Checked | None:
        """Do the next piece of it; what came of all of them after the last."""
        now = self._table.revision, self._catalog.sums
        if check.pieces is None or check.made_for != now:
            check.anew += check.pieces is not None
            if check.anew > ANEW_MAX:
                text = f"the state that it is checked against changed {check.anew} times meanwhile"
                return ProposalRefusal(text, Cause.STALE)
            check.made_for, check.pieces = now, self._checking(check.changes, check.author)
        try:
            work = next(check.pieces)
        except StopIteration as done:
            found: Checked = done.value
            return found
        self._work_left -= work
        turn.allowance.spend(work)
        return None

    def _checking(self, changes: Sequence[Change], author: Author | None) -> Pieces[Checked]:
        added: set[EntityId] = set()
        unfit = lru_cache(UNFIT_CACHED_MAX)(self._unfit)  # Many are given the same.
        withheld: ProposalRefusal | None = None
        for some in slices(changes, CHECKED_AT_ONCE):
            for change in some:
                if (problem := self._astray(change, added, unfit)) is not None:
                    return ProposalRefusal(problem, Cause.INVALID)
                withheld = withheld or self._withheld(change, author)
            yield CHECKING_EACH * len(some)
        if (problem := (yield from self._policies.checking(changes))) is not None:
            return ProposalRefusal(problem, Cause.INVALID)
        if withheld is not None:
            return withheld
        for checking in (
            checking_count(self._table, changes),
            self._doubled(changes),
            self._contradictions.checking(changes),
            checking_whole(self._table, changes),
            checking_fit(self._table, changes),
            checking_work(self._table, changes),
        ):
            if (problem := (yield from checking)) is not None:
                return ProposalRefusal(problem, Cause.INVALID)
        return (yield from self._completed(changes, added))

    def _doubled(self, changes: Sequence[Change]) -> Pieces[str | None]:
        """What two nodes would have in common that a module reaches only one of them by."""
        declared = {
            change.entity: change.attributes
            for change in changes
            if isinstance(change, Declare) and change.entity.kind == _NODE
        }
        leaving = {change.entity for change in changes if isinstance(change, Undeclare)}
        if not declared:
            return None
        attributes = [one.name for one in self._catalog.kinds[_NODE].attributes]
        manifests = [one for one in self._catalog.manifests.values() if one.unique]
        unique = Unique[EntityId](manifests, attributes)
        others = [row for row in self._table if row.kind.name == _NODE and manifests]
        for some in slices(others, CHECKED_AT_ONCE):
            for row in some:
                if row.id not in declared and row.id not in leaving:
                    list(unique.add(row.desired.attributes, row.id))
            yield CHECKING_EACH * len(some)
        for some_new in slices(list(declared.items()), CHECKED_AT_ONCE):
            for entity, given in some_new:
                for name, value, first in unique.add(given, entity):
                    return f"{entity}: {name} {value!r} is {first}'s already: it must be unique"
            yield CHECKING_EACH * len(some_new)
        return None

    def _completed(self, changes: Sequence[Change], declared: set[EntityId]) -> Pieces[Checked]:
        """The changes, each resident that something is desired of for the first time declared."""
        whole: list[Change] = []
        for some in slices(changes, CHECKED_AT_ONCE):
            for change in some:
                if isinstance(change, SetDesired) and change.entity not in declared:
                    row = self._table.get(change.entity)
                    if row is not None and not row.desired.declared:
                        whole.append(Declare(change.entity, {}, change.owner))
                    declared.add(change.entity)
                whole.append(change)
            yield COMPLETING_EACH * len(some)
        return tuple(whole)

    def _astray(self, change: Change, added: set[EntityId], unfit: Unfit) -> str | None:
        """What in a change names something that is not there, nor was `added` before it."""
        match change:
            case Declare(entity):
                if entity.kind not in self._catalog.kinds:
                    return f"{entity}: there is no kind {entity.kind!r}"
                added.add(entity)
                if entity.node is not None and not self._is_here(node_id(entity.node), added):
                    return f"{entity}: node {entity.node} is not declared"
            case SetDesired(entity, name, value):
                if not self._is_here(entity, added):
                    return f"{entity} is not declared"
                if (problem := unfit(entity.kind, name, value)) is not None:
                    return f"{entity}: {problem}"
            case UnsetDesired(entity) | Undeclare(entity):
                if not self._is_here(entity, added):
                    return f"{entity} is not declared"
            case _:
                return "only desired state can be proposed"
        return None

    def _withheld(self, change: Change, author: Author | None) -> ProposalRefusal | None:
        """What in a change is not its author's to change so, though it could be desired."""
        code = None if author is None else self._code.refusal(change, author)
        if code is not None:
            return ProposalRefusal(code, Cause.FORBIDDEN)
        secret = self._open(change)
        return None if secret is None else ProposalRefusal(secret, Cause.OPEN_SECRET)

    def _open(self, change: Change) -> str | None:
        """Which secret of a module is in a change itself, not by its name."""
        match change:
            case SetDesired(entity, module.settings.name, value) if entity.kind == _MODULE:
                manifest = self._catalog.manifests.get(entity.name)
                declared = () if manifest is None else manifest.settings or ()
                given = msgspec.json.decode(str(value), type=dict[str, Any])
                for name in open_secrets(declared, given):
                    return f"{entity}: the setting {name!r} is a secret; {SECRET_DO}"
            case _:
                pass
        return None

    def _unfit(self, kind: str, name: str, value: str | int) -> str | None:
        """Why this cannot be desired of a kind."""
        try:
            check_desired(self._catalog.kinds[kind], name, value)
        except HapteraError as error:
            return str(error)
        return None

    def _is_here(self, entity: EntityId, added: Collection[EntityId]) -> bool:
        return entity in added or self._table.get(entity) is not None
