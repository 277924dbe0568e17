"""The condition of a group in words for people; pure."""

from collections.abc import Mapping, Sequence

from haptera.controllers.handover import Handover
from haptera.controllers.leadership import Grant, Succession
from haptera.controllers.replication import Settled


def waits(handover: Handover, budget: int) -> str:
    """The ranks that cannot be changed or moved yet, in words."""
    if not handover.waiting:
        return ""
    some = ", ".join(map(str, handover.waiting))
    who = f"rank {some} waits" if len(handover.waiting) == 1 else f"ranks {some} wait"
    return f"{who}, for only {budget} may be down at once"


def in_vain(failed: Mapping[int, Sequence[str]]) -> str:
    """The ranks that come to run nowhere, in words, and the way out."""
    return "; ".join(
        f"rank {one} failed on {', '.join(failed[one])}: retry it" for one in sorted(failed)
    )


def placed(count: int, settled: Settled, near: Sequence[str], dimensions: Sequence[str]) -> str:
    """The placement of a group, in words."""
    by = [one for one in dimensions if one not in near]
    text = f"{len(settled.nodes)} of {count} placed"
    text += " for want of nodes" if settled.unplaced else ""
    text += f", apart by {', '.join(by)}" if by else ""
    return f"{text}, not by {', '.join(near)}" if near else text


def led(grants: Sequence[Grant], next_: Succession) -> str:
    """The leader, in words."""
    held = [one for one in grants if one.wanted and one not in next_.take_back]
    one = next_.grant or next(reversed(held), None)
    if one is None:
        return "nobody leads now"
    return f"rank {one.rank} leads on {one.node} under epoch {one.epoch}"
