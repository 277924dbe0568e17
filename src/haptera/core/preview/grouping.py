"""Cases with their answers as the groups of a plan: what would run, how long, and what it hits."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Final

import msgspec

from haptera.core.decide.backlog import PLANNED
from haptera.core.desired.freezes import Freezes, Hold, held
from haptera.core.modules.catalog import Catalog
from haptera.core.modules.gates import NEVER, gates_at_parent, is_mute
from haptera.core.preview.draft import NODE, Case, Draft, folded, on_nodes
from haptera.core.preview.hits import FOLDING, LOOKING, hit, serves_on, serving, waits
from haptera.core.state.limits import MS
from haptera.core.state.row import EntityState
from haptera.core.state.selecting import Attributes, Declared
from haptera.core.state.table import EntityTable
from haptera.core.state.typical_durations import Usual
from haptera.core.views.query import link_view
from haptera.model.answers.plan import (
    AtMost,
    Plan,
    PlanFreeze,
    PlanGroup,
    Rewrite,
    Worst,
    digest_of,
)
from haptera.model.answers.views import Condition
from haptera.model.chain import Chain, Do, Find, NoChain, ReasonKind
from haptera.model.entity import EntityId, node_id
from haptera.model.parts import Context, Step
from haptera.planner.contingent import Outcomes
from haptera.planner.domain.pieces import Pieces
from haptera.planner.domain.task import Memory
from haptera.planner.search.factors import factors_of

_SETTLED = (Condition.CONVERGED, Condition.IDLE)
# Work, in moves tried, of some 60 ns each: whose likes a case are, whether a freeze holds an
# entity.
LIKENING: Final = 500
HOLDING: Final = 50
COUNTING: Final = 10
# Work of telling in a turn: some 6 ms. A piece may take longer, for names are folded all together:
# 10,000 of them in some 10 ms.
TOLD_A_TURN_MAX: Final = 100_000

SILENT: Final = (
    "no agent is heard there, which would have to permit it; `haptera override NODE --why TEXT`"
    " goes on without"
)
# Which services are hit, which nodes are waited for, what is frozen, and in how many rounds.
_Laid = tuple[str | None, str | None, list[PlanFreeze], int | None]


@dataclass(frozen=True, slots=True)
class AnsweredCase:
    """A case with its plan and all that may come of it; None: they are being sought still."""

    case: Case
    plan: Chain | NoChain | None
    outcomes: Outcomes | None


# In how many rounds the budgets let entities be disturbed, at the least; None: in none.
Rounds = Callable[[Iterable[EntityId]], Pieces[int | None]]


@dataclass(frozen=True, slots=True)
class PreviewContext:
    """The basis of a plan: how all is now, and what is laid over it."""

    table: EntityTable
    catalog: Catalog
    usual: Usual
    freezes: Freezes
    brake: Callable[[int], str | None]
    rounds: Rounds
    needs_a_person: Callable[[EntityState, int], bool]


class Telling:
    """A plan in the making, some entities at a time: telling of a large cluster takes many turns.

    A freeze whose time comes meanwhile still counts.
    """

    def __init__(
        self, grounds: PreviewContext, draft: Draft, answered: Iterable[AnsweredCase], now: int
    ) -> None:
        self._pieces = _telling(grounds, draft, answered, now)
        self._due = 0

    def go_on(self, work_max: int = TOLD_A_TURN_MAX) -> Plan | None:
        """Do so much more of it, a piece at the least; the plan, once all is done."""
        work = self._due
        while True:
            try:
                self._due = next(self._pieces)
            except StopIteration as done:
                plan: Plan = done.value
                return plan
            work += self._due
            if work > work_max:
                return None


def _telling(
    grounds: PreviewContext, draft: Draft, answered: Iterable[AnsweredCase], now: int
) -> Pieces[Plan]:
    """The consequences of changes, as the answer shows them."""
    holds = grounds.freezes.holds(now)
    alike: dict[tuple[object, ...], list[AnsweredCase]] = {}
    for one in answered:
        yield LIKENING
        alike.setdefault(_likeness(one), []).append(one)
    groups, disrupted = list[PlanGroup](), dict[str, None]()
    for some in alike.values():
        entities = [entity for one in some for entity in one.case.entities]
        nodes = _nodes(entities) if _disrupts(some[0]) and not _serves(some[0]) else []
        yield COUNTING * len(entities)
        away = yield from _away(grounds.table, some[0], entities)
        disrupted |= dict.fromkeys([*nodes, *away])
        frozen = yield from _frozen(holds, entities, draft.attributes)
        harmed = yield from hit(grounds.table, nodes)
        busy = yield from waits(grounds.table, nodes)
        rounds = yield from _rounds(some[0], entities, grounds.rounds)
        yield FOLDING * len(entities)
        silent = yield from _silent(some[0], entities, grounds, now)
        never = _never(some[0], entities, draft, grounds.catalog) or silent
        laid = (harmed, busy, frozen, rounds)
        groups.append(_group(some[0], entities, grounds.usual, laid, never))
    disrupted |= dict.fromkeys(one.name for one in draft.leave if one.kind == NODE)
    rewrites = yield from _rewrites(draft)
    anyway = yield from _anyway(grounds.table, draft)
    yield FOLDING * len(disrupted) + COUNTING * len(grounds.table)
    told = Plan(
        "",
        sorted(rewrites, key=lambda one: (one.of, one.name or "", one.on or "")),
        sorted(groups, key=lambda one: (one.of, one.on or "")),
        anyway,
        sum(row.id.kind == NODE for row in grounds.table) + draft.new_nodes,
        folded(disrupted),
        len(disrupted),
        _sums(grounds.catalog, {one.row.kind.name for one in draft.cases}),
        grounds.brake(now),
    )
    return msgspec.structs.replace(told, digest=digest_of(told))


def _likeness(one: AnsweredCase) -> tuple[object, ...]:
    """What members of a group share: the title, what their chain depends on, and the chain."""
    state = tuple(_state(one.case).items())
    goal = tuple(sorted(one.case.goal.items()))
    way = one.plan.links if isinstance(one.plan, Chain) else _standing(one.plan)
    return one.case.row.id.title, state, goal, way, one.outcomes


def _group(
    one: AnsweredCase,
    entities: Collection[EntityId],
    usual: Usual,
    laid: _Laid,
    never: str | None,
) -> PlanGroup:
    links = one.plan.links if isinstance(one.plan, Chain) else ()
    took = {link.part.path: usual.of(link.part.path) for link in links}
    condition, why = _standing(one.plan) if never is None else (Condition.WAITING, never)
    return PlanGroup(
        one.case.row.id.title,
        on_nodes(entities),
        len(entities),
        _state(one.case),
        dict(sorted(one.case.goal.items())),
        condition,
        why,
        [link_view(link) for link in links],
        one.plan.cost if isinstance(one.plan, Chain) else None,
        sum(took[link.part.path] or 0 for link in links) // MS,
        [path for path, took_ns in took.items() if took_ns is None],
        _worst(one, len(entities)),
        *laid,
        _at_least_ns(one, usual, laid[-1]) // MS,
    )


def _never(
    one: AnsweredCase, entities: Iterable[EntityId], draft: Draft, catalog: Catalog
) -> str | None:
    """On which nodes what disturbs of the chain never runs, for nobody can permit it."""
    step, node = _permitted(one), one.case.node
    if step is None or node is None or gates_at_parent(catalog, node):
        return None
    mute = [name for name in _nodes(entities) if is_mute(draft.attributes(name) or {})]
    return f"{step.path} waits on {folded(mute)}: {NEVER}" if mute else None


def _silent(
    one: AnsweredCase, entities: Iterable[EntityId], grounds: PreviewContext, now: int
) -> Pieces[str | None]:
    """On which nodes what disturbs of the chain waits for an agent that may never be heard."""
    step = _permitted(one)
    silent: list[str] = []
    for name in () if step is None else _nodes(entities):
        yield LOOKING
        row = grounds.table.get(node_id(name))
        if row is not None and grounds.needs_a_person(row, now):
            silent.append(name)
    if step is None or not silent:
        return None
    yield FOLDING * len(silent)
    return f"{step.path} waits on {folded(silent)}: {SILENT}"


def _at_least_ns(one: AnsweredCase, usual: Usual, rounds: int | None) -> int:
    """How long all of a group usually take: what disturbs has to wait for its round."""
    links = one.plan.links if isinstance(one.plan, Chain) else ()
    took = [(usual.of(link.part.path) or 0, link.part in _disturbing(one)) for link in links]
    return sum(ns * (rounds or 1) if disturbs else ns for ns, disturbs in took)


def _rounds(one: AnsweredCase, entities: Iterable[EntityId], rounds: Rounds) -> Pieces[int | None]:
    """In how many rounds the budgets let all of a group go, if its chain disturbs."""
    if not _disturbing(one) or (_serves(one) and not serves_on(one.case.row, one.case.goal)):
        return 1
    return (yield from rounds(entities))


def _disturbing(one: AnsweredCase) -> list[Step]:
    """What of its chain this side has budgets for."""
    links = one.plan.links if isinstance(one.plan, Chain) else ()
    steps = [link.step for link in links if isinstance(link, Do) and link.step.disruptive]
    return [step for step in steps if _serves(one) or step.context is Context.PARENT]


def _permitted(one: AnsweredCase) -> Step | None:
    """What of its chain needs a permit of its node first."""
    steps = [] if _serves(one) else _disturbing(one)
    return next(iter(steps), None)


def _serves(one: AnsweredCase) -> bool:
    return one.case.row.kind.serves is not None


def _away(table: EntityTable, one: AnsweredCase, entities: Iterable[EntityId]) -> Pieces[list[str]]:
    """The nodes of those that serve, and would not meanwhile, or no more."""
    stays = serves_on(one.case.row, one.case.goal) and not _disrupts(one)
    return (yield from serving(table, () if stays or not _serves(one) else entities))


def _state(case: Case) -> dict[str, str]:
    """How the variables stand that the chain depends on."""
    within = factors_of(case.domain, case.goal, Memory.TRUSTED).whole.fields
    state: dict[str, str] = {}
    for field in within:
        memory = field.memory(case.state)
        held = field.value(case.state) or (memory and f"{memory}?")
        state[field.name] = held or field.values[0]
    return state


def _standing(plan: Chain | NoChain | None) -> tuple[Condition, str | None]:
    if plan is None:
        return Condition.ACTING, PLANNED
    if isinstance(plan, Chain):
        return Condition.ACTING, None
    waits = plan.reason.kind is ReasonKind.WAITS
    return (Condition.WAITING if waits else Condition.STUCK), plan.reason.text


def _worst(one: AnsweredCase, count: int) -> Worst | None:
    """What may come of it at the worst, where the chain begins with a look."""
    first = one.plan.links[:1] if isinstance(one.plan, Chain) else ()
    if one.outcomes is None or not any(isinstance(link, Find) for link in first):
        return None
    return Worst(
        [*one.outcomes.looked],
        [
            AtMost(step.path, link_view(Do(step)).does, step.disruptive, count)
            for step in one.outcomes.steps
        ],
        count if one.outcomes.stuck else 0,
        one.outcomes.whole,
    )


def _disrupts(one: AnsweredCase) -> bool:
    """Whether a disruptive step may be taken; so it may where that was not worked out."""
    if one.outcomes is not None and one.outcomes.whole:
        return _any_disruptive(one.outcomes.steps)
    return _any_disruptive(one.case.domain.steps)


def _any_disruptive(steps: Iterable[Step]) -> bool:
    return any(step.disruptive for step in steps)


def _nodes(entities: Iterable[EntityId]) -> list[str]:
    return [one.node for one in entities if one.node is not None]


def _frozen(
    holds: Collection[Hold], entities: Iterable[EntityId], attributes: Attributes
) -> Pieces[list[PlanFreeze]]:
    """Those that are frozen, by what holds them; of their nodes as they would be."""
    frozen: dict[Hold, list[EntityId]] = {}
    for entity in entities if holds else ():
        yield HOLDING * len(holds)
        if (hold := held(holds, Declared(entity, attributes))) is not None:
            frozen.setdefault(hold, []).append(entity)
    yield FOLDING * sum(map(len, frozen.values()))
    told = [
        PlanFreeze(on_nodes(some), len(some), hold.owner, hold.until_s, hold.reason)
        for hold, some in frozen.items()
    ]
    return sorted(told, key=lambda one: one.on or "")


def _rewrites(draft: Draft) -> Pieces[list[Rewrite]]:
    """What becomes of each value, with where that is."""
    told: list[Rewrite] = []
    for one, some in draft.rewrites.items():
        yield FOLDING * len(some)
        told.append(msgspec.structs.replace(one, on=on_nodes(some), entities=len(some)))
    return told


def _anyway(table: EntityTable, draft: Draft) -> Pieces[dict[str, int]]:
    """How many others are not as desired, by where they stand."""
    told = {*draft.stays, *(entity for one in draft.cases for entity in one.entities)}
    counts: Counter[Condition] = Counter()
    for row in list(table):  # While it is gone through, rows come and go.
        yield COUNTING
        if row.desired.declared and row.stance.condition not in _SETTLED and row.id not in told:
            counts[row.stance.condition] += 1
    return {condition.value: counts[condition] for condition in Condition if counts[condition]}


def _sums(catalog: Catalog, kinds: Collection[str]) -> dict[str, str]:
    """What the parts of each module sum up to that serves these kinds."""
    serving = {part.module for part in catalog.parts() if part.kind in kinds}
    return {name: f"{catalog.sums[name].digest:016x}" for name in sorted(serving)}
