"""The lint's rules for variables: who learns them, and where their values lead."""

from collections.abc import Iterable, Iterator
from functools import reduce
from itertools import islice, permutations
from operator import or_

from haptera.lint.demands import spoken
from haptera.lint.reachability import Reachability
from haptera.lint.subject import LintSubject, example
from haptera.model.answers.finding import Example, Finding, Rule
from haptera.model.chain import Do
from haptera.model.parts import Change, Look, Step
from haptera.planner.domain.bitsets import each
from haptera.planner.domain.bitstate import Field
from haptera.planner.domain.domain import unmet


def _results_in(step: Step, name: str) -> bool:
    """Whether a reading of this variable is to tell what came of the step."""
    firm = {one.variable for one in step.changes if not one.expected}
    return name in firm or not firm


def no_look(subject: LintSubject, name: str) -> Iterator[Finding]:
    """Whether steps change it, and no look of any class is at it.

    What a step only hopes for beside its results is believed by nobody, and needs no correction.
    """
    parts = subject.concerning(name)
    if any(isinstance(part, Look) for part in parts):
        return
    parts = [part for part in parts if isinstance(part, Step) and _results_in(part, name)]
    if not parts:
        return
    taken = (
        example(one.domain, found, move)
        for part in parts
        for one, move in subject.having(part)
        if (found := one.states.find(-1, move)) is not None
    )
    text = f"{spoken(part.path for part in parts)} would never be corrected: no look finds {name}"
    fix = f"add a look at {name}, or a module that has one"
    yield subject.finding(Rule.NO_LOOK, name, text, *islice(taken, 1), fix=fix)


def unserved(subject: LintSubject, name: str) -> Iterator[Finding]:
    """Whether parts require it, and none of these modules ever learns it or brings it about."""
    requiring = [
        part
        for part in subject.problem.parts
        if any(condition.name == name for condition in part.requires)
    ]
    # What is borrowed is served by modules of its own kind.
    if requiring and "." not in name and not subject.concerning(name):
        text = f"it requires {name}, which no part looks at or changes"
        fix = f"take it together with the module that serves {name}, or serve it"
        yield subject.finding(Rule.UNSERVED, requiring[0], text, fix=fix)


def unreachable(subject: LintSubject, name: str) -> Iterator[Finding]:
    """Values that come about in no class."""
    subject.check_complete()
    if not subject.concerning(name):
        return
    bits = 0
    for one in subject.classes:
        bits |= one.possible & one.domain.fields[name].known
    field = subject.classes[0].domain.fields[name]
    values = [_told(field, bit) for bit in each(field.known & ~bits)]
    if values:
        text = f"{name}={' or '.join(values)} never occurs"
        fix = "if it should occur, add a look, a step, or a time-out that leads to it"
        yield subject.finding(Rule.UNREACHABLE_VALUE, name, text, fix=fix)


def dead_end(subject: LintSubject, name: str) -> Iterator[Finding]:
    """Values from which no part leads to another that can come about."""
    told: set[str] = set()
    for one in subject.classes:
        field = one.domain.fields[name]
        steps = [step for step in one.domain.steps if _changes(step, name)]
        known = one.possible & field.known
        for bit in each(known) if steps and known & known - 1 else ():
            value = _told(field, bit)
            if value in told or one.reach(field, bit) & field.known & ~bit:
                continue
            found = one.find(~field.whole | bit)
            if found is not None:
                told.add(value)
                wanted = any(_changes(step, name, value) for step in subject.problem.steps)
                rule = Rule.ONE_WAY if wanted else Rule.DEAD_END
                text = f"once {name} is {value}, no part leads to another value of it"
                fix = f"add a step that starts from {value}, or from any state ('*')"
                yield subject.finding(rule, name, text, example(one.domain, found), fix=fix)


def hope_repeats(subject: LintSubject, name: str) -> Iterator[Finding]:
    """Steps to what no look finds, from where a look has hoped and found something else."""
    told: set[str] = set()
    for one in subject.classes:
        looks = [look for look in one.domain.looks if look.at == name]
        found = {value for look in looks for value in look.outcomes}
        for step in one.domain.steps if looks else ():
            for change in step.changes:
                if step.path in told or change.variable != name or change.target in found:
                    continue
                for look, shown in _repeats(one, step, change, looks):
                    told.add(step.path)
                    yield _hope(subject, step, change, look, shown)


def split_grounds(subject: LintSubject, name: str) -> Iterator[Finding]:
    """Pairs of looks that are never open at once, between which steps carry what is known."""
    told: set[tuple[str, str]] = set()
    for one in subject.classes:
        field = one.domain.fields[name]
        looks = [look for look in one.domain.looks if look.at == name]
        for first, other in permutations(looks, 2):
            pair = min(first.path, other.path), max(first.path, other.path)
            common = field.holding({*first.outcomes} & {*other.outcomes})
            shut, opened = (_shut(one, look) for look in (first, other))
            if pair in told or not common or one.states.find(~(shut | opened)):
                continue
            held = ~field.whole | common
            for move in one.moves.values():
                if move.touches & field.whole or not isinstance(move.link, Do):
                    continue
                found = one.find(held & ~shut, move, held & ~opened)
                if found is not None:
                    told.add(pair)
                    yield _split(subject, name, (first, other), example(one.domain, found, move))
                    break


def _repeats(
    one: Reachability, step: Step, change: Change, looks: Iterable[Look]
) -> Iterator[tuple[Look, Example]]:
    """A look that hopes after the step, and the state from which it is taken anew."""
    field, move = one.domain.fields[change.variable], one.moves[step.path]
    hidden = field.holding((change.target,)) << field.width
    ways = [way for way in one.ways(field) if way.move is move]
    for look in looks:
        if len(look.outcomes) < 2 or not one.find(~field.whole | hidden, one.moves[look.path]):
            continue
        outcomes = field.holding(look.outcomes)
        again = [way for way in ways if way.source & one.reach(field, outcomes)]
        for way in sorted(again, key=lambda way: not way.source & outcomes)[:1]:
            found = one.find(~field.whole | way.source, move, ~field.whole | way.target)
            assert found is not None, "each way has a witness"
            yield look, example(one.domain, found, move)
            return


def _hope(subject: LintSubject, step: Step, change: Change, look: Look, shown: Example) -> Finding:
    name, target = change.variable, change.target
    text = (
        f"it leads to {name}={target}, which no look finds; {look.path} then expects the"
        f" best of {', '.join(look.outcomes)}, and if it finds another, the chain starts again"
    )
    fix = f"declare the expected result of the step: one of the values that {look.path} finds"
    return subject.finding(Rule.HOPE_REPEATS, step, text, shown, fix=fix)


def _split(subject: LintSubject, name: str, looks: tuple[Look, Look], shown: Example) -> Finding:
    first, other = looks
    text = (
        f"a reading of {first.path} stays known after {shown.part}, although only {other.path}"
        " can run then, and never both"
    )
    fix = f"if {name} may be different then, declare that {shown.part} changes it too"
    return subject.finding(Rule.SPLIT_GROUNDS, name, text, shown, fix=fix)


def _shut(one: Reachability, look: Look) -> int:
    """The bits that shut a look; excludes do not count."""
    return reduce(or_, (unmet(each, one.domain.fields) for each in look.requires), 0)


def _changes(step: Step, name: str, target: str | None = None) -> bool:
    """Whether a step changes this variable, and to this, if it is given."""
    return any(one.variable == name and target in (None, one.target) for one in step.changes)


def _told(field: Field, bit: int) -> str:
    value = field.value(bit)
    assert value is not None, "it is the bit of a known value"
    return value
