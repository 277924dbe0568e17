"""The terms on which a module and its looks and steps are declared, as keyword arguments."""

from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Generic, Required, TypedDict, TypeVar

from haptera.model.parts import Change, Context
from haptera.model.policy import Policy
from haptera.model.schema import Attribute, Variable

Values = TypeVar("Values", bound=StrEnum)
Reading = TypeVar("Reading", bound=str)
Made = TypeVar("Made")

# Which values each of these variables and attributes may have (or, excluded, may not).
Conditions = Mapping[Variable[Any] | Attribute, str | tuple[str, ...]]
Looker = Callable[[Made], Coroutine[Any, Any, Reading]]
Stepper = Callable[[Made], Coroutine[Any, Any, None]]
Watcher = Callable[[Made], AsyncIterator[Reading]]


class ModuleTerms(TypedDict, total=False):
    """How a module is declared.

    At most `at_once` looks and steps of it are under way, and at most `per_device` of them for
    one value of the attribute `device`; the rest waits its turn, outside of its time limit.
    """

    where: Conditions | None
    context: Context
    version: str
    settings: type | None
    api: int
    at_once: int
    device: Attribute | None
    per_device: int


class LookTerms(TypedDict, Generic[Values], total=False):
    """How a look is declared; times in seconds."""

    outcomes: Required[tuple[Values, ...]]
    every_s: float
    within_s: float
    requires: Conditions
    excludes: Conditions
    cost: int
    policy: Policy


class StepTerms(TypedDict, total=False):
    """How a step is declared; times in seconds; `late_s` is `within_s` where it is not given."""

    within_s: Required[float]
    late_s: float
    requires: Conditions
    excludes: Conditions
    cost: int
    policy: Policy
    disruptive: bool
    enrols: bool


@dataclass(frozen=True, slots=True)
class Going:
    """One variable's part in a step, and what its time-out lets one infer of it."""

    kind: str
    change: Change
    fails_to: str | None
