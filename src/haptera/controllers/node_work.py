"""Whether nodes are to take jobs, as a controller desires it; what others say stays."""

from collections.abc import Mapping
from typing import Final

from haptera.kinds import node
from haptera.kinds.node import WHY_BYTES_MAX, NodeWork
from haptera.model.answers.views import EntityView
from haptera.sdk.failures import cut

# All that is desired of a node's work.
WORK: Final = (node.work.name, node.work_why.name, node.work_until.name)


def work_patch(view: EntityView, owner: str, why: str | None) -> Mapping[str, str | None]:
    """The desired values that drain a node, or with no reason open it again."""
    if said_by_others(view, owner):
        return {}
    wish: dict[str, str | None] = dict.fromkeys(WORK)
    if why is not None:
        wish |= {
            node.work.name: NodeWork.DRAINING.value,
            node.work_why.name: cut(why, WHY_BYTES_MAX),
        }
    return {name: value for name, value in wish.items() if value != view.desired_value(name)}


def said_by_others(view: EntityView, owner: str) -> list[str]:
    """The values of a node's work that a person, the site or another controller desires."""
    return [name for name in WORK if name in view.desired and view.desired[name].owner != owner]


def kept_by_others(view: EntityView, owner: str) -> bool:
    """Whether these say that a node takes no jobs."""
    is_theirs = node.work.name in said_by_others(view, owner)
    return is_theirs and view.desired_value(node.work.name) != NodeWork.OPEN
