"""What a BMC is told over HTTP, and what it and its chassis tell each other."""

from enum import StrEnum
from typing import Annotated, Final, Literal

import msgspec

COMMAND_CHARACTERS_MAX: Final = 128
FAULT_DELAY_MS_MAX: Final = 60_000
# One message between BMC and chassis; more than any body that the BMC takes.
MESSAGE_BYTES_MAX: Final = 128 << 10
# What a lab's cloud has room for.
CLOUD_INSTANCES_MAX: Final = 200

PowerName = Literal["on", "off"]
DelayMs = Annotated[int, msgspec.Meta(ge=0, le=FAULT_DELAY_MS_MAX)]


class BootOrder(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a booting node is given to enrol with; a secret, handed on and never written."""

    token: str
    ca: str
    parent: str


class Order(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of POST /power, and what the chassis is told."""

    power: PowerName
    command: Annotated[str, msgspec.Meta(min_length=1, max_length=COMMAND_CHARACTERS_MAX)]
    boot: BootOrder | None = None


class Notice(msgspec.Struct, frozen=True):
    """What the chassis tells: power is so now, by this command or (None) by itself."""

    power: PowerName
    command: str | None = None


class Lie(StrEnum):
    """How what a BMC says and what it does differ."""

    IDLE = "idle"  # says yes to each command, and does nothing
    ASTRAY = "astray"  # switches another machine, and tells of that one's power
    FLAPS = "flaps"  # takes the power away again by itself, each time soon after it came
    RESETS = "resets"  # does what it is told, and starts anew before it has answered


class BmcFaults(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How this BMC misbehaves: refuses all with this text, answers nothing at all, or lies."""

    delay_ms: DelayMs
    refuse: str | None = None
    silent: bool = False
    lies: Lie | None = None


class GivenFaults(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of POST /faults, and of a site file's `lab.bmc`: what is not given stays so."""

    delay_ms: DelayMs | msgspec.UnsetType = msgspec.UNSET
    refuse: str | msgspec.UnsetType | None = msgspec.UNSET
    silent: bool | msgspec.UnsetType = msgspec.UNSET
    lies: Lie | msgspec.UnsetType | None = msgspec.UNSET

    def over(self, faults: BmcFaults) -> BmcFaults:
        """These faults, where none is given here."""
        given = {
            name: value
            for name, value in msgspec.structs.asdict(self).items()
            if value is not msgspec.UNSET
        }
        return msgspec.structs.replace(faults, **given)


class CloudFaults(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How the cloud misbehaves.

    It has `quota` instances at most; `lacks` sizes altogether; machines of the sizes in `hangs`
    never come up; with `rate_ms` two creations are so far apart at least; the next
    `destroy_fails` destructions have no effect. Of each `fails_every` creations and destructions
    one fails, and of each `hangs_every` machines one never comes up; 0: none.
    """

    quota: Annotated[int, msgspec.Meta(ge=0, le=CLOUD_INSTANCES_MAX)] = CLOUD_INSTANCES_MAX
    lacks: tuple[str, ...] = ()
    hangs: tuple[str, ...] = ()
    rate_ms: Annotated[int, msgspec.Meta(ge=0)] = 0
    destroy_fails: Annotated[int, msgspec.Meta(ge=0)] = 0
    fails_every: Annotated[int, msgspec.Meta(ge=0)] = 0
    hangs_every: Annotated[int, msgspec.Meta(ge=0)] = 0
