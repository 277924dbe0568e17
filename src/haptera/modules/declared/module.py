"""A declared module made: of the terms of a site file the looks and steps that the SDK knows."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final, cast

import msgspec

from haptera.kinds import KINDS
from haptera.kinds.declared.kind import kind_of
from haptera.modules.declared.api import Api, ApiTransport, DeclaredSettings
from haptera.modules.declared.checking import check
from haptera.modules.declared.commands import ProgramSettings, found_by, run_step
from haptera.modules.declared.parts import (
    AskedEntity,
    DeclaredSession,
    RunProgram,
    look_api,
    look_list,
    step_api,
)
from haptera.modules.declared.terms import Declaration, DeclaredLook, DeclaredStep
from haptera.sdk import ANY, PARENT, Applied, EntityId, HapteraError, Kind, Module, Setup, Variable
from haptera.sdk.commands import Program
from haptera.sdk.terms import Conditions, Going

# One list answers for so many at once.
AT_ONCE_OF_LIST: Final = 10_000


def declared(name: str, text: str) -> Module[AskedEntity]:
    """The module that is declared so, in JSON: what its process serves.

    Raises:
        HapteraError: it cannot be.
    """
    return made(name, msgspec.json.decode(text, type=Declaration))


def made(
    name: str,
    terms: Declaration,
    transport: ApiTransport | None = None,
    run: RunProgram = Program.run,
) -> Module[AskedEntity]:
    """The module of these terms; `transport` and `run` stand for its API and programs.

    Raises:
        HapteraError: they name what is not there, or contradict each other.
    """
    kind = kind_served(terms)
    check(kind, terms)

    @asynccontextmanager
    async def lifespan(setup: Setup) -> AsyncIterator[DeclaredSession]:
        api = None if terms.http is None else Api(terms.http, setup.settings, transport)
        try:
            yield DeclaredSession(api, run)
        finally:
            if api is not None:
                api.close()

    at_once = AT_ONCE_OF_LIST if terms.lists else 8 if terms.http is None else terms.http.at_once
    module = Module(
        name,
        connect=AskedEntity,
        context=PARENT,
        settings=DeclaredSettings,
        lifespan=lifespan,
        at_once=at_once,
    )
    for part, look in terms.looks.items():
        _declare_look(module, kind, part, look, terms)
    for part, step in terms.steps.items():
        _declare_step(module, kind, part, step, terms)
    return module


def kind_served(terms: Declaration) -> Kind:
    """The kind whose entities it looks at.

    Raises:
        HapteraError: there is none.
    """
    if terms.kind_terms is not None:
        return kind_of(terms.kind, terms.kind_terms)
    if terms.kind not in KINDS:
        do = "declare it under `kinds`, or name one of haptera's"
        raise HapteraError(f"there is no kind {terms.kind!r}", do=do)
    return KINDS[terms.kind]


def _declare_look(
    module: Module[AskedEntity], kind: Kind, name: str, terms: DeclaredLook, all_terms: Declaration
) -> None:
    variable = _variable(kind, terms.of)
    listed = None if terms.from_list is None else all_terms.lists[terms.from_list]

    async def look(asked: AskedEntity) -> str:
        if terms.run is not None:
            env = ProgramSettings(all_terms.token_in, asked.target.settings)
            return await found_by(asked, terms, env)
        return await look_api(asked, terms)

    async def look_many(some: Mapping[EntityId, AskedEntity]) -> Mapping[EntityId, str | Exception]:
        assert terms.from_list is not None
        assert listed is not None
        return await look_list(some, terms, terms.from_list, listed)

    function: Any = look if listed is None else look_many
    function.__name__ = name
    module.serves(variable).look(
        outcomes=outcomes(variable, terms),
        many=listed is not None,
        every_s=terms.every_s,
        within_s=terms.within_s,
        requires=_conditions(kind, terms.requires),
    )(function)


def outcomes(variable: Variable[Any], terms: DeclaredLook) -> tuple[Any, ...]:
    """The values that a look may find: those of its terms, or else all that the variable has."""
    if variable.values is Applied:
        return Applied.STALE, Applied.CURRENT
    named = {*terms.values.values(), *terms.exit.values()}
    if terms.missing is not None:
        named.add(terms.missing)
    known = [one for one in variable.values if one is not variable.unknown]
    if not terms.values and not terms.exit:
        return tuple(known)
    return tuple(one for one in known if one in named)


def _declare_step(
    module: Module[AskedEntity], kind: Kind, name: str, terms: DeclaredStep, all_terms: Declaration
) -> None:
    async def step(asked: AskedEntity) -> None:
        if terms.run is not None:
            env = ProgramSettings(all_terms.token_in, asked.target.settings)
            await run_step(asked, terms.run, env)
        else:
            await step_api(asked, terms)

    step.__name__ = name
    late_s = terms.within_s if terms.late_s is None else terms.late_s
    module.step(
        *(_going(module, kind, one, target, terms) for one, target in terms.to.items()),
        within_s=terms.within_s,
        late_s=late_s,
        ends_with_call=terms.ends_with_call,
        requires=_conditions(kind, terms.requires),
        disruptive=terms.disruptive,
        cost=terms.cost,
    )(step)


def _going(
    module: Module[AskedEntity], kind: Kind, name: str, target: str, terms: DeclaredStep
) -> Going:
    variable = _variable(kind, name)
    source = terms.from_.get(name, ANY)
    sources = (source,) if isinstance(source, str) else tuple(source)
    served = module.serves(variable)
    return served.goes(ANY if sources == (ANY,) else cast("Any", sources), cast("Any", target))


def _conditions(kind: Kind, said: Mapping[str, str | list[str]]) -> Conditions:
    found: dict[Any, str | tuple[str, ...]] = {}
    for name, values in said.items():
        on = kind.attribute(name) or _variable(kind, name)
        found[on] = values if isinstance(values, str) else tuple(values)
    return found


def _variable(kind: Kind, name: str) -> Variable[Any]:
    variable = kind.variable(name)
    if variable is None:
        known = ", ".join(one.name for one in kind.variables)
        raise HapteraError(f"{kind.name} has no variable {name!r}", do=f"use one of {known}")
    return variable
