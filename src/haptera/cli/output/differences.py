"""Differences in lines, those that are alike on many nodes together."""

from collections.abc import Iterable, Iterator

from haptera.cli.output.words import printable
from haptera.model.entity import parse_entity
from haptera.rest.schemas import DifferenceView
from haptera.selectors.nodeset import fold, natural


def lines(differences: Iterable[DifferenceView]) -> Iterator[str]:
    """Each difference in one line or two, those that are alike on many nodes together."""
    alike: dict[tuple[str, str, str], list[str]] = {}
    for one in differences:
        entity = parse_entity(one.entity)
        at = "" if entity.node is None or entity.kind == "node" else f"{entity.name}@"
        alike.setdefault((f"{entity.kind}:{at}", _minus(one), _plus(one)), []).append(
            entity.node or entity.name
        )
    told = [(f"{title}{fold(nodes)}", *signs) for (title, *signs), nodes in alike.items()]
    for title, *signs in sorted(told, key=lambda one: (natural(one[0]), one[1:])):
        yield from (f"{sign[0]}{title}{sign[1:]}" for sign in signs if sign)


def _minus(one: DifferenceView) -> str:
    if one.before is None:
        return ""
    owner = "" if one.owner is None else f"  ({one.owner})"
    return f"-{_value(one.name, one.before)}{owner}"


def _plus(one: DifferenceView) -> str:
    return "" if one.after is None else f"+{_value(one.name, one.after)}"


def _value(name: str | None, value: str | int) -> str:
    return "" if name is None else f" {name}={printable(str(value))}"
