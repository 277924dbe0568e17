"""The kinds that come with haptera, each declared once."""

from collections.abc import Mapping

from haptera.kinds import node, service
from haptera.model.schema import Kind

KINDS: Mapping[str, Kind] = {kind.name: kind for kind in (node.kind, service.kind)}
