"""Routes about entities: how they are, what is desired of them, trying again."""

from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from haptera.api.backend import Backend
from haptera.api.requests.body import as_json, read_body
from haptera.api.requests.endpoint import (
    Caller,
    Handler,
    author,
    check_by_name,
    claim_of,
    flag,
)
from haptera.api.requests.lines import Lines, document, wants_lines
from haptera.api.requests.logs import log_place, log_view
from haptera.api.requests.standing_lines import StandingLines
from haptera.api.writes.patching import Patcher, missing, tag_of
from haptera.kinds import KINDS
from haptera.kinds.meaning import check_selector
from haptera.model.answers.views import EntityView
from haptera.model.changes import Change
from haptera.model.declared.desired_check import nearest
from haptera.model.entity import EntityId, parse_entity
from haptera.model.errors import Code, HapteraError, UnknownNameError
from haptera.model.events import Asked
from haptera.model.text import Content, Line
from haptera.rest import endpoints
from haptera.rest.schemas import Entities, EntityPatch, Retried, StatusView, SummaryView
from haptera.runtime.store.optimistic_write import write
from haptera.selectors.selector import Selector, parse_selector

# A module has a log whether or not it is an entity here.
JOB: Final = "job"
NODE: Final = "node"
MODULE: Final = "module"


@dataclass(frozen=True, slots=True)
class EntityRoutes:
    """Answers from the backend; `cluster` is the cluster's name."""

    backend: Backend
    cluster: str
    console_lines: StandingLines

    def served(self) -> Iterator[Handler]:
        yield Handler(endpoints.SUMMARY, self.summary)
        yield Handler(endpoints.STATUS, self.status)
        yield Handler(endpoints.ENTITIES, self.many)
        yield Handler(endpoints.ENTITY, self.one)
        yield Handler(endpoints.GRAPH, self.graph)
        yield Handler(endpoints.STORY, self.story)
        yield Handler(endpoints.LOG, self.log)
        yield Handler(endpoints.DESIRE, self.desire)
        yield Handler(endpoints.DESCRIBE, self.describe)
        yield Handler(endpoints.RETRY, self.retry)

    async def summary(self, _request: Request, caller: Caller) -> Response:
        """How many entities of each kind stand in each condition."""
        backend, revision = self.backend, self.backend.desires.revision()
        told = await backend.queries.summary(caller.within)
        faults = await self._faults(caller)
        counts = (told.counts, told.subtrees)
        return as_json(SummaryView(self.cluster, backend.desires.epoch, revision, *counts, faults))

    async def status(self, request: Request, caller: Caller) -> Response:
        """The condition of all, or of those selected: like ones are grouped, with their nodes.

        Each is as it was when it was read, at the answer's revision or a later one.
        """
        revision = self.backend.desires.revision()
        told = await self.backend.queries.alike(_chosen(request, caller))
        faults = await self._faults(caller)
        view = StatusView(self.cluster, self.backend.desires.epoch, revision, told, faults)
        return as_json(view)

    async def many(self, request: Request, caller: Caller) -> Response:
        """All entities, or those of a kind, on a node-set, or that a selector means.

        Each is as it was when it was sent, at the answer's revision or a later one.
        """
        found = await self.backend.queries.texts(_chosen(request, caller))
        if wants_lines(request):
            return Lines(found)
        faults = await self._faults(caller)
        none = Entities(self.backend.desires.epoch, self.backend.desires.revision(), faults)
        return Lines(found, form=document(none))

    async def _faults(self, caller: Caller) -> list[str]:
        """They concern the whole cluster: a caller who is limited to a part of it hears of none."""
        return await self.backend.tree.faults() if caller.within is None else []

    async def one(self, request: Request, caller: Caller) -> Response:
        """One entity; with `?agent=1`, also the word of its node's agent: that takes a moment."""
        entity = _entity_of(request)
        view = self._view(entity, caller)
        if flag(request, "agent"):
            view = await self.backend.queries.detail(entity) or view
        if flag(request, "explain"):
            view = msgspec.structs.replace(view, explained=self.backend.queries.explained(entity))
        return self._told(view)

    async def graph(self, request: Request, caller: Caller) -> Response:
        """All that can be known of its class and what leads where, with its chain marked."""
        entity = _entity_of(request)
        told = await self.backend.queries.graph(entity)
        if told is None:
            raise missing(self.backend.queries, entity, caller.within)
        return as_json(told)

    async def story(self, request: Request, caller: Caller) -> Response:
        """The last decisions of the parent on it, each with what had happened before."""
        entity = _entity_of(request)
        told = self.backend.queries.story(entity)
        if told is None:
            raise missing(self.backend.queries, entity, caller.within)
        return as_json(told)

    async def log(self, request: Request, caller: Caller) -> Response:
        """What a module, service, job or node's console wrote: its last lines, or later ones.

        The answer says after which place the next lines come. Who reads a console is put in the
        audit.
        """
        entity, after = _entity_of(request), log_place(request)
        if entity.kind not in (MODULE, JOB):
            self._view(entity, caller)
        try:
            told = await self.backend.outputs.log(entity, after)
        except HapteraError as error:
            raise HapteraError(
                error.what, where=str(entity), do="see docs/reference/why.md", code=Code.NOT_FOUND
            ) from None
        if entity.kind == NODE:
            self._note_reader(author(request, caller).who, entity)
        return as_json(log_view(entity, told, after))

    def _note_reader(self, who: str, node: EntityId) -> None:
        if not self.console_lines.has(who, node):
            self.console_lines.add(who, node)
            self.backend.records.note(who, f"console {node}", node)

    async def desire(self, request: Request, caller: Caller) -> Response:
        """A merge patch of desired values: a value sets, null unsets."""
        patch = await read_body(request, dict[Line, Content | int | None])
        named = str(_entity_of(request))
        return await self._patch(request, caller, EntityPatch(named, desired=patch))

    async def describe(self, request: Request, caller: Caller) -> Response:
        """A merge patch of attributes: a text sets, null takes away."""
        patch = await read_body(request, dict[Line, Content | None])
        named = str(_entity_of(request))
        return await self._patch(request, caller, EntityPatch(named, attributes=patch))

    async def retry(self, request: Request, caller: Caller) -> Response:
        """Try what is stuck again, now."""
        entity = _entity_of(request)
        self._view(entity, caller)
        who = author(request, caller).who
        await self.backend.orders.request(Asked(entity), who, f"retry {entity}")
        return as_json(Retried(str(entity)), status=HTTPStatus.ACCEPTED)

    async def _patch(self, request: Request, caller: Caller, patch: EntityPatch) -> Response:
        by = author(request, caller)
        patcher = Patcher(self.backend, by.who, claim_of(request), caller.within)
        patch = msgspec.structs.replace(patch, if_match=request.headers.get("if-match"))

        async def make() -> tuple[Change, ...]:
            return patcher.changes(patch)

        await write(self.backend.desires, make, by)
        return self._told(self._view(parse_entity(patch.entity), caller))

    def _view(self, entity: EntityId, caller: Caller) -> EntityView:
        view = self.backend.queries.entity(entity)
        if view is None:
            raise missing(self.backend.queries, entity, caller.within)
        return view

    def _told(self, view: EntityView) -> Response:
        return as_json(view, headers={"ETag": tag_of(self.backend.desires, view.revision)})


def _chosen(request: Request, caller: Caller) -> list[Selector]:
    """What the query selects, and the caller may see: what all of these mean."""
    kind = request.query_params.get("kind")
    if kind is not None and kind not in KINDS:
        raise UnknownNameError(
            f"there is no kind {kind!r}", where="the query", do=nearest(kind, KINDS)
        )
    texts = [request.query_params.get(name) for name in ("nodes", "select")]
    if kind is not None:
        texts.append(f"{kind}:*")
    selectors = [check_selector(parse_selector(text)) for text in texts if text is not None]
    if caller.within is not None:
        check_by_name(selectors)
        selectors.append(caller.within)
    return selectors


def _entity_of(request: Request) -> EntityId:
    return parse_entity(request.path_params["entity"])
