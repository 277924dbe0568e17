"""Readings without a module: of agents, by hellos; of jobs, by declaration and by the queue."""

from collections.abc import Iterable
from dataclasses import replace

from haptera.core.state.row import EntityState
from haptera.core.state.table import EntityTable
from haptera.core.state.turn import Turn
from haptera.core.state.typical_durations import Usual
from haptera.core.sync.peers import Peer, Tier
from haptera.kinds.node import (
    JOBS_NONE,
    QUEUE,
    Agent,
    Busy,
    Power,
    agent,
    busy,
    jobs,
    power,
    work,
)
from haptera.model.entity import node_id
from haptera.model.facts import Fact, Method
from haptera.model.parts import Context, Look, Manifest, Part, Requirement
from haptera.model.policy import LOOKING
from haptera.planner.domain.domain import excluding_attribute
from haptera.planner.domain.problem import Problem

MODULE = "sync"
# What these say of a node counts until a module reads it.
OWN = frozenset((MODULE, QUEUE))
# How long a node that has just been given power may take until its agent is heard.
BOOT_WITHIN_MS = 60_000
# So many times as long it is waited for before anything else is tried: some boots are slow.
BOOT_PATIENCE = 10
# And so many times where it fell silent: that is no boot.
LOST_PATIENCE = 2
# What waiting in vain comes to: twice other parts may come first for as long as the cool-down, so
# that two boots are tried; then the node is left alone as long. A look that only listens spares
# nobody by being taken rarely, so its back-off is not used.
BOOTING = replace(LOOKING, attempts=3, cool_down_ms=1_800_000)

HEAR = Look(
    module=MODULE,
    name="hear",
    kind="node",
    at=agent.name,
    outcomes=(Agent.UP,),
    requires=(Requirement(power.name, (Power.ON,)),),
    context=Context.PARENT,
    within_ms=BOOT_WITHIN_MS,
    policy=BOOTING,
)
# For a machine whose power nothing looks at, such as one without a BMC.
HEAR_ALONE = replace(HEAR, requires=())
MANIFEST = Manifest(MODULE, "1", Context.PARENT, (HEAR,), ())


def is_hearing(part: Part) -> bool:
    """True if this look only listens for hellos: no module is called for it."""
    return part.path == HEAR.path


def heard_alone(problem: Problem) -> Problem:
    """Of a class of nodes whose power no look tells, the agents are known by their hellos alone."""
    powered = (look for look in problem.looks if look.at == power.name)
    if any(excluding_attribute(problem, look) is None for look in powered):
        return problem
    looks = tuple(HEAR_ALONE if look is HEAR else look for look in problem.looks)
    return replace(problem, looks=looks)


def know_jobs(turn: Turn, row: EntityState, incarnation: int) -> None:
    """Where a node declares that it never has jobs, it is free, unless a module reads otherwise."""
    fact = row.belief.known.get(busy.name)
    if row.desired.attributes.get(jobs.name) == JOBS_NONE:
        reported = fact is not None and fact.method is Method.REPORTED
        if (fact is None or reported) and busy.name not in row.report.facts:
            free = Fact(Busy.FREE, MODULE, Method.READ, turn.now, incarnation)
            _learn(turn, row, busy.name, free)
    elif fact is not None and fact.by == MODULE and row.belief.forget(busy.name, turn.now):
        turn.touch(row.id)


def know_work(turn: Turn, row: EntityState, value: str | None, incarnation: int) -> None:
    """Where a node stands in the queue of jobs; None: the queue does not know it any more."""
    fact = row.belief.known.get(work.name)
    if value is not None:
        seen = Fact(value, QUEUE, Method.READ, turn.now, incarnation)
        _learn(turn, row, work.name, seen)
    elif fact is not None and fact.by == QUEUE and row.belief.forget(work.name, turn.now):
        turn.touch(row.id)


def learn_hello(turn: Turn, row: EntityState, peer: Peer, usual: Usual) -> bool:
    """Believe a node's agent up, if it was heard. Tells whether that is news.

    What was heard before the agent was last forgotten (its power was off, say) tells nothing now.
    """
    row.report.lost_at, row.report.suspect = None, peer.tier is Tier.SUSPECT
    if peer.heard_at is None or peer.heard_at <= row.belief.forgotten_at.get(agent.name, -1):
        return False
    if (waiting := row.work.looks.get(HEAR.path)) is not None:
        usual.took(HEAR.path, turn.now - waiting.asked_at)
    stop_waiting(row)
    row.report.suspect = peer.tier is Tier.SUSPECT
    row.attempts.succeed(HEAR.path)
    fact = Fact(Agent.UP, MODULE, Method.READ, peer.heard_at, peer.incarnation)
    return _learn(turn, row, agent.name, fact)


def vouch(turn: Turn, row: EntityState, peer: Peer) -> None:
    """A node that is heard has what its agent requires (power), before any look has answered here.

    Once one has, or has failed, looks alone tell; so does what a step under way comes to.
    """
    if peer.heard_at is None or peer.tier is Tier.LOST or row.work.stepping is not None:
        return
    for one in HEAR.requires:
        if one.name not in row.belief.known and one.name not in row.belief.forgotten_at:
            fact = Fact(one.values[0], MODULE, Method.READ, peer.heard_at, peer.incarnation)
            _learn(turn, row, one.name, fact)


def is_vouched(name: str, fact: Fact) -> bool:
    """Whether a value is known by its node's hello only: no disruptive step goes by that."""
    return fact.by == MODULE and any(one.name == name for one in HEAR.requires)


def is_heard(node: EntityState | None) -> bool:
    """Whether a node's agent is there, so that what it last said still holds."""
    return node is not None and agent.name in node.belief.known


def had_enrolled(table: EntityTable, nodes: Iterable[str]) -> None:
    """The agents of these nodes could be heard by an earlier process: they do not boot."""
    for name in nodes:
        if (node := table.get(node_id(name))) is not None:
            node.report.enrolled = True


def may_boot(row: EntityState) -> None:
    """What an earlier process knew tells nothing of this node."""
    row.report.enrolled = False


def patience(row: EntityState, now: int, within_ns: int) -> int:
    """How many times `within_ns` this agent is waited for before another part may come first.

    It boots, unless the last that is known of it is that it was heard, since its power came on; or
    that it had enrolled, in an earlier process. `now` counts from the boot of this machine: what
    cut the power of this one may have cut that of its nodes, which have the time of a boot then.
    """
    if row.report.enrolled and now >= BOOT_PATIENCE * within_ns:
        return LOST_PATIENCE
    last = row.belief.remembered.get(agent.name)
    lost_at = row.belief.forgotten_at.get(agent.name, -1)
    powered_at = row.belief.found_at.get(power.name)
    was_heard = last is not None and last.method is Method.READ
    lost = was_heard and powered_at is not None and lost_at >= powered_at
    return LOST_PATIENCE if lost else BOOT_PATIENCE


def stop_waiting(row: EntityState) -> None:
    """It was heard, or cannot be: the time that a boot may take begins anew with the next one."""
    row.work.unschedule(HEAR.path)
    row.report.suspect = False
    if power.name in row.belief.known:
        row.report.enrolled = False


def own_values() -> tuple[tuple[str, str], ...]:
    """What a running agent is itself a look at: that it is up, and all that this requires."""
    required = tuple((one.name, one.values[0]) for one in HEAR.requires)
    return (*required, (agent.name, Agent.UP))


def learn_self(turn: Turn, row: EntityState, name: str, value: str, incarnation: int) -> None:
    """On its own side such a value is known, and does not age."""
    if name not in row.belief.known:
        _learn(turn, row, name, Fact(value, MODULE, Method.READ, turn.now, incarnation))


def lose(turn: Turn, row: EntityState) -> bool:
    """The agent has been silent for too long: remembered, not known. Tells whether that is news."""
    if row.report.lost_at is None:
        row.report.lost_at, row.report.suspect = turn.now, False
        turn.touch(row.id)
    for one in HEAR.requires:
        if (fact := row.belief.known.get(one.name)) is not None and is_vouched(one.name, fact):
            row.belief.forget(one.name, turn.now)
    return row.belief.forget(agent.name, turn.now)


def _learn(turn: Turn, row: EntityState, name: str, fact: Fact) -> bool:
    news = row.belief.learn(name, fact)
    if news:
        turn.touch(row.id)
    return news
