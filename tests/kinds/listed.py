"""Lists that errors end with, made of what there is: each new kind, module or name is in them."""

from collections.abc import Iterable
from typing import Final

from haptera.kinds import KINDS
from haptera.modules import BUNDLED


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))


_NODE = KINDS["node"]
ALL_KINDS: Final = _listed(KINDS)
MODULES: Final = _listed(BUNDLED)
ATTRIBUTES: Final = _listed(one.name for one in _NODE.attributes)
# What can be desired of a node.
DESIRABLE: Final = _listed(one.name for one in (*_NODE.variables, *_NODE.plain))
