"""What the planner answers: the parts from what is to what should be, or why there are none."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from haptera.model.parts import Look, Step


@dataclass(frozen=True, slots=True)
class Find:
    """Look, expecting this; `hoped` where more than a remembered value could be found."""

    look: Look
    expect: str
    hoped: bool

    @property
    def part(self) -> Look:
        return self.look


@dataclass(frozen=True, slots=True)
class Do:
    """Take this step."""

    step: Step

    @property
    def part(self) -> Step:
        return self.step


Link = Find | Do


@dataclass(frozen=True, slots=True)
class Chain:
    """The links, in order; empty where the goal is met.

    `states` holds the stripped start and the state after each link, known values only.
    `expanded` counts the states that the search looked at.
    """

    links: tuple[Link, ...]
    states: tuple[Mapping[str, str], ...]
    cost: int
    optimal: bool
    doubts: bool
    expanded: int


class ReasonKind(StrEnum):
    """Why there is no chain; the first that fits, in this order (docs/reference/problem.md)."""

    UNKNOWABLE_GOAL = "unknowable-goal"
    NO_STEP = "no-step"
    WAITS = "waits"
    BLOCKED = "blocked"
    NO_PROGRESS = "no-progress"
    BUDGET = "budget"


class Role(StrEnum):
    """How a variable stands in the way; what comes first is rather named."""

    CONDITION = "condition"  # parts require or exclude it
    SOURCE = "source"  # no step that leads on starts there
    READING = "reading"  # no step leads on, and looks only find what is so


@dataclass(frozen=True, slots=True)
class Hurdle:
    """A variable that stands in the way as it is."""

    variable: str
    role: Role


@dataclass(frozen=True, slots=True)
class Reason:
    """Why there is no chain, in words that name the variable and what stands in the way.

    `waits_for` holds, for WAITS, the borrowed variables and the values that would do. For BLOCKED
    there would be a chain if it did not matter how the variables of the `hurdles` stand, but for
    no fewer of them; and there is one with the values of `wants`, where some would do.
    """

    kind: ReasonKind
    variable: str | None
    text: str
    waits_for: tuple[tuple[str, str], ...] = ()
    hurdles: tuple[Hurdle, ...] = ()
    wants: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class NoChain:
    """No chain: proven (`reason.kind` is not BUDGET), or given up after `expanded` states."""

    reason: Reason
    expanded: int


def gives_up(answer: Chain | NoChain) -> bool:
    """Whether the search ended before it was known whether there is a chain."""
    return isinstance(answer, NoChain) and answer.reason.kind is ReasonKind.BUDGET


@dataclass(frozen=True, slots=True)
class ToldChain:
    """A chain as one process tells it another: the path of each part, and what a look expects."""

    links: tuple[tuple[str, str | None], ...]
    optimal: bool
    doubts: bool
    expanded: int
