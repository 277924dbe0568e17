"""What a coolant loop is: whether its pump runs, and with which settings."""

from enum import StrEnum

from haptera.sdk import Applied, Attribute, Kind, Plain, Variable


class State(StrEnum):
    UNKNOWN = "unknown"
    STOPPED = "stopped"
    RUNNING = "running"


state = Variable("coolant", "state", State, {State.UNKNOWN: 0, State.STOPPED: 1, State.RUNNING: 2})
# Whether the pump runs with the settings that are desired.
applied = Variable(
    "coolant", "applied", Applied, {Applied.UNKNOWN: 0, Applied.STALE: 1, Applied.CURRENT: 2}
)
# Where the pump is reached: the same for as long as it is there.
address = Attribute("coolant", "address")
# A setting of each loop, which may be changed while it runs.
litres_per_minute = Plain("coolant", "litres_per_minute", int)

kind = Kind("coolant", (state, applied), (address,), (litres_per_minute,), of_cluster=True)
