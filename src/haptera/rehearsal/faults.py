"""Faults that people name, `n[1-4]: power cut at 10m`, and what they do to a rehearsed cluster."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from haptera.core.state.limits import S
from haptera.kinds.node import power
from haptera.model.entity import node_id
from haptera.model.errors import ParseError
from haptera.model.parts import Look
from haptera.model.walltime import parse_duration_ms
from haptera.selectors.nodeset import expand, fold
from haptera.testing.actual import NodeFault
from haptera.testing.folded import FoldedWorld

_FAULT: Final = re.compile(
    r"(?:(?P<on>[^:]+):\s*)?(?P<what>[a-z ]+?)(?:\s+at\s+(?P<at>\w+))?(?:\s+for\s+(?P<for>\w+))?"
)
# The default duration of a fault, in seconds.
LASTS_S: Final = 600.0


@dataclass(frozen=True)
class PlannedFault:
    """A fault on some entities for a time, in seconds since the change."""

    what: str
    on: tuple[str, ...]
    at_s: float
    for_s: float

    def __str__(self) -> str:
        """The text that `parse_fault` reads as this.

        >>> str(parse_fault("n1,n2: power cut at 10m for 5m"))
        'n[1-2]: power cut at 600s for 300s'
        """
        on = f"{fold(self.on)}: " if self.on else ""
        at_ms, for_ms = round(self.at_s * 1_000), round(self.for_s * 1_000)
        return f"{on}{self.what} at {_written(at_ms)} for {_written(for_ms)}"

    @property
    def until_s(self) -> float:
        return self.at_s + self.for_s


def parse_fault(text: str) -> PlannedFault:
    """Read a fault: `[NODES:] WHAT [at TIME] [for TIME]`.

    >>> parse_fault("n[1-2]: power cut at 10m for 5m")
    PlannedFault(what='power cut', on=('n1', 'n2'), at_s=600.0, for_s=300.0)

    Raises:
        HapteraError: it is none.
    """
    found = _FAULT.fullmatch(text.strip())
    if found is None or found["what"] not in FAULTS:
        do = f"write 'NODES: WHAT at TIME for TIME', WHAT being {', '.join(FAULTS)}"
        raise ParseError(f"{text!r} is no fault", do=do)
    what, on = found["what"], found["on"]
    if (on is None) != (what == PARENT_DIES):
        do = f"name nodes before a colon for all but {PARENT_DIES!r}"
        raise ParseError(f"{text!r} does not say where", do=do)
    at_s = 0.0 if found["at"] is None else parse_duration_ms(found["at"]) / 1_000
    for_s = LASTS_S if found["for"] is None else parse_duration_ms(found["for"]) / 1_000
    return PlannedFault(what, () if on is None else tuple(expand(on)), at_s, for_s)


def _written(ms: int) -> str:
    return f"{ms}ms" if ms % 1_000 else f"{ms // 1_000}s"


def inject(world: FoldedWorld, fault: PlannedFault) -> None:
    """Break each entity now, and mend it when the fault's time is over."""
    if fault.what == PARENT_DIES:
        world.kill_parent(fault.for_s)
        return
    for node in fault.on:
        if node_id(node) in world.actual.values:
            world.clock.happened[fault.what] += 1
            mend = FAULTS[fault.what](world, node)
            world.clock.after(int(fault.for_s * S), mend)


def _cut(world: FoldedWorld, node: str) -> Callable[[], None]:
    """Cut a node's power, and keep it from being switched on until the end of the fault."""
    world.actual.cut(node)
    broken = world.actual.nodes[node]
    serving = _serving(world, power.name)
    broken.barren |= serving
    return partial(broken.barren.difference_update, serving)


def _hang(world: FoldedWorld, node: str) -> Callable[[], None]:
    """Let a node's BMC answer nothing."""
    broken = world.actual.nodes[node]
    serving = _serving(world, power.name)
    broken.mute |= serving
    return partial(broken.mute.difference_update, serving)


def _spoil(world: FoldedWorld, node: str) -> Callable[[], None]:
    """Let the modules on a node change nothing."""
    broken = world.actual.nodes[node]
    modules = {path.partition(".")[0] for path in world.catalog.of_nodes}
    broken.barren |= modules
    return partial(broken.barren.difference_update, modules)


def _suffer(fault: NodeFault, world: FoldedWorld, node: str) -> Callable[[], None]:
    """Let a node have a fault of its own."""
    faults = world.actual.nodes[node].faults
    faults.add(fault)
    return partial(faults.discard, fault)


def _serving(world: FoldedWorld, variable: str) -> set[str]:
    """The modules that look at or change this variable of nodes."""
    return {
        one.module
        for one in world.catalog.parts()
        if isinstance(one, Look) and (one.kind, one.at) == ("node", variable)
    }


PARENT_DIES: Final = "parent dies"
FAULTS: Final[Mapping[str, Callable[[FoldedWorld, str], Callable[[], None]]]] = {
    "power cut": _cut,
    "bmc hangs": _hang,
    "nothing starts": _spoil,
    **{one.value: partial(_suffer, one) for one in NodeFault},
    PARENT_DIES: _cut,
}
