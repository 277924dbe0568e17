"""What rules (freezes, policies, budgets) may be of: names, groups and attributes of nodes."""

from typing import Final

from haptera.kinds.extensions import TAKEN, node_kind
from haptera.model.declared.desired_check import nearest
from haptera.model.errors import ParseError
from haptera.selectors.selector import Selector, parse_selector
from haptera.selectors.selector_ast import (
    CONDITION,
    NODE,
    Age,
    Amount,
    Comparison,
    Datum,
    StateLayer,
    parts_of,
)
from haptera.selectors.text_cursor import place

# An agent is told of each rule, in a datagram.
OF_BYTES_MAX: Final = 512


def parse_rule(text: str) -> Selector:
    """Read the selector of a rule.

    Raises:
        HapteraError: it is none, or asks for what changes while the rule holds, or for what an
            agent cannot know of others.
    """
    selector = parse_selector(text)
    for part in parts_of(selector.choice):
        if isinstance(part, Amount):
            what, do = _changing(part.series)
        elif isinstance(part, Age) or (isinstance(part, Comparison) and not _lasts(part.datum)):
            what, do = _wrong(part.datum)
        else:
            continue
        raise ParseError(what, where=place("selector", text, part.datum.at), do=do)
    return selector


def _lasts(datum: Datum) -> bool:
    datum = datum.resolved(TAKEN)
    return _of_node(datum) and node_kind().attribute(datum.name) is not None


def _of_node(datum: Datum) -> bool:
    return datum.layer is StateLayer.KNOWN and datum.kind in (None, NODE)


def _wrong(datum: Datum) -> tuple[str, str]:
    """What is wrong with a rule that goes by this, and what to do instead."""
    datum = datum.resolved(TAKEN)
    if _of_node(datum) and node_kind().named(datum.name) is None and datum.name != CONDITION:
        names = [one.name for one in node_kind().attributes]
        return f"nodes have no attribute {datum.name!r}", nearest(datum.name, names)
    return _changing(str(datum))


def _changing(name: str) -> tuple[str, str]:
    return (
        f"a rule cannot select by {name}: it must hold in every state",
        "select by nodes, groups or attributes; haptera get -o name SELECTOR prints what matches"
        " now",
    )
