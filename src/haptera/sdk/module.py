"""How a module is declared: which variables it serves, and the functions that look and step."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from enum import StrEnum
from inspect import isasyncgenfunction
from typing import Any, Generic, Literal, Unpack, cast, overload

from haptera.model.declared.schema import Applied, Variable
from haptera.model.effects import Work
from haptera.model.errors import DeclarationError, DuplicateError
from haptera.model.parts import (
    API,
    AT_ONCE,
    Change,
    Context,
    EnrolmentLevel,
    Look,
    Manifest,
    Requirement,
    Sampler,
    Step,
)
from haptera.model.policy import LOOKING, STEPPING
from haptera.model.reading import Reading
from haptera.sdk.declaring import check_digest, checked, in_ms, requirements, sampler_of
from haptera.sdk.sampling.rounds import Measured
from haptera.sdk.settings import declared, made
from haptera.sdk.target import Setup, Target
from haptera.sdk.terms import (
    Conditions,
    Declares,
    Found,
    Going,
    Looker,
    LookTerms,
    Made,
    ModuleTerms,
    SamplerTerms,
    Stepper,
    StepTerms,
    Values,
    Watcher,
)


class Module(Generic[Made]):
    """A module: a name, how it connects to an entity, and the parts that it serves.

    `connect` makes of a `Target` what the functions are handed: a class, a function, or either
    of an async context manager. `where` selects the entities; all parts require it. `settings`
    is a dataclass, which `target.settings` is then one of. `api` is the version of the SDK that
    it is written for; an older one refuses it.
    """

    @overload
    def __init__(
        self,
        name: str,
        *,
        connect: Callable[[Target], AbstractAsyncContextManager[Made]],
        **terms: Unpack[ModuleTerms],
    ) -> None: ...
    @overload
    def __init__(
        self, name: str, *, connect: Callable[[Target], Made], **terms: Unpack[ModuleTerms]
    ) -> None: ...
    def __init__(
        self, name: str, *, connect: Callable[[Target], Any], **terms: Unpack[ModuleTerms]
    ) -> None:
        self.name = name
        self.version = terms.get("version", "1")
        self.context = terms.get("context", Context.SELF)
        self.lookers: dict[str, Looker[Made, str]] = {}
        self.steppers: dict[str, Stepper[Made]] = {}
        self.watchers: dict[str, Watcher[Made, str]] = {}
        self.gates: dict[str, Stepper[Made]] = {}
        self.measuring: dict[str, Callable[[Any], Any]] = {}
        self.samplers: dict[str, Sampler] = {}
        # The parts whose functions are asked of many entities at once.
        self.together: set[str] = set()
        self.connect = connect
        self.api = terms.get("api", API)
        self._terms = terms
        self._settings = terms.get("settings")
        self._where: Conditions = terms.get("where") or {}
        self._looks: dict[str, Look] = {}
        self._steps: dict[str, Step] = {}
        self._digests: set[str] = set()

    # The reading of `applied` is the digest in force: the engine compares it. The overlap that
    # mypy sees is meant: the first signature is the exception, the second the rule.
    @overload
    def serves(  # type: ignore[overload-overlap]
        self, variable: Variable[Applied], *, fails_to: None = None
    ) -> "Served[Applied, str, Made]": ...
    @overload
    def serves(
        self, variable: Variable[Values], *, fails_to: Values | None = None
    ) -> "Served[Values, Values, Made]": ...
    def serves(
        self, variable: Variable[Any], *, fails_to: StrEnum | None = None
    ) -> "Served[Any, Any, Made]":
        """Say that this module looks at a variable or changes it.

        A step of it that times out lets one infer `fails_to`.
        """
        return Served(self, variable, fails_to)

    def step(self, *goings: Going, **terms: Unpack[StepTerms]) -> Declares[Made, None]:
        """Declare a step that changes all these variables: `power.goes(OFF, ON)`, ….

        The functions of steps return None: what came of them, a look will tell. With `many`, one
        call serves all entities that are asked for close together: the function is handed a
        mapping of them, and may return one of what went wrong with which.
        """
        if not goings or len({going.kind for going in goings}) > 1:
            raise DeclarationError(f"module {self.name}: a step changes variables of one kind")

        def declare(function: Stepper[Made]) -> Stepper[Made]:
            step = self._step(function.__name__, goings, terms)
            self._claim(step.name, step.path)
            self._steps[step.name] = step
            self.steppers[step.name] = function
            if terms.get("many"):
                self.together.add(step.name)
            return function

        return cast("Declares[Made, None]", declare)

    def sampler(
        self, *readings: Reading, **terms: Unpack[SamplerTerms]
    ) -> Declares[Made, Measured]:
        """Declare what measures numbers of each entity, every so often, beside all looks.

        The function returns each number by its reading, or by `reading.series(item)` where that is
        a family. What a machine lacks is left out, or None: never zero.
        """

        def declare(function: Callable[[Made], Any]) -> Callable[[Made], Any]:
            name = function.__name__
            made = sampler_of(self.name, name, readings, self._where, terms)
            self._claim(name, made.path)
            self.samplers[name], self.measuring[name] = made, function
            if terms.get("many"):
                self.together.add(name)
            return function

        return cast("Declares[Made, Measured]", declare)

    def hold(self, function: Stepper[Made]) -> Stepper[Made]:
        """Let nothing begin on the node that must not be disturbed, from now until `release`.

        Raises `Refused` where something of the kind runs already; then nothing is held. What is
        held stays so though this process, the agent or both end. Holding again is no error.
        A gate at the parent answers for the nodes that its module has looks or steps for. It may
        raise `Draining`: nothing begins from now on, and it is asked again until all has ended.
        """
        return self._gate(Work.HOLD, function)

    def release(self, function: Stepper[Made]) -> Stepper[Made]:
        """Let things begin again, whether they were held or not."""
        return self._gate(Work.RELEASE, function)

    def manifest(self) -> Manifest:
        """What this module declares of itself, as values.

        Raises:
            HapteraError: it would hold its nodes and never release them, or the reverse.
        """
        if len(self.gates) == 1:
            raise DeclarationError(
                f"module {self.name} is an incomplete gate", do="declare both hold and release"
            )
        looks = tuple(
            replace(look, watched=look.name in self.watchers) for look in self._looks.values()
        )
        steps = tuple(self._steps.values())
        if self.api > API:
            raise DeclarationError(
                f"module {self.name} is written for version {self.api} of the SDK, this is {API}",
                do="install a newer haptera",
            )
        settings = None if self._settings is None else declared(self._settings)
        gate = bool(self.gates)
        return Manifest(
            *(self.name, self.version, self.context, looks, steps, gate),
            settings=settings,
            api=self.api,
            at_once=self._terms.get("at_once", AT_ONCE),
            device=self._device(),
            per_device=self._terms.get("per_device", 1),
            exclusive=self._terms.get("exclusive", False),
            unique=tuple(one.name for one in self._terms.get("unique", ())),
            needs=self._terms.get("needs", ()),
            writes=self._terms.get("writes", ()),
            enrolment=self._terms.get("enrolment", EnrolmentLevel.WINDOW),
            samplers=tuple(self.samplers.values()),
        )

    def settings(self, given: Mapping[str, Any]) -> Any:
        """What is given, in the declared type, or as it is where there is none.

        Raises:
            HapteraError: it does not fit.
        """
        return given if self._settings is None else made(self._settings, given, self.name)

    def functions(self) -> set[str]:
        """The names of all functions that are declared, and of what connects."""
        return {getattr(one, "__name__", "") for one in self._functions()}

    def packages(self) -> set[str]:
        """The packages, or single files, that all these functions are defined in."""
        named = (getattr(one, "__module__", None) or "" for one in self._functions())
        return {name.partition(".")[0] for name in named}

    def outcomes(self, look: str) -> tuple[str, ...] | None:
        """What a look of this name may find; None for a digest in force, which has no list."""
        return None if look in self._digests else self._looks[look].outcomes

    @asynccontextmanager
    async def alive(self, setup: Setup) -> AsyncIterator[Any]:
        """What the lifespan makes, for as long as a process of the module serves."""
        lifespan = self._terms.get("lifespan")
        if lifespan is None:
            yield None
        else:
            async with lifespan(setup) as session:
                yield session

    @asynccontextmanager
    async def connected(self, target: Target) -> AsyncIterator[Made]:
        """What `connect` makes of the target, for as long as one call takes."""
        made = self.connect(target)
        if isinstance(made, AbstractAsyncContextManager):
            async with made as entered:
                yield entered
        else:
            yield made

    def add_look(
        self, variable: Variable[Any], function: Looker[Made, str], terms: LookTerms[Any]
    ) -> None:
        kind, name = variable.kind, function.__name__
        look = Look(
            self.name,
            name,
            kind,
            variable.name,
            outcomes=tuple(checked(variable, terms["outcomes"])),
            requires=self._required(terms, kind),
            excludes=requirements(terms.get("excludes", {}), kind),
            cost=terms.get("cost", 1),
            context=self.context,
            every_ms=in_ms(terms.get("every_s", 10)),
            within_ms=in_ms(terms.get("within_s", 5)),
            policy=terms.get("policy", LOOKING),
        )
        self._claim(name, look.path)
        if variable.values is Applied:
            check_digest(look.path, function)
            self._digests.add(name)
        self._looks[name] = look
        self.lookers[name] = function
        if terms.get("many"):
            self.together.add(name)

    def add_watch(self, variable: Variable[Any], function: Watcher[Made, str]) -> None:
        looks = [
            look
            for look in self._looks.values()
            if (look.kind, look.at) == (variable.kind, variable.name)
        ]
        if not isasyncgenfunction(function):
            raise DeclarationError(
                f"module {self.name}: what watches {variable.path} is not an async generator",
                do="write it as `async def`, with `yield`",
            )
        if len(looks) != 1 or looks[0].name in self.watchers:
            raise DeclarationError(
                f"module {self.name}: what watches {variable.path} is not clear",
                do="declare one look at it, above its one watch",
            )
        if variable.values is Applied:
            check_digest(looks[0].path, function)
        self.watchers[looks[0].name] = function

    def _functions(self) -> list[Callable[..., object]]:
        parts = (self.lookers, self.steppers, self.watchers, self.gates, self.measuring)
        return [self.connect, *(one for some in parts for one in some.values())]

    def _device(self) -> str | None:
        device = self._terms.get("device")
        return None if device is None else device.name

    def _gate(self, work: Work, function: Stepper[Made]) -> Stepper[Made]:
        if work in self.gates:
            raise DuplicateError(f"module {self.name} declares {work} twice")
        self.gates[work] = function
        return function

    def _step(self, name: str, goings: tuple[Going, ...], terms: StepTerms) -> Step:
        kind = goings[0].kind
        return Step(
            self.name,
            name,
            kind,
            tuple(going.change for going in goings),
            requires=self._required(terms, kind),
            excludes=requirements(terms.get("excludes", {}), kind),
            cost=terms.get("cost", 1),
            context=self.context,
            within_ms=in_ms(terms["within_s"]),
            late_ms=in_ms(terms.get("late_s", terms["within_s"])),
            fails_to=goings[0].fails_to,
            disruptive=terms.get("disruptive", False),
            enrols=terms.get("enrols", False),
            stoppable=terms.get("stoppable", False),
            ends_with_call=terms.get("ends_with_call", False),
            policy=terms.get("policy", STEPPING),
        )

    def _required(self, terms: LookTerms[Any] | StepTerms, kind: str) -> tuple[Requirement, ...]:
        return requirements({**self._where, **terms.get("requires", {})}, kind)

    def _claim(self, name: str, path: str) -> None:
        if name in self._looks or name in self._steps or name in self.samplers:
            raise DuplicateError(f"{path} is declared twice", do="rename one of the functions")


class Served(Generic[Values, Found, Made]):
    """A variable that a module serves: decorators for its looks, steps and watch."""

    def __init__(
        self, module: Module[Made], variable: Variable[Values], fails_to: StrEnum | None
    ) -> None:
        self._module = module
        self._variable = variable
        self._fails_to = None if fails_to is None else str(fails_to)

    def look(self, **terms: Unpack[LookTerms[Values]]) -> Declares[Made, Found]:
        """Declare how the variable is learnt; the function returns one of `outcomes`.

        With `many`, one call serves all entities that are asked for close together: the function
        is handed a mapping of them, and returns one of what it found of each, or what went wrong.
        """

        def declare(function: Looker[Made, Found]) -> Looker[Made, Found]:
            self._module.add_look(self._variable, function, terms)
            return function

        return cast("Declares[Made, Found]", declare)

    def step(
        self,
        source: Values | tuple[Values, ...] | Literal["*"],
        target: Values,
        **terms: Unpack[StepTerms],
    ) -> Declares[Made, None]:
        """Declare how the variable is changed; the function returns None, a look will tell.

        With `many` as `Module.step`.
        """
        return self._module.step(self.goes(source, target), **terms)

    def goes(
        self,
        source: Values | tuple[Values, ...] | Literal["*"],
        target: Values,
        *,
        expected: bool = False,
    ) -> Going:
        """This variable's part in a step; with `expected`, only a look can tell that it came."""
        sources = source if isinstance(source, tuple) else (source,)
        if source != "*":
            checked(self._variable, sources)
        (to,) = checked(self._variable, (target,))
        change = Change(self._variable.name, tuple(map(str, sources)), to, expected=expected)
        return Going(self._variable.kind, change, self._fails_to)

    def watch(self, function: Watcher[Made, Found]) -> Watcher[Made, Found]:
        """Declare an async generator of readings that nobody asked for."""
        self._module.add_watch(self._variable, cast("Watcher[Made, str]", function))
        return function
