"""Looks and steps of a declared module over its API: what is asked, and what the answer means."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from http import HTTPStatus
from typing import Any, Final

from haptera.modules.declared.api import Api, tag_of
from haptera.modules.declared.exchange import PlatformError
from haptera.modules.declared.terms import DeclaredLook, DeclaredStep, ListTerms
from haptera.modules.declared.texts import (
    filled,
    filled_data,
    filled_path,
    found_at,
    path_of,
    text_of,
    words,
)
from haptera.sdk import Applied, EntityId, HapteraError, Refused, Target
from haptera.sdk.commands import Program, ProgramResult

METHODS: Final = ("post", "put", "patch", "delete")


# Runs a program to its end, as `Program.run` does.
RunProgram = Callable[[Program, float], Awaitable[ProgramResult]]


@dataclass(frozen=True, slots=True)
class DeclaredSession:
    """The API of a module's process, if it has one, and the runner of its programs."""

    api: Api | None
    run: RunProgram


@dataclass
class AskedEntity:
    """One entity that is looked at or changed: what fills the templates for it."""

    target: Target

    @cached_property
    def known(self) -> Mapping[str, str | int]:
        target = self.target
        node = {} if target.node is None else {"node": target.node}
        return {**target.attributes, **target.values, **node, "name": target.name}

    @property
    def api(self) -> Api:
        api = self.session.api
        assert api is not None
        return api

    @property
    def session(self) -> DeclaredSession:
        session = self.target.session
        assert isinstance(session, DeclaredSession)
        return session


async def look_api(asked: AskedEntity, terms: DeclaredLook) -> str:
    """The value of one entity, from one answer of the API."""
    assert terms.get is not None
    read = await asked.api.read(filled_path(terms.get, asked.known))
    return meant(asked, terms, None if read is None else read[0], say=asked.api.words)


async def look_list(
    some: Mapping[EntityId, AskedEntity], terms: DeclaredLook, name: str, listed: ListTerms
) -> Mapping[EntityId, str | Exception]:
    """The values of many entities from one list, with the age of the list."""
    api = next(iter(some.values())).api
    since = asyncio.get_running_loop().time()
    found = await api.listed(name, listed, since)
    told: dict[EntityId, str | Exception] = {}
    for entity, asked in some.items():
        asked.target.age(max(0.0, since - found.at))
        try:
            told[entity] = _listed(asked, terms, found.items, api)
        except (PlatformError, HapteraError, Refused) as error:
            told[entity] = error
    return told


def _listed(asked: AskedEntity, terms: DeclaredLook, items: Mapping[str, Any], api: Api) -> str:
    item = items.get(asked.target.name)
    if item is None and asked.target.name in items:
        raise PlatformError(f"it lists {asked.target.name} more than once")
    return meant(asked, terms, item, say=api.words)


def meant(asked: AskedEntity, terms: DeclaredLook, data: Any, *, say: Any = words) -> str:
    """The value that an answer about an entity stands for; `data` None: it is not there.

    Raises:
        PlatformError: nothing that is known.
    """
    if data is None:
        if terms.missing is None:
            raise PlatformError(f"it does not know {asked.target.name}")
        return terms.missing
    note = None if terms.note is None else text_of(found_at(data, path_of(terms.note)))
    if note:
        asked.target.note(say(note))
    if terms.equals:
        same = all(
            text_of(found_at(data, path_of(path))) == filled(text, asked.known)
            for path, text in terms.equals.items()
        )
        return asked.target.digest if same else Applied.STALE
    assert terms.at is not None
    return value_of(found_at(data, path_of(terms.at)), terms, say)


def value_of(found: Any, terms: DeclaredLook, say: Any = words) -> str:
    """The value that what was found stands for.

    Raises:
        PlatformError: it stands for none.
    """
    text = text_of(found)
    if text is None:
        raise PlatformError(f"there is no text at {terms.at or 'that place'} in its answer")
    value = terms.values.get(text, None if terms.values else text)
    if value is None:
        raise PlatformError(f"it says {say(text)!r}, for which no value is declared")
    return value


async def step_api(asked: AskedEntity, terms: DeclaredStep) -> None:
    """Have it changed, and see what becomes of it where that takes longer."""
    asks = [(one, path) for one in METHODS if (path := getattr(terms, one)) is not None]
    if not asks:
        assert terms.task is not None
        assert terms.task.get is not None
        at = filled_path(terms.task.get, asked.known)
        await asked.api.awaited(at, terms.task, asked.target.progress)
        return
    ((method, template),) = asks
    path = filled_path(template, asked.known)
    body = filled_data(terms.body, asked.known)
    tag = None
    if terms.etag is not None:
        tag = await _tag(asked, filled_path(terms.etag, asked.known))
    asked.target.refuse_late()
    answer = await asked.api.change(method.upper(), path, body, same_as=tag)
    if answer.status == HTTPStatus.ACCEPTED and terms.task is not None:
        await asked.api.finished(answer, terms.task, path, asked.target.progress)


async def _tag(asked: AskedEntity, path: str) -> str:
    """The tag of a state that is to be changed; without it nothing is."""
    try:
        read = await asked.api.read(path)
    except PlatformError as error:
        raise Refused(f"not changed, for it could not be read: {error}") from None
    if read is None:
        raise Refused(f"it does not know {asked.target.name}")
    return tag_of(read[1])
