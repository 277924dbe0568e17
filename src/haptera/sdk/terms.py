"""The terms on which a module and its looks and steps are declared, as keyword arguments."""

from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Generic, Protocol, Required, TypedDict, TypeVar, overload

from haptera.model.declared.schema import Attribute, Relation, Variable
from haptera.model.entity import EntityId
from haptera.model.parts import Change, Context, EnrolmentLevel, Privilege
from haptera.model.policy import Policy
from haptera.sdk.target import Setup

Values = TypeVar("Values", bound=StrEnum)
Found = TypeVar("Found", bound=str)
Made = TypeVar("Made")
Result = TypeVar("Result")

# Which values each of these variables and attributes, of the entity or of one that it is related
# to, may have (or, excluded, may not).
Conditions = Mapping[Variable[Any] | Attribute | Relation, str | tuple[str, ...]]
# Async functions, or plain ones, which are run in threads.
Looker = Callable[[Made], Coroutine[Any, Any, Found] | Found]
Stepper = Callable[[Made], Coroutine[Any, Any, None] | None]
Watcher = Callable[[Made], AsyncIterator[Found]]
Lifespan = Callable[[Setup], AbstractAsyncContextManager[Any]]


class Declares(Protocol[Made, Result]):
    """Declares a function as a part, and leaves it as it is: async, or plain."""

    # What is handed may itself be a mapping, or what returns one: then the first one holds.
    @overload
    def __call__(  # type: ignore[overload-overlap]
        self, function: Callable[[Made], Coroutine[Any, Any, Result]], /
    ) -> Callable[[Made], Coroutine[Any, Any, Result]]: ...
    @overload
    def __call__(  # type: ignore[overload-overlap]
        self, function: Callable[[Made], Result], /
    ) -> Callable[[Made], Result]: ...
    # Of `many`: what is handed for each entity, and what came of each.
    @overload
    def __call__(
        self,
        function: Callable[
            [Mapping[EntityId, Made]],
            Coroutine[Any, Any, Mapping[EntityId, Result | Exception] | None],
        ],
        /,
    ) -> Callable[
        [Mapping[EntityId, Made]], Coroutine[Any, Any, Mapping[EntityId, Result | Exception] | None]
    ]: ...
    @overload
    def __call__(
        self,
        function: Callable[[Mapping[EntityId, Made]], Mapping[EntityId, Result | Exception] | None],
        /,
    ) -> Callable[[Mapping[EntityId, Made]], Mapping[EntityId, Result | Exception] | None]: ...


class ModuleTerms(TypedDict, total=False):
    """How a module is declared.

    At most `at_once` looks and steps of it are under way, and at most `per_device` of them for
    one value of the attribute `device`; the rest waits its turn, outside of its time limit.
    `lifespan` is entered when a process of it starts and left when that ends: what it makes is
    `target.session`. Of an `exclusive` module the old process ends before the next one starts.
    No two nodes that it serves may have the same value of an attribute in `unique`. Beyond the
    least, its processes may do what it `needs`, and write below the paths in `writes`. `enrolment`
    says how it hands tokens to the nodes that it boots.
    """

    where: Conditions | None
    context: Context
    version: str
    settings: type | None
    api: int
    at_once: int
    device: Attribute | None
    per_device: int
    lifespan: Lifespan | None
    exclusive: bool
    unique: tuple[Attribute, ...]
    needs: tuple[Privilege, ...]
    writes: tuple[str, ...]
    enrolment: EnrolmentLevel


class LookTerms(TypedDict, Generic[Values], total=False):
    """How a look is declared; times in seconds. With `many`, its function is of many entities."""

    outcomes: Required[tuple[Values, ...]]
    many: bool
    every_s: float
    within_s: float
    requires: Conditions
    excludes: Conditions
    cost: int
    policy: Policy


class StepTerms(TypedDict, total=False):
    """How a step is declared; times in seconds; `late_s` is `within_s` where it is not given.

    One that is `stoppable` hears where something else is desired while it runs. With
    `ends_with_call` nothing of it goes on for longer than `late_s` once its call, or its module's
    process, has ended. With `many`, its function is of many entities.
    """

    within_s: Required[float]
    late_s: float
    requires: Conditions
    excludes: Conditions
    cost: int
    policy: Policy
    disruptive: bool
    enrols: bool
    stoppable: bool
    ends_with_call: bool
    many: bool


class SamplerTerms(TypedDict, total=False):
    """The options of a sampler; times in seconds. With `many`, its function is of many entities.

    Its rounds are not counted in `at_once` and `per_device`; as many as `at_once` run at a time.
    """

    every_s: float
    within_s: float
    many: bool


@dataclass(frozen=True, slots=True)
class Going:
    """One variable's part in a step, and what its time-out lets one infer of it."""

    kind: str
    change: Change
    fails_to: str | None
