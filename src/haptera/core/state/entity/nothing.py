"""An empty mapping for all entities that have none of something, which are most.

Who adds to such a mapping puts a new one in its place.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

_NOTHING: Final[Mapping[Any, Any]] = MappingProxyType({})


def nothing() -> Mapping[Any, Any]:
    return _NOTHING
