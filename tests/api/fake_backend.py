"""A cluster in memory that is at once as it should be, for what stands on top of the API."""

import asyncio
import copy
import secrets
from collections import Counter

import msgspec

from haptera.core.bus import Bus
from haptera.core.figures import Figures
from haptera.model.changes import (
    Cause,
    Declare,
    Desired,
    SetDesired,
    StoredEntity,
    Undeclare,
    UnsetDesired,
)
from haptera.model.effects import Reply
from haptera.model.errors import HapteraError
from haptera.model.news import News
from haptera.model.views import (
    BrakeView,
    Condition,
    DesiredView,
    EntityView,
    ObservedView,
    Summary,
    detail_of,
)
from haptera.runtime.tokens import Scope

TOKENS = {
    "read-token": ("eve", Scope.READ),
    "write-token": ("bob", Scope.WRITE),
    "admin-token": ("ada", Scope.ADMIN),
}


def everything(_entity):
    return True


class FakeBackend:
    def __init__(self):
        self.epoch = 7
        self.bus = Bus(f"7-{secrets.token_hex(4)}", lambda: self.store)
        self.store = {}
        self.extra = {}  # parts of views that differ from what is made up below, by entity
        self.asked = []
        self.braked = BrakeView(None, 0)
        self.agents = {}  # what agents say of entities
        self.unasked = "the agent does not answer"
        self.logs = {}
        self.refusals = []  # texts that the next proposals are refused with
        self.meanwhile = None  # called once, before the next proposal is looked at
        self._revision = 0

    def revision(self):
        return self._revision

    def declared(self, entity):
        return self.store.get(entity)

    def stored(self):
        return copy.deepcopy(list(self.store.values()))

    def entities(self, chosen):
        return [self._view(one) for entity, one in sorted(self.store.items()) if chosen(entity)]

    def entity(self, entity):
        return self._view(self.store[entity]) if entity in self.store else None

    async def detail(self, entity):
        view = self.entity(entity)
        if view is None:
            return None
        agent = self.agents.get(entity)
        unasked = self.unasked if agent is None else None
        return detail_of(view, agent=agent, unasked=unasked)

    async def log(self, entity):
        if entity not in self.logs:
            raise HapteraError(f"{entity} has written nothing yet")
        return self.logs[entity]

    def figures(self):
        return Figures(self.summary().counts)

    def summary(self):
        counts = {}
        for view in self.entities(everything):
            counts.setdefault(view.kind, Counter())[view.condition.value] += 1
        return Summary({kind: dict(one) for kind, one in counts.items()})

    async def propose(self, changes, if_revision):
        await asyncio.sleep(0)
        if self.meanwhile is not None:
            meanwhile, self.meanwhile = self.meanwhile, None
            meanwhile()
        if self.refusals:
            return Reply(1, None, self.refusals.pop(0), Cause.STORAGE)
        if if_revision is not None and if_revision != self._revision:
            return Reply(1, None, "what is desired changed", Cause.STALE)
        self.write(*changes)
        return Reply(1, self._revision)

    async def preview(self, changes):
        other = FakeBackend()
        other.store, other.extra = copy.deepcopy(self.store), self.extra
        other.write(*changes)
        return other.entities(everything)

    def brake(self):
        return self.braked

    def release(self):
        self.braked = BrakeView(None, 0)

    def ask(self, entity):
        self.asked.append(entity)

    def check_token(self, text):
        return TOKENS.get(text)

    def write(self, *changes):
        for change in changes:
            self._revision += 1
            self._apply(change)
        for entity in dict.fromkeys(change.entity for change in changes):
            self.publish(entity, News.DESIRED if entity in self.store else News.GONE)

    def publish(self, entity, *types):
        self.bus.publish([entity], [frozenset(types or [News.CONDITION])])

    def say(self, entity, **parts):
        """Have an entity look otherwise."""
        self.extra[entity] = self.extra.get(entity, {}) | parts
        self.publish(entity)

    def _apply(self, change):
        match change:
            case Declare(entity, attributes, owner):
                held = self.store[entity].desired if entity in self.store else {}
                self.store[entity] = StoredEntity(
                    entity, attributes, owner, dict(held), self._revision
                )
            case Undeclare(entity):
                del self.store[entity]
            case SetDesired(entity, name, value, owner):
                self.store[entity].desired[name] = Desired(value, owner)
                self.store[entity].revision = self._revision
            case UnsetDesired(entity, name):
                del self.store[entity].desired[name]
                self.store[entity].revision = self._revision

    def _view(self, one):
        desired = {name: DesiredView(held.value, held.owner) for name, held in one.desired.items()}
        observed = {
            name: ObservedView(str(held.value), known=True, method="read", by="fake", age_ms=40)
            for name, held in one.desired.items()
        }
        view = EntityView(
            entity=str(one.entity),
            kind=one.entity.kind,
            name=one.entity.name,
            node=one.entity.node,
            revision=one.revision,
            attributes=one.attributes,
            desired=desired,
            observed=observed,
            condition=Condition.CONVERGED if desired else Condition.IDLE,
            chain=[],
            since_ms=1500,
        )
        return msgspec.structs.replace(view, **self.extra.get(one.entity, {}))
