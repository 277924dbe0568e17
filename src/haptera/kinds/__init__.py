"""The kinds that come with haptera, each declared once."""

from collections.abc import Mapping

from haptera.kinds import budget, freeze, module, node, policy, service
from haptera.model.schema import Kind

KINDS: Mapping[str, Kind] = {
    one.kind.name: one.kind for one in (node, service, module, freeze, policy, budget)
}
