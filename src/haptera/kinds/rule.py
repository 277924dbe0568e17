"""What rules (freezes, policies, budgets) may be of: names, groups and attributes of nodes."""

from typing import Final

from haptera.kinds import node
from haptera.model.choice import NODE, Age, Comparison, Datum, Layer, parts_of
from haptera.model.errors import HapteraError
from haptera.model.reader import place
from haptera.model.selector import Selector, parse_selector

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
        if isinstance(part, Age) or (isinstance(part, Comparison) and not _lasts(part.datum)):
            raise HapteraError(
                f"a rule cannot go by {part.datum}: it holds whatever state things are in",
                where=place("selector", text, part.datum.at),
                do="name nodes, groups or attributes; haptera get -o name SELECTOR names those"
                " that are so now",
            )
    return selector


def _lasts(datum: Datum) -> bool:
    attribute = node.kind.attribute(datum.name) is not None
    return attribute and datum.layer is Layer.KNOWN and datum.kind in (None, NODE)
