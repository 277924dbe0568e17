"""Fresh readings that cannot both be so: both are shown and looked at again, and nothing is done.

semantics.md, Running. Either what one look found cannot be looked at where another's reading is so
(an agent answers on a machine whose power reads `off`), or two modules differ on one variable.
"""

from collections.abc import Callable
from typing import Final

from haptera.core.act.look import LookScheduler
from haptera.core.state.entity.work import ReadingConflict
from haptera.core.state.limits import LOOKS_OVERDUE_MAX, MS, S
from haptera.core.state.row import EntityState
from haptera.core.state.side import Side
from haptera.core.state.timers import Timers
from haptera.core.state.turn import Turn
from haptera.core.sync.peers import SUSPECT_AFTER, Peer, Tier
from haptera.core.sync.presence import MODULE, OWN, is_hearing
from haptera.kinds.node import Agent, agent
from haptera.model.answers.views import CONTESTED
from haptera.model.facts import REPORTED_MS_MAX, Fact, Method
from haptera.model.parts import Look, Requirement
from haptera.model.policy import LOOKING
from haptera.planner.domain.domain import Domain

# A reading must be so much newer than what denies it: a hello may have been under way, and have
# waited in a socket, when the power was cut.
NEWER_NS: Final = 1 * S
# So often both are looked at again soon; then with the back-off of a look that fails.
SOON_MAX: Final = 3
SOON_NS: Final = 1 * S


def contested(row: EntityState) -> str | None:
    """Which readings of this entity contradict each other; nothing is done on it meanwhile."""
    return next((one.text for one in row.work.conflicts.values()), None)


def being_settled(row: EntityState) -> bool:
    """Whether all that is contested is being looked at again just now."""
    return all(one.looks <= SOON_MAX for one in row.work.conflicts.values())


class ReadingConflicts:
    """Begins contests, has both sides of each looked at again, and ends what is over.

    `probe` asks a node's agent for a hello at once.
    """

    def __init__(
        self, side: Side, timers: Timers, looks: LookScheduler, probe: Callable[[Turn, str], None]
    ) -> None:
        self._side = side
        self._timers = timers
        self._looks = looks
        self._probe = probe

    def heard(self, turn: Turn, row: EntityState, domain: Domain, peer: Peer) -> None:
        """This node's agent is there, but cannot be known to be."""
        fresh_until = peer.silent_since + SUSPECT_AFTER * self._side.hello_ns // 10
        if peer.heard_at is None or peer.tier is Tier.LOST or fresh_until <= turn.now:
            return
        fact = Fact(Agent.UP, MODULE, Method.READ, peer.heard_at, peer.incarnation)
        if self._deny(turn, row, domain, agent.name, fact, fresh_until):
            row.belief.remember(agent.name, fact)

    def strip(self, turn: Turn, row: EntityState, domain: Domain, name: str) -> None:
        """What is known of this variable is about to be forgotten."""
        fact = row.belief.known[name]
        self._deny(turn, row, domain, name, fact, fact.at)

    def review(self, turn: Turn, row: EntityState, domain: Domain, state: int) -> None:
        """End what is over, and look again at the rest."""
        for name in sorted(row.belief.known.keys() & row.belief.second.keys()):
            if row.belief.second[name].by in OWN:  # it was only good until a module read it
                row.belief.agree(name)
            else:
                self._differ(turn, row, domain, name)
        for contest in list(row.work.conflicts.values()):
            if _is_over(row, domain, state, contest, turn.now):
                row.work.agree(contest.variable)
                turn.changed.add(row.id)
            else:
                self._look_again(turn, row, domain, contest)

    def _deny(
        self, turn: Turn, row: EntityState, domain: Domain, name: str, fact: Fact, fresh_until: int
    ) -> bool:
        """Keep a reading that strip discards, if it is newer than what denies it."""
        contest = row.work.conflicts.get(name)
        against = _denier(row, domain, name, fact.value)
        if against is None:
            return False
        begins = contest is None or contest.against != against
        if begins and fact.at <= row.belief.found_at[against] + NEWER_NS:
            return False
        self._contest(turn, row, domain, ReadingConflict(name, fact, against, fresh_until))
        return True

    def _differ(self, turn: Turn, row: EntityState, domain: Domain, name: str) -> None:
        """Two modules were last heard of this variable: whether they say the same."""
        fact, second = row.belief.known[name], row.belief.second[name]
        ages = [look for look in domain.looks if (look.at, look.module) == (name, second.by)]
        lasts_ns = max((_lasts_ns(look) for look in ages), default=0)
        if second.method is Method.REPORTED and second.at > fact.at:
            lasts_ns = REPORTED_MS_MAX * MS  # until a look tells
        contest = row.work.conflicts.get(name)
        if fact.value != second.value and turn.now < second.at + lasts_ns:
            if contest is None or contest.fact != second:
                self._contest(
                    turn, row, domain, ReadingConflict(name, second, name, second.at + lasts_ns)
                )
            return
        if contest is not None and contest.against == name:
            contest.fresh_until = turn.now
        if second.method is Method.REPORTED:
            row.belief.agree(name)

    def _contest(
        self, turn: Turn, row: EntityState, domain: Domain, contest: ReadingConflict
    ) -> None:
        """Begin, or go on with newer readings."""
        old = row.work.conflicts.get(contest.variable)
        if old is not None and old.against == contest.against:
            contest.looks, contest.again_at = old.looks, old.again_at
        fact = row.belief.known[contest.against]
        contest.read_by = _path(domain, contest.variable, contest.fact)
        contest.denied_by = _path(domain, contest.against, fact)
        said = f"{contest.read_by} says {_value(row, contest.variable, contest.fact)}"
        denied = f"{contest.denied_by} says {_value(row, contest.against, fact)}"
        contest.text = f"{CONTESTED}{said}, {denied}"
        row.work.contest(contest)
        if old is None or old.text != contest.text:
            turn.changed.add(row.id)

    def _look_again(
        self, turn: Turn, row: EntityState, domain: Domain, contest: ReadingConflict
    ) -> None:
        if contest.again_at <= turn.now:
            names = {contest.variable, contest.against}
            for look in domain.looks:
                if look.at in names and self._side.runs(look):
                    self._look(turn, row, look)
            contest.looks += 1
            contest.again_at = turn.now + self._wait_ns(contest.looks)
        self._timers.soonest(("decide", row.id), contest.again_at)
        if contest.fresh_until > turn.now:
            self._timers.soonest(("decide", row.id), contest.fresh_until)

    def _look(self, turn: Turn, row: EntityState, look: Look) -> None:
        if is_hearing(look):
            self._probe(turn, row.id.name)
        else:
            self._looks.schedule(row, look, turn.now)

    def _wait_ns(self, looks: int) -> int:
        if looks <= SOON_MAX:
            return SOON_NS
        return LOOKING.wait_ms(looks - SOON_MAX, self._side.draw()) * MS


def _is_over(
    row: EntityState, domain: Domain, state: int, contest: ReadingConflict, now: int
) -> bool:
    """Both can be so, nobody denies it any more, or it was denied again and not said again."""
    denier = row.belief.known.get(contest.against)
    if denier is None or denier.method is not Method.READ:
        return True
    same = contest.against == contest.variable
    if not same and domain.knowable(state, contest.variable, contest.fact.value):
        return True
    return denier.at >= contest.fact.at and contest.fresh_until <= now


def _denier(row: EntityState, domain: Domain, name: str, value: str) -> str | None:
    """The variable whose reading rules this one out, the newest of several; None: nothing does."""
    newest: str | None = None
    for look in (one for one in domain.looks if one.at == name and value in one.outcomes):
        denying = [one.name for one in look.requires if _breaks(row, one)]
        if not denying:
            return None
        newest = max(
            [*denying, *([newest] if newest else [])], key=lambda one: row.belief.known[one].at
        )
    return newest


def _breaks(row: EntityState, condition: Requirement) -> bool:
    fact = row.belief.known.get(condition.name)
    return (
        fact is not None
        and fact.method is Method.READ
        and row.value(condition.name, fact) not in condition.values
    )


def _lasts_ns(look: Look) -> int:
    return (LOOKS_OVERDUE_MAX * look.every_ms + look.within_ms) * MS


def _path(domain: Domain, name: str, fact: Fact) -> str:
    looks = (one.path for one in domain.looks if (one.at, one.module) == (name, fact.by))
    return next(looks, fact.by)


def _value(row: EntityState, name: str, fact: Fact) -> str:
    return f"{name} {row.value(name, fact)}"
