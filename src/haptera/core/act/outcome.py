"""The outcome of a step by what was read, and how sure the readings were that it starts from."""

from collections.abc import Iterable

from haptera.core.state.entity.work import StepRun
from haptera.core.state.row import EntityState
from haptera.core.sync.presence import MODULE as SYNC
from haptera.model.facts import Method
from haptera.model.parts import Change, Step
from haptera.planner.domain.domain import Domain


def needed(domain: Domain, variable: str) -> set[str]:
    """What the looks at a variable require to be known."""
    looks = [look for look in domain.looks if look.at == variable]
    return {one.name for look in looks for one in look.requires}


def results(step: Step) -> list[Change]:
    """The changes that tell whether a step worked: those it makes rather than hopes for."""
    return [change for change in step.changes if not change.expected] or list(step.changes)


def agreed_ns(row: EntityState, step: Step) -> int:
    """Over how long readings have agreed on what the step starts from."""
    known = [(row.belief.known.get(one.variable), one.variable) for one in results(step)]
    return min(0 if fact is None else fact.at - row.belief.found_at[name] for fact, name in known)


def found(row: EntityState, change: Change, since: int) -> bool:
    """Whether a look begun after `since` has read what the change makes."""
    fact = row.belief.known.get(change.variable)
    return (
        fact is not None
        and fact.method is Method.READ
        and fact.at > since
        and row.value(change.variable, fact) == change.target
    )


def is_over(
    row: EntityState, change: Change, stepping: StepRun, domain: Domain, state: int
) -> bool:
    """True where the result of a change is known: read since, or out of any look's reach."""
    fact = row.belief.known.get(change.variable)
    if fact is not None:
        return fact.method is Method.READ and fact.at >= stepping.settled_at
    if domain.knowable(state, change.variable, change.target):
        return False
    # That it is out of reach must have been read after the step's last effect, too.
    around = [
        row.belief.known[name]
        for name in needed(domain, change.variable)
        if name in row.belief.known
    ]
    return all(one.at >= stepping.settled_at for one in around if one.by != SYNC)


def changed_nothing(row: EntityState, stepping: StepRun) -> bool:
    """True where all that a step changes was read, after its last effect, as it was before.

    Of nodes alone: these alone have an agent, by whose life it is known what they went through.
    """
    if not stepping.step.disruptive or row.kind.name != "node" or stepping.enrolled:
        return False
    facts = [(one, row.belief.known.get(one.variable)) for one in results(stepping.step)]
    return all(
        fact is not None
        and fact.method is Method.READ
        and fact.at >= stepping.settled_at
        and row.value(one.variable, fact) in one.sources
        for one, fact in facts
    )


def without_effect(row: EntityState, step: Step, due: Iterable[Change]) -> str:
    """In words: what was read instead of what the step makes."""
    read = ", ".join(
        row.seen_to_be(one.variable, row.belief.known[one.variable])
        if one.variable in row.belief.known
        else f"{one.variable} is not known"
        for one in due
    )
    return f"{step.path}: returned, but {read}"
