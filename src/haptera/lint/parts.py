"""The lint's rules for parts: conditions that clash, and results that do not last."""

from collections.abc import Iterable, Iterator
from functools import reduce
from itertools import islice
from operator import or_

from haptera.lint.demands import Clash, clash, demands, spoken
from haptera.lint.reachability import Reachability
from haptera.lint.subject import LintSubject, example, nearest
from haptera.model.answers.finding import Finding, Rule
from haptera.model.parts import Change, Look, Part, Requirement, Step
from haptera.planner.domain.bitstate import Operator
from haptera.planner.domain.domain import Domain, unmet
from haptera.planner.domain.witness import Witness
from haptera.planner.reasons.achievers import named


def never(subject: LintSubject, part: Part) -> Iterator[Finding]:
    """Whether no state of any class meets its conditions."""
    subject.check_complete()
    having = subject.having(part)
    if not having:
        yield _of_no_class(subject, part)
    elif not any(one.states.find(-1, move) for one, move in having):
        one = _richest(having)
        found = clash(one, demands(part, one.domain.fields), -1)
        assert found is not None, "what no witness is found for clashes"
        alone = "" if len(found.demands) > 1 else ", which can never be known"
        text = f"no knowable state meets its conditions: it {found.text}{alone}"
        shown = nearest(one.domain, found)
        yield subject.finding(_rule_of(part), part, text, *shown, fix=_mend(found))


def never_comes_up(subject: LintSubject, part: Part) -> Iterator[Finding]:
    """Whether its conditions hold in some states, but in none that can come about."""
    subject.check_complete()
    having = subject.having(part)
    if not any(one.states.find(-1, move) for one, move in having):
        return
    if any(one.find(-1, move) for one, move in having):
        return
    one = _richest(having)
    found = clash(one, demands(part, one.domain.fields), one.possible)
    assert found is not None, "what no witness is found for clashes"
    text = f"it can never run: it {found.text}, and no part leads there"
    fix = f"add a look that finds {_wanted(found)}, or a step or a time-out that leads to it"
    shown = nearest(one.domain, found)
    yield subject.finding(Rule.NEVER_COMES_UP, part, text, *shown, fix=fix)


def result(subject: LintSubject, step: Step) -> Iterator[Finding]:
    """Whether what it brings about is forgotten at once: always, or in some states."""
    for change in step.changes:
        if not change.expected:
            yield from _never_kept(subject, step, change) or _may_be_lost(subject, step, change)


def never_kept(subject: LintSubject, step: Step) -> Iterator[Finding]:
    """Whether it is forgotten at once, always."""
    for change in step.changes:
        if not change.expected:
            yield from _never_kept(subject, step, change)


def _never_kept(subject: LintSubject, step: Step, change: Change) -> list[Finding]:
    subject.check_complete()
    having = subject.having(step)
    if any(one.states.find(-1, move, _kept(one, change)) for one, move in having):
        return []
    taken = (
        (one, move, found)
        for one, move in having
        if (found := one.states.find(-1, move)) is not None
    )
    return [_always_lost(subject, change, *one) for one in islice(taken, 1)]


def _always_lost(
    subject: LintSubject, change: Change, one: Reachability, move: Operator, found: Witness
) -> Finding:
    what = f"{change.variable}={change.target}"
    because = _because(one.domain, change, found)
    text = f"its result {what} is always forgotten at once: {because}"
    shown, fix = example(one.domain, found, move), _keep(one, move, change, found)
    return subject.finding(Rule.NEVER_KEPT, move.part, text, shown, fix=fix)


def _may_be_lost(subject: LintSubject, step: Step, change: Change) -> list[Finding]:
    for one, move in subject.having(step):
        found = one.find(-1, move, _lost(one, change))
        if found is not None:
            what = f"{change.variable}={change.target}"
            because = _because(one.domain, change, found)
            text = f"its result {what} may be forgotten at once: {because}"
            fix = _keep(one, move, change, found)
            shown = example(one.domain, found, move)
            return [subject.finding(Rule.MAY_BE_LOST, step, text, shown, fix=fix)]
    return []


def _kept(one: Reachability, change: Change) -> int:
    field = one.domain.fields[change.variable]
    return ~field.whole | field.holding((change.target,))


def _lost(one: Reachability, change: Change) -> int:
    field = one.domain.fields[change.variable]
    return ~field.whole | field.holding((change.target,)) << field.width


def _looks(domain: Domain, change: Change) -> list[Look]:
    """Those of the class by which the change's target can be known (semantics.md, Knowable)."""
    looks = [look for look in domain.looks if look.at == change.variable]
    finding = [look for look in looks if change.target in look.outcomes]
    return finding or looks


def _because(domain: Domain, change: Change, found: Witness) -> str:
    """Why no look can find the result in the state after the step."""
    looks = _looks(domain, change)
    if not looks:
        return f"no look at {change.variable} is for this class"
    return spoken(
        f"{look.path} requires {_told(_unmet(domain, look, found.after))}" for look in looks
    )


def _keep(one: Reachability, move: Operator, change: Change, found: Witness) -> str:
    """What to do for the result to be kept: requiring what a look requires, where that helps."""
    looks = _looks(one.domain, change)
    if not looks:
        return f"add a look at {change.variable} for this class, or remove the step from it"
    expect = f"declare {change.target} as only expected"
    for look in looks:
        lacking = _unmet(one.domain, look, found.after)
        shut = reduce(or_, (unmet(each, one.domain.fields) for each in lacking), 0)
        kept, lost = (one.states.find(~shut, move, to(one, change)) for to in (_kept, _lost))
        if kept and not lost:
            return f"make it require {_told(lacking)}, or {expect}"
    return f"do not change what the look requires, or {expect}"


def _unmet(domain: Domain, look: Look, state: int) -> list[Requirement]:
    known = domain.known(state)
    return [
        one
        for one in look.requires
        if one.name in domain.fields and known.get(one.name) not in one.values
    ]


def _told(conditions: Iterable[Requirement]) -> str:
    return spoken(named(one.name, one.values) for one in conditions)


def _richest(having: list[tuple[Reachability, Operator]]) -> Reachability:
    """The class in which the most can be known: what clashes there, does not for want of looks."""
    return max((one for one, _ in having), key=lambda one: len(one.moves))


def _rule_of(part: Part) -> Rule:
    return Rule.NEVER_OPENS if isinstance(part, Look) else Rule.NEVER_APPLIES


def _of_no_class(subject: LintSubject, part: Part) -> Finding:
    attributes = subject.problem.attributes
    conditions = [
        f"{verb} {named(one.name, one.values)}"
        for verb, some in (("requires", part.requires), ("excludes", part.excludes))
        for one in some
        if one.name in attributes
    ]
    text = f"no entity can have the attributes that it needs: it {spoken(conditions)}"
    fix = "remove one of these conditions, or split it into two parts"
    return subject.finding(_rule_of(part), part, text, fix=fix)


def _mend(found: Clash) -> str:
    if len(found.demands) == 1:
        return f"add a look that can find {_wanted(found)}, or remove that condition"
    return "remove or correct one of these conditions"


def _wanted(found: Clash) -> str:
    return spoken(dict.fromkeys(one.what for one in found.demands))
