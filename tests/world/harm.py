"""What the oracle asks of steps that may harm what runs: evidence, a permit, room in the budget."""

from haptera.model.events import Enrolled, Heard
from tests.world.evidence import MS, Evidence, Taken

S = 1_000 * MS
# By default, among two nodes.
AT_ONCE_MAX, AN_HOUR_MAX, HOUR_NS = 1, 3, 3_600 * S


def harmful(evidence: Evidence) -> list[Taken]:
    """The disruptive steps that parents took."""
    parents = {one.name for one in evidence.world.parents}
    return [one for one in evidence.taken if one.step.disruptive and one.process in parents]


def fresh_ns(evidence: Evidence) -> int:
    """A neighbour silent for longer is not sure to be there, and its permit not to stand.

    By the clock of who listens.
    """
    return 12 * evidence.world.hello_ns // 10


def no_job_is_killed(evidence: Evidence) -> None:
    """I1: no step took effect on a node on which a job ran.

    But where its BMC had lied that it has no power: again and again, so that what is booted then
    is taken to be closed, or while the very command was on its way, which was over by that. (What
    modules of real BMCs read counts once they have read it twice.)
    """
    for name, machine in evidence.world.machines.items():
        for killed in machine.killed:
            booted_at = [boot.at for boot in evidence.world.boots if boot.node == name]
            since = max((at for at in booted_at if at < killed.at), default=0)
            lied = [one for one in machine.reads if one.lied and one.value == "off"]
            lies = sum(since < one.at < killed.at for one in lied)
            told_at = [one.at for one in machine.commands if one.intent == killed.intent]
            over = any(told_at[0] < one.at < killed.at for one in lied) if told_at else False
            assert killed.intent is None or lies > 1 or over, f"I1: {name}: {killed}"


def nothing_harmful_without_a_permit(evidence: Evidence) -> None:
    """I1b: the node's own word stood just then, unless nothing of it can run yet."""
    for one in harmful(evidence):
        node = str(one.call.entity.node)
        if _boots_closed(evidence, one, node):
            continue
        said = [
            entry.what.message.permits
            for entry in evidence.of_life(one.life)
            if isinstance(entry.what, Heard)
            and entry.what.peer == node
            and entry.at <= one.at
            and entry.what.message.permits is not None
        ]
        granted = {permit.id for permit in (said[-1] if said else ()) if permit.granted}
        assert one.intent.id in granted, f"I1b: no permit: {one}"
        arrived = [at for at in evidence.arrived.get((one.life, node), []) if at <= one.at]
        oldest = evidence.ago(one.life, one.at, fresh_ns(evidence))
        assert arrived[-1] >= oldest, f"I1b: a stale permit: {one}"


def _boots_closed(evidence: Evidence, one: Taken, node: str) -> bool:
    """Whether the parent has switched the node on, and it has not enrolled since."""
    began = [
        taken.at
        for taken in evidence.taken
        if taken.step.enrols and taken.call.entity.node == node and taken.at <= one.at
    ]
    enrolled = [
        entry.at
        for entry in evidence.world.tape
        if isinstance(entry.what, Enrolled) and entry.what.peer == node and entry.at <= one.at
    ]
    return bool(began) and max(enrolled, default=0) < began[-1]


def nothing_harmful_on_old_evidence(evidence: Evidence) -> None:
    """I1b: what the step starts from was read within 1.2 H, or a look's own time."""
    for one in harmful(evidence):
        for change in one.step.changes:
            looks = [look for look in evidence.looks.values() if look.at == change.variable]
            lives_ns = max([fresh_ns(evidence), *(look.within_ms * MS for look in looks)])
            words = [
                word
                for word in evidence.readings_until(one, change.variable)
                if word.value in change.sources
                and word.at >= evidence.ago(one.life, one.at, lives_ns)
            ]
            assert words, f"I1b: {change.variable} was not read lately: {one}"


def budgets_hold(evidence: Evidence) -> None:
    """I9: so many at once; so many in an hour on one node, by each parent, in whatever process.

    A step begins with its intent, by which it is known after a restart, too. Of an hour, those
    count that took power from a node: what its BMC refused, or never carried out, disturbed nobody.
    """
    taken = harmful(evidence)
    for one in taken:
        before = [other for other in taken if other.at < one.at]
        under_way = [other for other in before if evidence.over_at(other, one.at) >= one.at]
        assert len(under_way) < AT_ONCE_MAX, f"I9: {one} beside {under_way}"
        lately = [
            other
            for other in before
            if (other.process, other.call.entity) == (one.process, one.call.entity)
            and took_power(evidence, other)
            and other.intent.began_at > one.clock.later(one.intent.began_at, -HOUR_NS)
        ]
        assert len(lately) < AN_HOUR_MAX, f"I9: one too many in an hour: {one}"


def took_power(evidence: Evidence, one: Taken) -> bool:
    """True if the machine itself did what the step asked of it."""
    commands = evidence.world.machines[str(one.call.entity.node)].commands
    return any(
        told.intent == one.intent.id and told.done_at is not None and told.before == "on"
        for told in commands
    )


CHECKS = (
    no_job_is_killed,
    nothing_harmful_without_a_permit,
    nothing_harmful_on_old_evidence,
    budgets_hold,
)
