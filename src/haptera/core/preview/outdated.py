"""Changes of what a plan stands on, in words, by comparison with today's plan."""

from collections.abc import Iterable, Iterator, Mapping

from haptera.kinds.rules import freeze
from haptera.model.answers.plan import Plan, PlanGroup, Rewrite
from haptera.model.errors import HapteraError
from haptera.selectors.nodeset import expand, fold

# One entity: its title, and the node it is on.
_Who = tuple[str, str | None]


def outdated(then: Plan, now: Plan) -> Iterator[str]:
    """Each thing that is otherwise by now; nothing where the plan still holds."""
    yield from _parts(then.parts, now.parts)
    yield from _desired(then.rewrites, now.rewrites)
    yield from _observed(then.groups, now.groups)
    yield from _frozen(then.groups, now.groups)


def _parts(then: Mapping[str, str], now: Mapping[str, str]) -> Iterator[str]:
    for name in sorted(then.keys() | now.keys()):
        if name not in now:
            yield f"parts: no module {name} serves it any more"
        elif name not in then:
            yield f"parts: module {name} serves it now, too"
        elif then[name] != now[name]:
            yield f"parts: module {name} has other parts than then"


def _desired(then: Iterable[Rewrite], now: Iterable[Rewrite]) -> Iterator[str]:
    """What is to be changed, and from what."""
    before, after = _by_value(then), _by_value(now)
    alike: dict[tuple[str, str], list[str | None]] = {}
    for key in sorted(before.keys() | after.keys(), key=str):
        (of, on), name = key
        if (text := _rewritten(before.get(key), after.get(key))) is not None:
            alike.setdefault((of, f"{name or 'what is declared'} {text}"), []).append(on)
    for (of, text), nodes in alike.items():
        yield f"desired: {_named(of, nodes)}: {text}"


def _rewritten(then: Rewrite | None, now: Rewrite | None) -> str | None:
    """How the change of one value is another by now; None where it is not."""
    if then is None:
        assert now is not None
        return f"is {_value(now.before)} now, and would be changed too"
    if now is None:
        return f"needs no change any more (it was to become {_value(then.after)})"
    if (then.before, then.owner_before) != (now.before, now.owner_before):
        was, isnow = _owned(then.before, then.owner_before), _owned(now.before, now.owner_before)
        return f"was {was} then, is {isnow} now"
    if (then.after, then.owner) != (now.after, now.owner):
        return f"would become {_owned(now.after, now.owner)} now, not {_value(then.after)}"
    return None


def _observed(then: Iterable[PlanGroup], now: Iterable[PlanGroup]) -> Iterator[str]:
    """How entities stand that it would start, and how they would go on."""
    before, after = _by_entity(then), _by_entity(now)
    alike: dict[tuple[str, str], list[str | None]] = {}
    for who in sorted(before.keys() | after.keys(), key=str):
        of, on = who
        for text in _stands(before.get(who), after.get(who)):
            alike.setdefault((of, text), []).append(on)
    for (of, text), nodes in alike.items():
        yield f"observed: {_named(of, nodes)}: {text}"


def _frozen(then: Iterable[PlanGroup], now: Iterable[PlanGroup]) -> Iterator[str]:
    """What holds those that both plans would start."""
    before, after = _holds(then), _holds(now)
    alike: dict[tuple[str, str], list[str | None]] = {}
    for who in sorted(before.keys() & after.keys(), key=str):
        (of, on), was, isnow = who, before[who], after[who]
        if was != isnow:
            text = f"was {was or 'not frozen'} then, is {isnow or 'not frozen'} now"
            alike.setdefault((of, text), []).append(on)
    for (of, text), nodes in alike.items():
        yield f"freezes: {_named(of, nodes)}: {text}"


def _holds(groups: Iterable[PlanGroup]) -> dict[_Who, str | None]:
    """What holds each entity, in words; None where nothing does."""
    holds: dict[_Who, str | None] = {}
    for group in groups:
        holds |= {(group.of, on): None for on in _nodes(group.on)}
        for one in group.frozen:
            text = freeze.words(one.owner, one.until_s, one.reason)
            holds |= {(group.of, on): text for on in _nodes(one.on)}
    return holds


def _stands(then: PlanGroup | None, now: PlanGroup | None) -> Iterator[str]:
    if then is None:
        yield "would be started now, too"
    elif now is None:
        yield "would not be started any more"
    elif (then.state, then.goal) != (now.state, now.goal):
        for name in sorted(then.state.keys() | now.state.keys()):
            was, isnow = then.state.get(name), now.state.get(name)
            if was != isnow:
                yield f"{name} was {_value(was)} then, is {_value(isnow)} now"
        if then.goal != now.goal:
            yield "has another goal now"
    elif (then.chain, then.why) != (now.chain, now.why):
        yield "has another plan now"
    elif then.services != now.services:
        yield f"would hit {now.services or 'no service'} now, not {then.services or 'none'}"


def _by_value(rewrites: Iterable[Rewrite]) -> dict[tuple[_Who, str | None], Rewrite]:
    return {((one.of, on), one.name): one for one in rewrites for on in _nodes(one.on)}


def _by_entity(groups: Iterable[PlanGroup]) -> dict[_Who, PlanGroup]:
    return {(one.of, on): one for one in groups for on in _nodes(one.on)}


def _nodes(on: str | None) -> Iterable[str | None]:
    """The nodes one by one; a node-set that is longer than one may be is left as it is."""
    if on is None:
        return (None,)
    try:
        return expand(on)
    except HapteraError:
        return (on,)


def _named(of: str, nodes: Iterable[str | None]) -> str:
    on = fold(one for one in nodes if one is not None)
    return f"{of} on {on}" if on else of


def _owned(value: str | int | None, owner: str | None) -> str:
    return _value(value) if owner is None else f"{_value(value)} ({owner})"


def _value(value: str | int | None) -> str:
    return "nothing" if value is None else str(value)
