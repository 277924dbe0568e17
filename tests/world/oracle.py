"""Judges a history from outside, by what was recorded of it: it shares no code with the core."""

from collections.abc import Callable, Iterator, Sequence

from haptera.model.declared.schema import Applied
from haptera.model.entity import EntityId, parse_entity
from haptera.model.events import Heard
from haptera.model.parts import ANY, Manifest
from haptera.testing.machine import Command, Machine, PowerReading
from haptera.testing.world import World
from tests.world import harm
from tests.world.evidence import MS, Evidence, Taken, Told, gather, pairs

S = 1_000 * MS
# How long a datagram may be under way, and how long what has arrived may wait to be taken.
UNDER_WAY_S_MAX = 10 + 95
# From when a step's longest late effect is over: looks that fail, pauses and slow disks included,
# and the ten minutes for which a module that died too often is left alone.
READ_WITHIN_S_MAX = 1_000
# From when a step is decided until its effect: the disk, a module that is slow.
CALLED_WITHIN_S_MAX = 7
# By how much a time may be off that was converted from one clock to another, and back.
ROUNDED_NS = 3


def judge(world: World, manifests: Sequence[Manifest], told: Sequence[Told]) -> None:
    """Every promise that was not kept is an assertion that names it."""
    evidence = gather(world, manifests, told)
    for check in CHECKS:
        check(evidence)


def intents_come_first(evidence: Evidence) -> None:
    """Nothing was done before the intent for it was durable, and nothing twice for one intent."""
    opened = {key: at for disk in evidence.world.disks for key, at in disk.opened.items()}
    for machine in evidence.world.machines.values():
        for command in machine.commands:
            assert opened[command.intent] <= command.at, f"acted before its intent: {command}"
        for intent, at in machine.starts:
            assert opened[intent] <= at, f"started before its intent: {intent}"
    called = [one.intent.id for one in evidence.taken]
    assert len(called) == len(set(called)), "I2: two calls for one intent"


def power_is_read_between_commands(evidence: Evidence) -> None:
    """I2: by the machines' own files, no command is in flight twice, none sent again unread.

    But to switch on what is off does no harm, and two of the parents on the list of a node that
    was lost may do so: the first one, and the one that it was with.
    """
    opened = {key: (disk, at) for disk in evidence.world.disks for key, at in disk.opened.items()}
    for machine in evidence.world.machines.values():
        for command in machine.commands:
            _check_was_off(evidence, machine, command)
        for first, second in zip(machine.commands, machine.commands[1:], strict=False):
            (disk, at), (other, _) = opened[first.intent], opened[second.intent]
            two = disk.name != other.name and (first.power, second.power) == ("on", "on")
            listed = {disk.name, other.name} <= {*evidence.world.parents_of(machine.name)}
            if not (two and listed):
                _check_read_between(machine, first, second, at)


def _check_was_off(evidence: Evidence, machine: Machine, command: Command) -> None:
    """Nothing but power told to be off may lead to a command that switches on."""
    if command.power == "off":
        return
    told = [read for read in machine.reads if read.told_at <= command.at and read.value == "off"]
    seen = [at for at in machine.reports_off if at <= command.at]
    last = max([read.at for read in told] + seen, default=0)
    within_ns = evidence.lives_ms("node", "power") * MS + CALLED_WITHIN_S_MAX * S
    lately = command.at - drifted(evidence, within_ns)
    assert last > lately, f"I8: not told to be off lately: {command}"


def _check_read_between(machine: Machine, first: Command, second: Command, opened_at: int) -> None:
    """The outcome of the first command was read before the second was sent."""
    over_at = first.at + machine.late_ms * MS

    def counts(read: PowerReading) -> bool:
        found = read.at > opened_at and read.value == first.power
        return read.told_at <= second.at and (found or read.at >= over_at)

    read = [one for one in machine.reads if counts(one)]
    # An entity declared anew after its step was over may first hear of power from its watch.
    reported = any(over_at <= at <= second.at for at in machine.reports_off)
    assert read or reported, f"I2: sent again unread: {first}, {second}"
    if second.at < over_at and first.before == "off" and not any(one.lied for one in read):
        assert first.done_at is not None, f"I2: two in flight: {first}, {second}"
        assert first.done_at <= second.at, f"I2: two in flight: {first}, {second}"


def outcomes_are_read_between_steps(evidence: Evidence) -> None:
    """I2: on any entity, a step is over, and its outcome was heard of, before the next is called.

    Not after an agent's machine lost its power, or its journal, with all that was under way.
    """
    for first, second in pairs(evidence.taken):
        if first.refused or _began_anew(evidence, first, second):
            continue
        names = [change.variable for change in first.step.changes]
        names += [one.name for one in first.step.requires]
        assert any(_tells(evidence, first, second, name) for name in names), (
            f"I2: outcome not read between {first} and {second}"
        )


def _began_anew(evidence: Evidence, first: Taken, second: Taken) -> bool:
    name = first.process
    if name not in evidence.world.machines:
        return False
    lost = [at for disk in evidence.world.disks if disk.name == name for at in disk.lost]
    return evidence.cuts(name, first.at) != evidence.cuts(name, second.at) or any(
        first.intent.began_at <= at <= second.at for at in lost
    )


def _tells(evidence: Evidence, first: Taken, second: Taken, name: str) -> bool:
    """Whether a reading of this variable told the second's process what came of the first."""
    target = {change.variable: change.target for change in first.step.changes}.get(name)
    for heard in evidence.readings(first.process, first.call.entity, name):
        if heard.told_at > second.at or heard.value is None:
            continue
        value = heard.value
        if name == "applied":
            value = Applied.CURRENT if value == first.call.digest else Applied.STALE
        if heard.at >= first.settled_at:
            return True
        if heard.at > first.intent.began_at and value == target and not heard.watched:
            return True
    return False


def steps_start_from_what_is_known(evidence: Evidence) -> None:
    """I8: no step is called whose declared start its process had not read, and lately."""
    changed_at: dict[tuple[int, EntityId, str], int] = {}
    for one in evidence.taken:
        for name, values in _declared_start(one):
            since = changed_at.get((one.life, one.call.entity, name), 0)
            _check_known(evidence, one, name, values, since)
        for change in one.step.changes:
            if not one.refused:
                changed_at[one.life, one.call.entity, change.variable] = one.at


def _declared_start(one: Taken) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Which variables a step goes from, and which values they must have.

    That its own node's agent is there, a process knows by being it.
    """
    for change in one.step.changes:
        if ANY not in change.sources:
            yield change.variable, change.sources
    for condition in one.step.requires:
        attribute = one.call.attributes.get(condition.name)
        if attribute is not None:
            assert attribute in condition.values, f"I8: another class: {one}"
        elif condition.name != "node.agent":
            yield condition.name, condition.values


def _check_known(
    evidence: Evidence, one: Taken, variable: str, values: tuple[str, ...], since: int
) -> None:
    """The last word on a variable, of its looks or of its watch, was one of these values.

    A look that failed, or a step that changes the variable, made it unknown until the next word.
    """
    heard = evidence.readings_until(one, variable)
    words = [one for one in heard if one.value is not None]
    last = [[word for word in words if word.watched is watched][-1:] for watched in (False, True)]
    failed = max((one.told_at for one in heard if one.value is None), default=0)
    lives_ns = evidence.lives_ms(one.call.entity.kind, variable) * MS
    oldest = evidence.ago(one.life, one.at, lives_ns)
    good = [
        word
        for found in last
        for word in found
        if _value(one, variable, word.value) in values
        and word.told_at >= max(failed, since)
        and word.at >= oldest
    ]
    assert good, f"I8: {variable} was not known to be {values} for {one}"


def _value(one: Taken, variable: str, value: str | None) -> str | None:
    if variable == "applied":
        return Applied.CURRENT if value == one.call.digest else Applied.STALE
    return value


def what_is_told_was_read(evidence: Evidence) -> None:
    """I7: each value that people are told was really read then, and in this boot where known."""
    for told in evidence.told:
        entity = parse_entity(told.view.entity)
        for name, one in told.view.observed.items():
            if one.method == "read":
                really = _was_heard if one.by == "sync" else _was_read
                assert really(evidence, told, entity, name), (
                    f"I7: {told.process} tells of {entity} {name} what was never read: {told}"
                )


def _was_read(evidence: Evidence, told: Told, entity: EntityId, name: str) -> bool:
    one = told.view.observed[name]
    earliest, at = _when(evidence, told, one.age_ms)
    assert entity.node is not None
    near = evidence.looks_itself(told.process, entity, name)
    if not near:
        # The age was counted by another's clock first.
        age_ns = one.age_ms * MS
        off_ns = 2 * (drifted(evidence, age_ns) - age_ns)
        earliest, at = earliest - off_ns - UNDER_WAY_S_MAX * S, at + off_ns
    # One further above is told of a node, and may hear later than its keeper that it booted.
    anew = near or not one.known or not evidence.keeps(told.process, entity.node)
    cuts = evidence.cuts_known(told, entity.node)
    return any(
        (name == "applied" or reading.value == one.value) and (anew or reading.cuts == cuts)
        for reading in evidence.truths(entity, name, earliest, at)
    )


def _was_heard(evidence: Evidence, told: Told, entity: EntityId, name: str) -> bool:
    """Whether a parent heard of its agent just then; an agent knows of itself that it is."""
    if not evidence.keeps(told.process, entity.node):
        return True
    earliest, latest = _when(evidence, told, told.view.observed[name].age_ms)
    heard = evidence.arrived.get((told.life, str(entity.node)), [])
    return any(earliest <= one <= latest for one in heard)


def _when(evidence: Evidence, told: Told, age_ms: int) -> tuple[int, int]:
    """From when to when that was which was told to be so many whole milliseconds old."""
    earliest = evidence.ago(told.life, told.at, (age_ms + 1) * MS)
    return earliest - ROUNDED_NS, evidence.ago(told.life, told.at, age_ms * MS) + ROUNDED_NS


def drifted(evidence: Evidence, ns: int) -> int:
    """How long this takes at most by the world's clock, when it is counted by another one."""
    return ns * 1_000_000 // (1_000_000 - evidence.world.drift_ppm)


def what_is_told_is_not_stale(evidence: Evidence) -> None:
    """I8: what nobody could look at for so long that its looks are overdue is not told as known."""
    for told in evidence.told:
        entity = parse_entity(told.view.entity)
        for name, one in told.view.observed.items():
            near = evidence.looks_itself(told.process, entity, name)
            if one.known and near and one.by != "sync":
                lives_ms = evidence.lives_ms(entity.kind, name)
                assert one.age_ms <= lives_ms, f"I8: {name} is stale: {told}"


def what_is_told_can_be_known(evidence: Evidence) -> None:
    """I8: a value is told as known only while what its look requires is known too.

    Nothing here looks at the power of a machine without a platform, so its hellos alone count.
    """
    known = {
        (one.at, one.life, one.view.entity): {
            name: seen.value for name, seen in one.view.observed.items() if seen.known
        }
        for one in evidence.told
    }
    for told in evidence.told:
        entity = parse_entity(told.view.entity)
        own = known[told.at, told.life, told.view.entity]
        around = known.get((told.at, told.life, f"node:{entity.node}"), {})
        values = own | {f"node.{name}": value for name, value in around.items()}
        alone = entity.kind == "node" and "platform" not in told.view.attributes
        for name in own.keys() - ({"agent"} if alone else set()):
            ways = evidence.ways_to_know(entity.kind, name)
            assert not ways or any(
                all(values.get(one.name) in one.values for one in way) for way in ways
            ), f"I8: {name} cannot be known: {told}"


def processes_never_return(evidence: Evidence) -> None:
    """I5: once a later process of a neighbour was heard, nothing of an earlier one is."""
    speaks = evidence.world.speaks
    began = {boot: number for number, boot in enumerate(speaks)}
    latest: dict[tuple[int, str], int] = {}
    for entry in evidence.world.tape:
        if isinstance(entry.what, Heard):
            # Whom an agent follows is "parent" to it, whoever that is.
            key = entry.life, speaks[entry.what.boot]
            number = began[entry.what.boot]
            assert number >= latest.get(key, 0), f"I5: heard of a process that is gone: {entry}"
            latest[key] = number


def every_intent_ends(evidence: Evidence) -> None:
    """I14: a step is called before its deadline, and its intent is closed within its limits."""
    now = evidence.world.clock.now
    opened = {key: (disk, at) for disk in evidence.world.disks for key, at in disk.opened.items()}
    for one in evidence.taken:
        assert one.at < one.deadline_at, f"I14: called too late: {one}"
        ends_at = one.clock.later(one.intent.began_at, one.step.within_ms * MS)
        assert one.deadline_at <= ends_at + ROUNDED_NS, one
    for id, (disk, at) in opened.items():
        intent = evidence.meant[id]
        step = evidence.steps[intent.module, intent.step]
        ends_at = at + (step.within_ms + step.late_ms) * MS + READ_WITHIN_S_MAX * S
        gone = disk is not evidence.live_disk(disk.name) or any(lost >= at for lost in disk.lost)
        assert gone or evidence.closed_at.get(id, now) <= ends_at, f"I14: never ends: {intent}"


CHECKS: tuple[Callable[[Evidence], None], ...] = (
    intents_come_first,
    power_is_read_between_commands,
    outcomes_are_read_between_steps,
    steps_start_from_what_is_known,
    what_is_told_was_read,
    what_is_told_is_not_stale,
    what_is_told_can_be_known,
    processes_never_return,
    every_intent_ends,
    *harm.CHECKS,
)
