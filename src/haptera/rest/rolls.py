"""The body of a request that begins a roll, and its answer."""

from typing import Annotated, Final

import msgspec

from haptera.kinds.roll import OnFailure
from haptera.model.answers.plan import Plan
from haptera.model.declared.meaning import Meaning
from haptera.model.text import Content, Line

DEADLINE_S_DEFAULT: Final = 2 * 3_600
CANARY_DEFAULT: Final = 1
UNAVAILABLE_DEFAULT: Final = "10%"


class RollBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A roll: its systems, their image, how many are first, and how many may be away at once.

    The roll is called `name`, or as its image. After `deadline_s` seconds it halts.
    """

    image: Line
    select: Content
    name: Line | None = None
    canary: int = CANARY_DEFAULT
    unavailable: Line = UNAVAILABLE_DEFAULT
    on_failure: OnFailure = OnFailure.GIVE_BACK
    health: Annotated[Content | None, Meaning.COMMAND] = None
    deadline_s: int = DEADLINE_S_DEFAULT


class RollStarted(msgspec.Struct, frozen=True):
    """A roll that has begun: its number of systems, the owners of their images, other rolls.

    `plans` are what the roll disrupts until its end, if that was asked by `dry_run`.
    """

    name: str
    systems: int
    owners: list[str]
    rolls: list[str]
    plans: list[Plan] = []
