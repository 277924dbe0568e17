"""A plan in words, for terminals: each group's chain, what it takes and hits, and the worst."""

from collections import Counter
from collections.abc import Iterator, Mapping

from haptera.cli.output.printing import Format, print_entities, say
from haptera.cli.output.words import chain_lines, printable
from haptera.kinds.rules import freeze
from haptera.model.answers.plan import Plan, PlanFreeze, PlanGroup, Worst
from haptera.model.walltime import duration
from haptera.rest.schemas import AppliedView
from haptera.selectors.nodeset import expand, fold

_NOTHING = "nothing would run: everything already matches"


def print_plan(answer: AppliedView) -> None:
    """What would run, group by group, and what to call it by."""
    print_groups(answer.plan)
    print_sum(answer.plan)
    if answer.wide:
        say(f"to apply it, confirm it: --digest {answer.plan.digest}", fg="yellow")


def print_groups(plan: Plan) -> None:
    """Each group in a paragraph of its own."""
    for group in plan.groups:
        say(f"\n{group.title} ({group.entities})")
        for line in group_lines(group):
            alarming = "DISRUPTIVE" in line or line.startswith("hits")
            say(f"  {printable(line)}", fg="yellow" if alarming else None)


def print_sum(plan: Plan) -> None:
    """What holds of the plan as a whole, its digest last."""
    for line in _sum_lines(plan):
        say(line)


def planned_entities(plan: Plan) -> Iterator[str]:
    """Each entity that would go elsewhere by it."""
    for group in plan.groups:
        kind, _, name = group.of.partition(" ")
        if group.on is None:
            yield f"{kind}:{name}"
        else:
            yield from (
                f"{kind}:{name}@{node}" if name else f"{kind}:{node}" for node in expand(group.on)
            )


def group_lines(group: PlanGroup) -> Iterator[str]:
    """One group in words."""
    yield f"{_values(group.state)} -> {_values(group.goal)}"
    yield from chain_lines(group.chain)
    if not group.chain or group.why:
        yield f"{group.condition}: {group.why or 'no reason is known'}"
    if group.chain:
        yield f"costs {group.cost}; {_takes(group)}{_rounds(group)}"
    if group.worst is not None:
        yield _worst(group, group.worst)
    if group.services is not None:
        yield f"hits {group.services}"
    if group.busy is not None:
        yield f"waits for the jobs of {group.busy}"
    yield from (_frozen(group, one) for one in group.frozen)


def _frozen(group: PlanGroup, one: PlanFreeze) -> str:
    """Those on which no step begins before a freeze ends, named where these are not all."""
    who = "" if one.entities == group.entities else f"{one.on} "
    words = freeze.words(one.owner, one.until_s, one.reason)
    return f"{one.entities} wait until thawed: {who}{words}"


def _takes(group: PlanGroup) -> str:
    """How long it usually takes, as far as that was measured."""
    unmeasured = ", ".join(group.unmeasured)
    parts = list(dict.fromkeys(link.part for link in group.chain))
    if len(group.unmeasured) == len(parts):
        return f"duration unknown: {unmeasured} not yet measured"
    rest = f"; {unmeasured} not yet measured" if unmeasured else ""
    return f"estimated {duration(group.usual_ms)}{rest}"


def _rounds(group: PlanGroup) -> str:
    """In how many rounds the budgets let them go, where it is not one, and how long that takes."""
    if group.rounds is None:
        return "; the budgets allow none at once"
    if group.rounds == 1:
        return ""
    takes = f", {duration(group.at_least_ms)} at least" if group.at_least_ms else ""
    return f"; in {group.rounds} rounds by the budgets{takes}"


def _worst(group: PlanGroup, worst: Worst) -> str:
    """What may come of it at the worst, where it begins with a look."""
    told = [
        f"{one.entities} {one.part}{' DISRUPTIVE' if one.disruptive else ''}" for one in worst.steps
    ]
    told += [] if any(one.disruptive for one in worst.steps) else ["0 disrupted"]
    told += [f"{worst.stuck} stuck"] if worst.stuck else []
    unknown, more = ", ".join(worst.unknown), "" if worst.whole else "; more may come"
    return f"{group.entities} with {unknown} unknown: at most {', '.join(told)}{more}"


def _sum_lines(plan: Plan) -> Iterator[str]:
    """What holds of the plan as a whole."""
    if not plan.groups:
        yield "nothing would run" if plan.anyway or plan.disrupted else _NOTHING
    if plan.groups or plan.anyway or plan.disrupted:
        yield ""
    yield from _forgets(plan)
    if plan.anyway:
        each = ", ".join(f"{count} {condition}" for condition, count in plan.anyway.items())
        yield f"already not as desired: {each}"
    if plan.groups or plan.disrupted:
        on = "" if plan.disrupted is None else f": {plan.disrupted}"
        if plan.brake is not None:
            yield f"the brake is on, and nothing DISRUPTIVE begins: {plan.brake}"
        yield f"disrupts up to {plan.disrupted_nodes} of {plan.nodes} nodes{on}"
        yield f"plan {plan.digest}"


def _forgets(plan: Plan) -> Iterator[str]:
    """What is declared no more, whatever its attributes were."""
    titles: dict[str, list[str]] = {}
    for one in plan.rewrites:
        if one.undeclares:
            titles.setdefault(one.of, []).extend(expand(one.on) if one.on is not None else ())
    for of, nodes in titles.items():
        yield f"forgets {of} on {fold(nodes)} ({len(nodes)})" if nodes else f"forgets {of}"


def _values(values: Mapping[str, str]) -> str:
    return " ".join(f"{name}={value}" for name, value in values.items())


def show_planned(answer: AppliedView, output: str) -> None:
    """What would be changed, and what would run then."""
    if not Format(output).for_people:
        print_entities([*planned_entities(answer.plan)], answer, output)
        return
    say(f"{counted(answer)} at revision {answer.revision}")
    print_plan(answer)


def counted(answer: AppliedView) -> str:
    """The number of changes of each sort."""
    counts = Counter(change.does for change in answer.changes)
    each = ", ".join(f"{count} {does}" for does, count in sorted(counts.items()))
    total = len(answer.changes)
    return f"{total} change{'' if total == 1 else 's'}{f' ({each})' if each else ''}"
