"""Questions answered from state: entities as people and programs see them."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final

import msgspec

from haptera.core.modules.catalog import Catalog
from haptera.core.state.allowance import READ_AT_ONCE, READING_EACH
from haptera.core.state.diff import goal as goal_of
from haptera.core.state.entity.work import ReadingConflict
from haptera.core.state.limits import MS
from haptera.core.state.row import EntityState
from haptera.core.state.start import start
from haptera.core.state.table import EntityTable
from haptera.core.sync.presence import is_hearing
from haptera.core.views.offers import offers
from haptera.core.views.unblock import again_at, awaited, unblock
from haptera.model.answers.explained import Explained
from haptera.model.answers.views import (
    Condition,
    DesiredView,
    DoingView,
    EntityView,
    LinkView,
    ObservedView,
    ReadingView,
    Summary,
    TriedView,
)
from haptera.model.chain import Chain, Do, Find, Link, NoChain
from haptera.model.entity import EntityId
from haptera.model.facts import Fact
from haptera.model.parts import Manifest
from haptera.planner.domain.bars import NO_BARS
from haptera.planner.domain.pieces import Pieces, slices
from haptera.planner.explain.explain import PlanQuestion, explain, waits_for_a_bar
from haptera.planner.search.search_budget import affordable
from haptera.selectors.names import nearest_name

# Steps shown of each entity, the last ones.
TRIED_SHOWN_MAX: Final = 16

# The kind of an entity, and where it stands.
_Stand = tuple[str, Condition]


def nearest(table: EntityTable, entity: EntityId) -> str | None:
    """The entity that was meant, perhaps, by one that is not there."""
    kind, _, name = str(entity).partition(":")
    names = (str(row.id).partition(":")[2] for row in table if row.id.kind == kind)
    near = nearest_name(name, names)
    return None if near is None else f"{kind}:{near}"


def view(row: EntityState, now: int, enrolment: str | None = None) -> EntityView:
    """One entity as it is, as it should be, and how it gets from the one to the other.

    Of a node, `enrolment` tells how it has enrolled.
    """
    links = row.stance.plan.links if isinstance(row.stance.plan, Chain) else ()
    observed = {
        name: _observed(row, name, fact, now, known=True) for name, fact in row.belief.known.items()
    }
    for name, fact in row.belief.remembered.items():
        observed[name] = _observed(row, name, fact, now, known=False)
    for contest in row.work.conflicts.values():
        _contest(row, contest, observed, now)
    return EntityView(
        entity=str(row.id),
        kind=row.id.kind,
        name=row.id.name,
        node=row.id.node,
        revision=row.desired.revision,
        attributes=dict(row.desired.attributes),
        desired={
            name: DesiredView(one.value, one.owner) for name, one in row.desired.values.items()
        },
        observed=dict(sorted(observed.items())),
        condition=row.stance.condition,
        chain=[link_view(link) for link in links],
        since_ms=row.stance.lasted(now) // MS,
        why=row.stance.why,
        error=row.attempts.error
        if row.stance.verdict.quotes is None
        else row.stance.verdict.quotes.error,
        told_by=None if row.stance.verdict.quotes is None else row.id.node,
        unblock=awaited(row, now) or unblock(row),
        again_in_ms=None if (again := again_at(row, now)) is None else (again - now) // MS,
        doing=doing(row, now),
        frozen=row.stance.frozen,
        lost_ms=None if row.report.lost_at is None else max(0, now - row.report.lost_at) // MS,
        suspect=row.report.suspect,
        enrolment=enrolment,
    )


def detail(row: EntityState, now: int, enrolment: str | None = None) -> EntityView:
    """As `view`, and what was tried and what came of it."""
    last = list(row.attempts.tried)[-TRIED_SHOWN_MAX:]
    tried = [TriedView(one.path, (now - one.at) // MS, one.outcome) for one in last]
    return msgspec.structs.replace(view(row, now, enrolment), tried=tried)


def explained(
    row: EntityState,
    node: EntityState | None,
    catalog: Catalog,
    absent: Iterable[Manifest],
    now: int,
) -> Explained | None:
    """Why an entity's chain is as it is, or what else can be had; None where there is no plan.

    `absent` are modules that the catalog does not have.
    """
    domain = catalog.domain(row, node)
    goal = goal_of(row, domain)
    if row.stance.plan is None or not goal:
        return None
    state = start(row, node, domain, goal)
    asked = PlanQuestion(domain, state, goal, affordable(), row.bars(now))
    if isinstance(row.stance.plan, Chain) and waits_for_a_bar(asked, row.stance.plan):
        asked = replace(asked, barred=NO_BARS)
    told = explain(asked, row.stance.plan)
    if isinstance(row.stance.plan, NoChain):
        helps = offers(row.kind.name, goal, row.stance.plan.reason, absent)
        return msgspec.structs.replace(told, offers=helps)
    return told


def summary(
    rows: Iterable[EntityState], subtree: Callable[[str], str | None] = lambda _: None
) -> Pieces[Summary]:
    """How many entities of each kind stand in each condition: in all, and in each subtree.

    `subtree` tells below which parent a node is; None: it is kept here.
    """
    stands: Counter[_Stand] = Counter()
    below: dict[str, Counter[_Stand]] = {}
    parents: dict[str, str | None] = {}
    for some in slices(rows, READ_AT_ONCE):
        for row in some:
            stand = row.id.kind, row.stance.condition
            stands[stand] += 1
            node = row.id.node
            if node is not None:
                if node not in parents:
                    parents[node] = subtree(node)
                if (parent := parents[node]) is not None:
                    below.setdefault(parent, Counter())[stand] += 1
        yield READING_EACH * len(some)
    return Summary(_told(stands), {one: _told(below[one]) for one in sorted(below)})


def _told(stands: Counter[_Stand]) -> dict[str, dict[str, int]]:
    told: dict[str, dict[str, int]] = {}
    for (kind, condition), count in sorted(stands.items()):
        told.setdefault(kind, {})[condition.value] = count
    return told


def doing(row: EntityState, now: int) -> DoingView | None:
    """The step under way, or the look that comes first."""
    if row.work.stepping is not None:
        path, began_at = row.work.stepping.step.path, row.work.stepping.intent.began_at
        text, done = row.work.stepping.progress or (None, None)
        under_way = _under_way(path, began_at, row.work.stepping.usual_ns, now)
        return msgspec.structs.replace(under_way, progress=text, done=done)
    if (
        isinstance(row.stance.plan, Chain)
        and row.stance.plan.links
        and isinstance(row.stance.plan.links[0], Find)
    ):
        look = row.stance.plan.links[0].look
        looking = row.work.looks.get(look.path)
        if looking is not None and (is_hearing(look) or looking.call is not None):
            return _under_way(look.path, looking.asked_at, looking.usual_ns, now)
    return None


def _under_way(path: str, began_at: int, usual_ns: int | None, now: int) -> DoingView:
    usual_ms = None if usual_ns is None else usual_ns // MS
    return DoingView(path, max(0, now - began_at) // MS, usual_ms)


def _observed(row: EntityState, name: str, fact: Fact, now: int, *, known: bool) -> ObservedView:
    age_ms = max(0, now - fact.at) // MS
    value = row.value(name, fact)
    return ObservedView(value, known, fact.method.value, fact.by, age_ms, note=fact.note)


def _contest(
    row: EntityState, contest: ReadingConflict, observed: dict[str, ObservedView], now: int
) -> None:
    """Both readings are shown, each with the one that it contradicts."""
    name, against = contest.variable, contest.against
    pair = {against: _reading(row, name, contest.fact, contest.read_by, now)}
    if against != name and against in row.belief.known:
        pair[name] = _reading(row, against, row.belief.known[against], contest.denied_by, now)
    for one, reading in pair.items():
        if one in observed:
            observed[one] = msgspec.structs.replace(observed[one], contested=reading)


def _reading(row: EntityState, name: str, fact: Fact, by: str, now: int) -> ReadingView:
    return ReadingView(name, row.value(name, fact), by, max(0, now - fact.at) // MS)


def link_view(link: Link) -> LinkView:
    """One part of a chain as answers show it."""
    match link:
        case Find(look, expect):
            return LinkView(look.path, f"looks at {look.at}", look.context, expect=expect)
        case Do(step):
            changes = ", ".join(
                f"{one.variable} to {one.target}{'?' if one.expected else ''}"
                for one in step.changes
            )
            return LinkView(step.path, f"brings {changes}", step.context, step.disruptive)
