"""Places in budgets: their holders now, the uses of the last hour, and the queue for them."""

from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from haptera.core.state.entity.decision import ASSENT, Assent, Delay
from haptera.core.state.limits import S
from haptera.core.state.turn import Turn
from haptera.kinds.rules.budget import DEFAULT, Budget, Per
from haptera.model.entity import EntityId
from haptera.planner.domain.pieces import Pieces

# Within which a budget counts the disruptive steps of a node.
BUDGET_HOUR_NS: Final = 3_600 * S

# Of those that wait, how many are woken when there is room: more than one, for it may not suit all.
WOKEN_MAX: Final = 8
BEGUN_MAX: Final = 10_000
# Of those that have the places, how many are named to who waits.
SHOWN_MAX: Final = 3
# Work, in moves tried: finding the budgets of an entity.
PLACING: Final = 100
# Who asks for a place for an entity of a node, where that node's agent does: no parent's name.
OWN_AGENT: Final = ""
ROOM: Final = "room in the budget"

Where = Mapping[Per, str | None]


@dataclass(slots=True)
class Account:
    """What one node, group or parent has under way, and when it began what it began lately."""

    holders: set[EntityId] = field(default_factory=set)
    begun: deque[tuple[int, EntityId]] = field(default_factory=lambda: deque(maxlen=BEGUN_MAX))


class Budgets:
    """One place an entity, from before its permit is asked for until its outcome is known.

    `size` tells how many nodes a group has (None: all), `declared` which budgets people set for an
    entity; `instances` how many a service has, and `away` those of them that serve nobody now.
    """

    def __init__(
        self,
        size: Callable[[str | None], int],
        declared: Callable[[EntityId], list[Budget]],
        instances: Callable[[str], int] = lambda _: 1,
        away: Callable[[str, int], Collection[EntityId]] = lambda *_: (),
    ) -> None:
        self._size = size
        self._declared = declared
        self._instances = instances
        self._away = away
        self._accounts: dict[tuple[Per, str | None], Account] = {}
        self._held: dict[EntityId, Where] = {}
        # For whom each has its place: parents below, its own agent, and None for a step from here.
        self._by: dict[EntityId, set[str | None]] = {}
        self._waiting: dict[EntityId, None] = {}
        self._woken: set[EntityId] = set()

    def hold(
        self, entity: EntityId, where: Where, now: int, by: str | None = None
    ) -> Assent | Delay:
        """Take a place for this entity, unless there is none: then wait.

        `by` is the parent below that asks for it; a node may have two while it moves, or
        `OWN_AGENT`.
        """
        if entity in self._held:
            self._by[entity].add(by)
            return ASSENT
        answer = self.answer(entity, where, now)
        if isinstance(answer, Assent):
            self.grant(entity, where, by)
        else:
            self._waiting[entity] = None
            self._woken.discard(entity)
        return answer

    def answer(self, entity: EntityId, where: Where, now: int) -> Assent | Delay:
        """The answer to a claim of a place: given, or not yet."""
        if entity in self._held:
            return ASSENT
        full = (
            self._full(budget, key, entity, now) for budget, key in self._budgets(entity, where)
        )
        text = next((text for text in full if text is not None), None)
        return ASSENT if text is None else Delay(text, ROOM, self._room_at(entity, where, now))

    def answer_of_node(self, entity: EntityId, where: Where) -> Assent | Delay:
        """The answer to a claim of a place of its node, beside those that it has."""
        if entity in self._held:
            return ASSENT
        of_nodes = (one for one in self._budgets(entity, where) if one[0].per is Per.NODE)
        texts = (
            self._crowded(budget, self._account(Per.NODE, key).holders, key)
            for budget, key in of_nodes
        )
        text = next((text for text in texts if text is not None), None)
        return ASSENT if text is None else Delay(text, ROOM)

    def holds(self, entity: EntityId) -> bool:
        """Whether it has its place, no matter for whom."""
        return entity in self._held

    def holds_here(self, entity: EntityId) -> bool:
        """True where it has its place for a step from here."""
        return None in self._by.get(entity, ())

    def held_here(self) -> list[EntityId]:
        """The entities that have their place for a step from here."""
        return [entity for entity in self._by if self.holds_here(entity)]

    def grant(self, entity: EntityId, where: Where, by: str | None = None) -> None:
        """This one has its place, whatever the room: it is under way already."""
        self._waiting.pop(entity, None)
        self._woken.discard(entity)
        self._held[entity] = where
        self._by.setdefault(entity, set()).add(by)
        for per, key in where.items():
            self._account(per, key).holders.add(entity)

    def begin(self, entity: EntityId, where: Where, at: int) -> None:
        """Its step begins, or has begun then."""
        for per, key in where.items():
            self._account(per, key).begun.append((at, entity))

    def take_back(self, entity: EntityId, where: Where, at: int) -> None:
        """The step that began then disturbed nobody."""
        for per, key in where.items():
            begun = self._account(per, key).begun
            if (at, entity) in begun:
                begun.remove((at, entity))

    def leave(self, turn: Turn, entity: EntityId, by: str | None = None) -> None:
        """It needs no place, or no more: others may."""
        self._waiting.pop(entity, None)
        holders = self._by.get(entity, set())
        holders.discard(by)
        if holders:
            return
        self._by.pop(entity, None)
        where = self._held.pop(entity, None)
        for per, key in (where or {}).items():
            self._account(per, key).holders.discard(entity)
        if where is not None or entity in self._woken:
            self._woken.discard(entity)
            self._wake(turn)

    def wake_all(self, turn: Turn) -> None:
        """The budgets changed: have everybody in the queue decided on."""
        turn.dirty.update(self._waiting)
        self._waiting.clear()

    def rounds(self, wanted: Iterable[tuple[EntityId, Where]]) -> Pieces[int | None]:
        """How often all places are taken until each of these had one; None: there is no place.

        At the least, for others take places too, and hourly limits are not counted.
        """
        counts: Counter[tuple[Per, str | None, str, int]] = Counter()
        for entity, where in wanted:
            yield PLACING
            for budget, key in self._budgets(entity, where):
                most = self._at_once_max(budget, key)
                if most is not None:
                    counts[budget.per, key, budget.of.text, most] += 1
        if any(most == 0 for *_, most in counts):
            return None
        return max((-(-count // most) for (*_, most), count in counts.items()), default=1)

    def _room_at(self, entity: EntityId, where: Where, now: int) -> int | None:
        """When an hourly limit that stands in the way now will have room; None: none does."""
        times = []
        for budget, key in self._budgets(entity, where):
            begun = self._account(budget.per, key).begun
            if budget.per_hour is not None and len(begun) >= budget.per_hour:
                times.append(begun[-budget.per_hour][0] + BUDGET_HOUR_NS)
        return max((at for at in times if at > now), default=None)

    def _wake(self, turn: Turn) -> None:
        """Have the first ones of the queue decided on; who does not need a place passes it on."""
        woken = list(self._waiting)[:WOKEN_MAX]
        for one in woken:
            del self._waiting[one]
        self._woken.update(woken)
        turn.dirty.update(woken)

    def _budgets(self, entity: EntityId, where: Where) -> list[tuple[Budget, str | None]]:
        """Those that hold for it, with what they count over there: declared ones, or defaults."""
        declared = self._declared(entity)
        said = {one.per for one in declared}
        hold = declared + [one for per, one in DEFAULT.items() if per not in said]
        counted = [(one, where[one.per]) for one in hold if one.per in where]
        return [(one, key) for one, key in counted if not _counts_nothing(one, key)]

    def _account(self, per: Per, key: str | None) -> Account:
        return self._accounts.setdefault((per, key), Account())

    def _at_once_max(self, budget: Budget, key: str | None) -> int | None:
        match budget.per:
            case Per.NODE:
                count = 1
            case Per.SERVICE:
                count = self._instances(str(key))
            case _:
                count = self._size(key)
        return budget.at_once_max(count)

    def _full(self, budget: Budget, key: str | None, entity: EntityId, now: int) -> str | None:
        account = self._account(budget.per, key)
        holders = account.holders
        if budget.per is Per.SERVICE:
            holders = holders.union(self._away(str(key), now)) - {entity}
        if text := self._crowded(budget, holders, key):
            return text
        while account.begun and account.begun[0][0] <= now - BUDGET_HOUR_NS:
            account.begun.popleft()
        meant = len(account.begun) + len(account.holders)
        if budget.per_hour is not None and meant >= budget.per_hour:
            return f"the budget of {_named(budget, key)} allows {budget.per_hour} an hour"
        return None

    def _crowded(self, budget: Budget, holders: set[EntityId], key: str | None) -> str | None:
        """Why no more may be under way at once."""
        most = self._at_once_max(budget, key)
        if most is None or len(holders) < most:
            return None
        others = ", ".join(sorted(map(str, holders))[:SHOWN_MAX])
        now_are = f": {others}" if others else ""
        return f"the budget of {_named(budget, key)} allows {most} at once{now_are}"


def _named(budget: Budget, key: str | None) -> str:
    return "this parent" if budget.per is Per.PARENT else f"{budget.per} {key}"


def _counts_nothing(budget: Budget, key: str | None) -> bool:
    """Whether it counts over groups, and what is asked for is in none."""
    return budget.per is Per.GROUP and key is None
