"""The kinds that come with haptera, each declared once."""

from collections.abc import Mapping

from haptera.kinds import budget, freeze, module, node, policy, service
from haptera.model.desirable import nearest
from haptera.model.errors import HapteraError
from haptera.model.schema import Kind
from haptera.model.selector import Selector

KINDS: Mapping[str, Kind] = {
    one.kind.name: one.kind for one in (node, service, module, freeze, policy, budget)
}


def check_kind(selector: Selector) -> Selector:
    """The selector, unless it is for a kind that there is not.

    Raises:
        HapteraError: it is, and so would never mean anything.
    """
    if selector.kind is not None and selector.kind not in KINDS:
        raise HapteraError(f"there is no kind {selector.kind!r}", do=nearest(selector.kind, KINDS))
    return selector
