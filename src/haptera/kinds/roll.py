"""A roll: systems change over to another image, a few at a time, as far as it proves good."""

import re
from enum import StrEnum
from typing import Final

from haptera.kinds.rules.rule import OF_BYTES_MAX
from haptera.model.declared.desired_check import between, one_of
from haptera.model.declared.schema import Halt, Kind, Plain
from haptera.model.errors import HapteraError

COUNT_MAX: Final = 1_000_000
HALTED_BYTES_MAX: Final = 140
# 2100-01-01, in seconds since 1970.
SECONDS_MAX: Final = 4_102_444_800


class RollWish(StrEnum):
    """What a person wants of a roll."""

    RUN = "run"
    PAUSE = "pause"  # take no more systems for now
    ABORT = "abort"  # take no more, and give back those that are not proven
    UNDO = "undo"  # give back all of them


class OnFailure(StrEnum):
    """What becomes of a system on which the new image proves bad; the roll halts in any case."""

    GIVE_BACK = "give-back"
    KEEP = "keep"  # as it is, for somebody to look at


_SHARE: Final = re.compile(r"(?P<count>[0-9]{1,7})(?P<percent>%?)")


def unavailable_max(text: str, systems: int) -> int:
    """How many of so many systems may be away at once: a share is rounded down, but to 1 at least.

    >>> [unavailable_max("10%", systems) for systems in (4, 19, 20)], unavailable_max("3", 4)
    ([1, 1, 2], 3)

    Raises:
        HapteraError: the text is neither a number of 1 or more nor a share of 1 to 100 %.
    """
    match = _SHARE.fullmatch(text)
    count = 0 if match is None else int(match["count"])
    percent = match is not None and match["percent"] == "%"
    if not 1 <= count <= (100 if percent else COUNT_MAX):
        raise HapteraError(f"{text!r} does not say how many", do="write 3, or 10%")
    return max(1, systems * count // 100) if percent else count


def _check_unavailable(text: str) -> None:
    unavailable_max(text, 0)


image = Plain("roll", "image", str, size_bytes_max=80)
# As it was typed; who is in the roll, the systems themselves say.
select = Plain("roll", "select", str, OF_BYTES_MAX)
canary = Plain("roll", "canary", int, 8, between(1, COUNT_MAX))
unavailable = Plain("roll", "unavailable", str, 8, _check_unavailable)
on_failure = Plain("roll", "on_failure", str, 16, one_of(OnFailure))
# In seconds since 1970: what is not done by then halts.
deadline = Plain("roll", "deadline", int, 8, between(0, SECONDS_MAX))
wish = Plain("roll", "wish", str, 8, one_of(RollWish))
# When all of its systems ran the new image, in seconds since 1970.
finished = Plain("roll", "finished", int, 8, between(0, SECONDS_MAX))
# Why nothing goes on until somebody says that it should; not there while nothing is wrong.
halted = Plain("roll", "halted", str, HALTED_BYTES_MAX)

kind = Kind(
    "roll",
    (),
    plain=(image, select, canary, unavailable, on_failure, deadline, wish, finished, halted),
    of_cluster=True,
    halts=Halt(halted, "haptera roll resume NAME, or undo or abort"),
)
