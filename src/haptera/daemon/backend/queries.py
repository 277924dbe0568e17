"""Reads of entities: one engine as the API sees it, and the answers of agents."""

from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator
from typing import Final

import msgspec

from haptera.core.engine import Engine
from haptera.core.figures import Figures, figures
from haptera.core.state.row import EntityState
from haptera.core.state.selecting import by_name, means, meant
from haptera.core.views.course import course_of
from haptera.core.views.query import detail, explained, nearest, summary, view
from haptera.core.views.standing import alike
from haptera.core.views.texts import text_of
from haptera.daemon.parts import absent_manifests
from haptera.model.answers.explained import Explained
from haptera.model.answers.graph import DrawingView
from haptera.model.answers.story import StoryView
from haptera.model.answers.views import (
    AlikeView,
    BrakeView,
    EntityDetail,
    EntityView,
    Summary,
    detail_of,
)
from haptera.model.entity import EntityId
from haptera.planner.explain.drawing import drawing
from haptera.planner.explain.graph import graphs_of
from haptera.runtime.clock import now_ns
from haptera.runtime.network.peer_messages import Answer, EntityAsked, EntityTold, Request, Unable
from haptera.runtime.over_turns import over_turns
from haptera.runtime.reading_threads import in_reading_thread
from haptera.selectors.selector import Selector

# How long a person waits for the word of a node's agent.
AGENT_WITHIN_S: Final = 2.0

# A node's name, what it is asked, for how long: a request to its agent.
AskAgent = Callable[[str, Request, float], Awaitable[Answer]]


class EngineQueries:
    """Used in the loop's own thread. `level` says how well a node's session is protected."""

    def __init__(
        self, engine: Engine, level: Callable[[str], str | None], ask_agent: AskAgent
    ) -> None:
        self._engine = engine
        self._session_level = level
        self._ask_agent = ask_agent

    async def entities(self, selectors: Collection[Selector]) -> Iterable[EntityView]:
        return (view(row, now_ns(), self._level(row)) for row in await self._named(selectors))

    async def texts(self, selectors: Collection[Selector]) -> Iterable[msgspec.Raw]:
        return (text_of(row, now_ns(), self._level(row)) for row in await self._named(selectors))

    def means(self, selector: Selector, entity: EntityId) -> bool:
        return means(self._engine.table, selector, entity, now_ns())

    def entity(self, entity: EntityId) -> EntityView | None:
        row = self._engine.table.get(entity)
        return None if row is None else detail(row, now_ns(), self._level(row))

    async def _named(self, selectors: Collection[Selector]) -> Iterator[EntityState]:
        named = await over_turns(by_name(await self._meant(selectors)))
        return (row for _, row in named if self._engine.table.get(row.id) is row)

    def _level(self, row: EntityState) -> str | None:
        return self._session_level(row.id.name) if row.id.kind == "node" else None

    def nearest(self, entity: EntityId) -> str | None:
        return nearest(self._engine.table, entity)

    def explained(self, entity: EntityId) -> Explained | None:
        engine = self._engine
        row = engine.table.get(entity)
        if row is None:
            return None
        node, absent = engine.table.node_of(row), absent_manifests(engine.catalog)
        return explained(row, node, engine.catalog, absent, now_ns())

    async def detail(self, entity: EntityId) -> EntityDetail | None:
        """As `entity`, and the word of its node's agent, or why that could not be had."""
        here = self.entity(entity)
        if here is None:
            return None
        if entity.node is None:
            return detail_of(here)
        match await self._ask_agent(entity.node, EntityAsked(entity), AGENT_WITHIN_S):
            case EntityTold(there) if there.entity == str(entity):
                return detail_of(here, agent=there)
            case Unable(text):
                return detail_of(here, unasked=text)
            case _:
                return detail_of(here, unasked="the agent answered with something else")

    async def graph(self, entity: EntityId) -> DrawingView | None:
        """Its class drawn, with its chain marked."""
        row = self._engine.table.get(entity)
        if row is None:
            return None
        domain, course = course_of(row, self._engine.table.node_of(row), self._engine.catalog)

        def draw() -> DrawingView:
            return drawing(domain, graphs_of(domain), str(entity), course)

        return await in_reading_thread(draw)  # A large class takes a while.

    def story(self, entity: EntityId) -> StoryView | None:
        row = self._engine.table.get(entity)
        return None if row is None else self._engine.rounds.decisions.story.of(row, now_ns())

    async def alike(self, selectors: Collection[Selector]) -> list[AlikeView]:
        rows = await self._meant(selectors)
        return await over_turns(alike((row.id, row.stance) for row in rows))

    async def summary(self, within: Selector | None = None) -> Summary:
        rows = [*self._engine.table] if within is None else await self._meant([within])
        reports = self._engine.neighbours.reports
        assert reports is not None, "an agent has no such backend"
        return await over_turns(summary(rows, reports.subtree))

    async def figures(self) -> Figures:
        return await over_turns(figures(self._engine, now_ns()))

    def brake(self) -> BrakeView:
        return self._engine.safety.unrest.brake(now_ns())

    async def _meant(self, selectors: Collection[Selector]) -> list[EntityState]:
        return await over_turns(meant(self._engine.table, selectors, now_ns()))
