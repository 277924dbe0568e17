"""The kinds that come with haptera, each declared once."""

from collections.abc import Mapping

from haptera.kinds import budget, freeze, node, policy, service
from haptera.model.schema import Kind

KINDS: Mapping[str, Kind] = {
    one.kind.name: one.kind for one in (node, service, freeze, policy, budget)
}
