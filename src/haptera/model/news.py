"""The sorts of changes: what of an entity is another than it was."""

from enum import StrEnum
from typing import Final


class News(StrEnum):
    """In what an entity changed."""

    DESIRED = "desired"  # what it should be, its attributes among that
    OBSERVED = "observed"  # a fact: its value, whether it is known, who saw it
    CONDITION = "condition"  # where it stands, why, and by which chain it goes on
    GONE = "gone"  # it is no longer declared


Types = frozenset[News]

EVERY_TYPE: Final[Types] = frozenset(News)
