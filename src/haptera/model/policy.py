"""How often a part that fails is tried, how long apart, and when it is given up for a while."""

from dataclasses import dataclass
from typing import Final

from haptera.model.errors import HapteraError, LimitError

# In the words on where an entity stands: nothing is tried for a while, and not only until the next
# attempt. The parent above has nothing but these words.
GIVEN_UP: Final = "; given up after "
LASTS_NOT: Final = " was repeated several times: its effect does not last"


def is_given_up(why: str | None) -> bool:
    """True of words which say that something was tried as often as it should be.

    >>> is_given_up("bmc.switch_on: the fuse is out; given up after 3 attempts, for 10 min")
    True
    >>> is_given_up("bmc.switch_on: the fuse is out")
    False
    """
    return why is not None and (GIVEN_UP in why or LASTS_NOT in why)


@dataclass(frozen=True, slots=True)
class Policy:
    """What a part's failures in a row come to.

    Between two attempts passes a random share (full jitter) of `backoff_ms`, doubled with each
    failure up to `backoff_ms_max`. After `attempts` failures the part is given up, with its
    reason shown, and tried anew when `cool_down_ms` have passed, or its cause has changed.

    Raises:
        HapteraError: a number that cannot be.
    """

    attempts: int
    backoff_ms: int
    backoff_ms_max: int
    cool_down_ms: int

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise HapteraError(f"{self.attempts} attempts are too few", do="allow at least one")
        if not 0 < self.backoff_ms <= self.backoff_ms_max:
            raise LimitError("the back-off must be positive, and at most its own maximum")
        if self.cool_down_ms < self.backoff_ms:
            raise HapteraError("the cool-down must not be shorter than the back-off")

    def gives_up(self, failures: int) -> bool:
        """Whether so many failures are the end of it, for now."""
        return failures >= self.attempts

    def wait_ms(self, failures: int, draw: float) -> int:
        """How long to wait after so many failures; `draw` is between 0 and 1.

        >>> [STEPPING.wait_ms(failures, 1.0) for failures in (1, 2, 3, 6)]
        [4000, 8000, 16000, 1800000]
        """
        if self.gives_up(failures):
            return self.cool_down_ms
        ceiling_ms = min(self.backoff_ms_max, self.backoff_ms << min(failures - 1, 32))
        return max(1, int(ceiling_ms * draw))


# What suits machines. A device that refuses is not hammered, and is left alone for half an hour
# after six attempts; a device that does not answer is looked at once a minute, however long.
STEPPING: Final = Policy(6, backoff_ms=4_000, backoff_ms_max=300_000, cool_down_ms=1_800_000)
LOOKING: Final = Policy(6, backoff_ms=4_000, backoff_ms_max=60_000, cool_down_ms=60_000)
# Of nodes that enrol: they go on for as long as their token is good.
ENROLLING: Final = Policy(1 << 31, backoff_ms=1_000, backoff_ms_max=16_000, cool_down_ms=16_000)
# Of processes of our own that die: of modules, and of the planner's workers.
RESTARTING: Final = Policy(6, backoff_ms=1_000, backoff_ms_max=60_000, cool_down_ms=600_000)
