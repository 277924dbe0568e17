"""Two modules that undo each other: the same step done three times, and each time for nothing.

What a step brought about was undone by a step of another module, which set its variable to
something else, or took away what a look at it requires. Then nothing more is done on the entity,
and both modules are named. That thaws by itself: after a back-off that doubles, when a reading
changes that neither wrote, and with all that lets what failed be tried again (`Row.relent`).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile
from typing import Final

from haptera.core.state.entity.attempts import Oscillation
from haptera.core.state.limits import LASTS_NS, MS, S
from haptera.core.state.row import EntityState
from haptera.model.parts import Requirement, Step
from haptera.model.policy import Policy
from haptera.model.walltime import duration
from haptera.planner.domain.domain import Domain

# How often a step may be done within `LASTS_NS` and be undone each time by another module's.
UNDONE_MAX: Final = 3
# What stood as desired for so long has come somewhere, whatever becomes of it then.
STEADY_NS: Final = 30 * S
# What an entity's parts call the variables of its node.
NODE: Final = "node."
ADVICE: Final = "both modules do what they declare: fix one of them, or change the desired values"


@dataclass(frozen=True, slots=True)
class Scene:
    """An entity and its node, each with its class; `node` is None for a node itself."""

    row: EntityState
    domain: Domain
    node: tuple[EntityState, Domain] | None = None


@dataclass(frozen=True, slots=True)
class DoneStep:
    """A step that worked; `prefix` stands before its variables in the conditions of the entity."""

    at: int
    step: Step
    prefix: str = ""


def oscillates(scene: Scene, step: Step, policy: Policy, now: int) -> Oscillation | None:
    """What keeps this step, the next of the entity's chain, from being taken; or nothing does."""
    row, last = scene.row, scene.row.attempts.oscillation
    early = last is not None and now < last.until
    if last is not None and early and not _thaws(row, last, now):
        return last
    wished_at = (
        row.attempts.relented_at if scene.node is None else scene.node[0].attempts.relented_at
    )
    since = max(row.attempts.forgiven_at, wished_at, now - LASTS_NS) if last is None else last.at
    done = sorted(_done(scene, since), key=lambda one: one.at)
    undone = _undone(scene, step, done)
    if len(undone) < (UNDONE_MAX if last is None else 1):
        return None
    rounds = 1 if last is None else last.rounds + 1
    began_at, words = undone[0]
    text = (
        f"oscillates: {words} ({len(undone)} times in {duration((now - began_at) // MS)}); {ADVICE}"
    )
    wrote = frozenset(change.variable for one in done for change in one.step.changes)
    return Oscillation(
        at=now,
        until=now + policy.wait_ms(rounds, 1.0) * MS,
        rounds=rounds,
        text=text if last is None else last.text,
        wrote=wrote,
        bystanders=_bystanders(row, wrote),
        thaws_at=now + policy.backoff_ms_max * MS if early else last.thaws_at if last else now,
    )


def rest(row: EntityState, now: int) -> None:
    """Called while the entity stands as desired: before long, what was before counts no more."""
    if row.stance.lasted(now) >= STEADY_NS:
        row.attempts.forgive()


def _thaws(row: EntityState, last: Oscillation, now: int) -> bool:
    """Whether a reading that neither wrote is another than it was; a flapping one is not news."""
    return now >= last.thaws_at and last.bystanders != _bystanders(row, last.wrote)


def _done(scene: Scene, since: int) -> Iterator[DoneStep]:
    """What worked on the entity and on its node."""
    stages = [(scene.row, scene.domain, "")]
    if scene.node is not None:
        stages.append((*scene.node, NODE))
    for row, domain, prefix in stages:
        steps = {step.path: step for step in domain.steps}
        for one in row.attempts.tried:
            if one.worked and one.at > since and one.path in steps:
                yield DoneStep(one.at, steps[one.path], prefix)


def _undone(scene: Scene, step: Step, done: list[DoneStep]) -> list[tuple[int, str]]:
    """When the step was done, the last times on end that it was undone, and how, in words."""
    on_end: list[tuple[int, str]] = []
    for number, one in enumerate(done):
        if one.step is step:
            until_again = takewhile(lambda other: other.step is not step, done[number + 1 :])
            ways = (words for other in until_again if (words := _undoes(scene, step, other)))
            words = next(ways, None)
            on_end = [] if words is None else [*on_end, (one.at, words)]
    return on_end


def _undoes(scene: Scene, step: Step, other: DoneStep) -> str | None:
    """How another module's step undoes this one's; None: it does not."""
    if other.step.module == step.module:
        return None
    for made in step.changes:
        did = f"{step.path} sets {made.variable} to {made.target}"
        for change in other.step.changes:
            name = other.prefix + change.variable
            if name == made.variable and change.target != made.target:
                return f"{did}, {other.step.path} sets it back to {change.target}"
            if _rules_out(scene, made.variable, made.target, name, change.target):
                return (
                    f"{did}, {other.step.path} takes that away, setting {name} to {change.target}"
                )
    return None


def _rules_out(scene: Scene, variable: str, value: str, name: str, to: str) -> bool:
    """Whether no look can find this value of a variable where another variable is so."""
    domain, local = scene.domain, variable
    if scene.node is not None and variable.startswith(NODE):
        domain, local = scene.node[1], variable.removeprefix(NODE)
    prefix = variable.removesuffix(local)
    looks = [one for one in domain.looks if one.at == local and value in one.outcomes]
    return bool(looks) and all(
        any(_breaks(scene, one, prefix, name, to) for one in look.requires) for look in looks
    )


def _breaks(scene: Scene, needed: Requirement, prefix: str, name: str, to: str) -> bool:
    needs = prefix + needed.name
    if needs == name:
        return to not in needed.values
    return all(_rules_out(scene, needs, one, name, to) for one in needed.values)


def _bystanders(row: EntityState, wrote: frozenset[str]) -> dict[str, str]:
    """What is known of variables that none of the steps wrote."""
    return {
        name: row.value(name, one) for name, one in row.belief.known.items() if name not in wrote
    }
