"""How many of some entities may be disrupted at once, and how often, on one side of a tree."""

from haptera.kinds.rule import OF_BYTES_MAX, parse_rule
from haptera.model.desired_check import between
from haptera.model.errors import HapteraError
from haptera.model.schema import Kind, Plain
from haptera.selectors.budget import Per

COUNT_MAX = 1_000_000


def _check_per(text: str) -> None:
    if text not in list(Per):
        raise HapteraError(f"{text!r} is nothing to count by", do=f"write {', '.join(Per)}")


# Without it, all entities.
of = Plain("budget", "of", str, OF_BYTES_MAX, parse_rule)
per = Plain("budget", "per", str, 8, _check_per)
at_once = Plain("budget", "at_once", int, 8, between(0, COUNT_MAX))
# In percent, of the entities that are there.
share = Plain("budget", "share", int, 8, between(0, 100))
per_hour = Plain("budget", "per_hour", int, 8, between(0, COUNT_MAX))

kind = Kind("budget", (), plain=(of, per, at_once, share, per_hour))
