"""A step that was decided on, durable before it may have any effect."""

import msgspec

from haptera.model.entity import EntityId


class Intent(msgspec.Struct, frozen=True, gc=False):
    """One step of one module on one entity, meant but perhaps not yet done.

    `began_at` is in ns of CLOCK_BOOTTIME of the machine's boot named `kernel_boot`; on another
    boot the clock has begun anew, and the intent counts as begun when it is loaded.
    """

    id: str
    entity: EntityId
    module: str
    step: str
    began_at: int
    kernel_boot: str
    enrols: bool = False
    disruptive: bool = False
