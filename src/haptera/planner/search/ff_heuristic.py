"""The FF heuristic: a relaxed plan, in which what was won is never lost (delete relaxation).

Hoffmann, Nebel, "The FF Planning System", JAIR 14, 2001. Not admissible: for greedy search only.
"""

from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from operator import or_

from haptera.planner.domain.bitsets import each
from haptera.planner.domain.bitstate import Support, strip
from haptera.planner.domain.task import Task

# Where rows lead that cost the same: this cost, and for each the state and the row's number.
Ways = tuple[int, tuple[tuple[int, int], ...]]
# The number of a row, what it needs, wins, and costs: a plain tuple, as Row is. What is needed and
# won are things, each a bit: that a variable has none of the bits that some row forbids.
Rule = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class RelaxedPlan:
    """What can be done in a state, and what is left to pay from there; None where nothing helps.

    `preferred` are the ways on that the relaxed plan has among its moves.
    """

    left: int | None
    onward: tuple[Ways, ...]
    preferred: tuple[Ways, ...]


class FFHeuristic:
    """The rows of a task as though what is won were never lost.

    What strip forgets is a rule too, where it lets something be done that could not be before.
    """

    def __init__(self, task: Task) -> None:
        self._task = task
        # By name: the order in which variables are declared must not change what is found.
        self._fields = sorted(task.fields, key=lambda field: field.name)
        self._things: dict[int | Support, int] = {}
        self._goal = self._needed(~task.allowed)
        needs = [self._needed(row[0]) for row in task.rows]
        lost = [(one, value, self._needed_to_lose(one, value)) for one, value in self._losses()]
        self._so = {field.span: dict[int, int]() for field in self._fields}
        wins = [self._won(row[2]) | self._upset(row[4]) for row in task.rows]
        wins += [self._won(value << one.width) for one, value, _ in lost]
        costs = [row[3] for row in task.rows] + [0] * len(lost)
        needs += [need for *_, need in lost]
        self._rules: list[Rule] = list(zip(range(len(needs)), needs, wins, costs, strict=True))
        self._lost = self._rules[len(task.rows) :]
        self._heirs = list(self._inherited())

    def outlook(self, state: int) -> RelaxedPlan:
        """What can be made of a state."""
        lacking = ~self._holding(state)
        ready = self._ready(state, lacking)
        plan = self._plan(lacking, ready)
        if plan is None:
            return RelaxedPlan(None, (), ())
        left = sum([rule[3] for rule in plan.values()])
        onward = self._onward(state, ready)
        return RelaxedPlan(left, onward, only(onward, plan))

    def _ready(self, state: int, lacking: int) -> list[Rule]:
        """The rules that lack nothing."""
        marks = self._task.openings.marks(state)
        ready = [rule for rule in reversed(self._lost) if not rule[1] & lacking]
        while marks:
            last = marks.bit_length() - 1
            marks ^= 1 << last
            ready.append(self._rules[last])
        return ready

    def _onward(self, state: int, ready: list[Rule]) -> tuple[Ways, ...]:
        rows = self._task.rows
        ways: dict[int, list[tuple[int, int]]] = {}
        for number, *_ in reversed(ready):
            if number < len(rows):
                _, keep, put, cost, upsets, _ = rows[number]
                after = strip(state & keep | put, upsets) if upsets else state & keep | put
                ways.setdefault(cost, []).append((after, number))
        return tuple((cost, tuple(some)) for cost, some in ways.items())

    def _plan(self, lacking: int, ready: list[Rule]) -> dict[int, Rule] | None:
        """Rules, by number, that win the goal: each thing is won by one that wins it soonest.

        Of several that win it as soon it is the one that was ready first, else the last in order.
        """
        goal, heirs, at_first = self._goal, self._heirs, lacking
        trail: list[tuple[int, Rule]] = []
        due: dict[int, list[Rule]] = {}
        at = 0
        while goal & lacking:
            for rule in ready:
                if rule[2] & lacking:
                    when = at + rule[3]
                    if when in due:
                        due[when].append(rule)
                    else:
                        due[when] = [rule]
            if not due:
                return None
            at, begun = min(due), len(trail)
            for rule in due.pop(at):
                if won := rule[2] & lacking:
                    lacking ^= won
                    trail.append((won, rule))
            ready = [
                one
                for won, rule in trail[begun:]
                for one in heirs[rule[0]]
                if not one[1] & lacking and one[1] & won
            ]
            ready.sort(reverse=True)
        return _chosen(goal & at_first, at_first, trail)

    def _holding(self, state: int) -> int:
        """All things that are so in a state."""
        held = 0
        for span, so in self._so.items():
            here = state & span
            held |= so[here] if here in so else self._note(span, here)
        return held

    def _note(self, span: int, bits: int) -> int:
        """The things of a variable that are so where it has these bits; remembered."""
        things = self._things.items()
        so = [one for bad, one in things if isinstance(bad, int) and bad & span and not bad & bits]
        self._so[span][bits] = reduce(or_, so, 0)
        return self._so[span][bits]

    def _won(self, put: int) -> int:
        """What is so of the variables that are put."""
        fields = [field for field in self._fields if put & field.whole]
        return reduce(or_, (self._note(field.span, put & field.span) for field in fields), 0)

    def _upset(self, upsets: Iterable[Support]) -> int:
        return reduce(or_, (self._things.get(one, 0) for one in upsets), 0)

    def _thing(self, key: int | Support) -> int:
        return self._things.setdefault(key, 1 << len(self._things))

    def _inherited(self) -> Iterator[list[Rule]]:
        """Which rules need anything that a rule wins, for each in order."""
        needing: dict[int, list[Rule]] = {thing: [] for thing in self._things.values()}
        for rule in self._rules:
            for thing in each(rule[1]):
                needing[thing].append(rule)
        for rule in self._rules:
            yield list(dict.fromkeys(one for thing in each(rule[2]) for one in needing[thing]))

    def _needed(self, forbidden: int) -> int:
        """What is needed for a state to have none of these bits."""
        forbidden &= self._task.within
        needed = 0
        for field in self._fields:
            for bad in (forbidden & field.whole, forbidden & field.touched):
                needed |= self._thing(bad) if bad else 0
        return needed

    def _needed_to_lose(self, one: Support, value: int) -> int:
        """That it is known, and that its grounds are upset."""
        whole = next(field.whole for field in self._fields if field.name == one.variable)
        return self._thing(whole & ~value) | self._thing(one)

    def _losses(self) -> Iterator[tuple[Support, int]]:
        """Known values that bar a row until they are but remembered, and not just to be known."""
        whole = sum(field.whole for field in self._fields)
        for one in self._task.grounds:
            value = one.known & -one.known
            while value & one.known:
                gone = value << one.width
                if any(
                    row[0] & value and not row[0] & gone and row[2] & whole != value
                    for row in self._task.rows
                ):
                    yield one, value
                value <<= 1


def only(onward: Iterable[Ways], numbers: Container[int]) -> tuple[Ways, ...]:
    """Those ways that are by rows of these numbers."""
    return tuple(
        (cost, some)
        for cost, ways in onward
        if (some := tuple([way for way in ways if way[1] in numbers]))
    )


def _chosen(wanted: int, lacking: int, trail: list[tuple[int, Rule]]) -> dict[int, Rule]:
    """The winners of what is wanted, and of what these need of all that is lacking.

    The last first: what a rule needs was won before it.
    """
    chosen: dict[int, Rule] = {}
    for won, rule in reversed(trail):
        if won & wanted:
            chosen[rule[0]] = rule
            lacking &= ~rule[2]
            wanted = (wanted | rule[1]) & lacking
    return chosen
