"""A cluster in memory that is at once as it should be, for what stands on top of the API."""

import asyncio
import copy
from collections import Counter, deque

import msgspec

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
from haptera.model.views import Condition, DesiredView, EntityView, ObservedView, Summary
from haptera.runtime.tokens import Scope

TOKENS = {
    "read-token": ("eve", Scope.READ),
    "write-token": ("bob", Scope.WRITE),
    "admin-token": ("ada", Scope.ADMIN),
}


class FakeSubscription:
    def __init__(self, size):
        self.queue = deque()
        self.size = size
        self.closed = False
        self.news = asyncio.Event()

    def put(self, item):
        self.closed = self.closed or len(self.queue) == self.size
        self.queue.append(item)
        self.news.set()

    async def next(self):
        while not self.queue:
            self.news.clear()
            await self.news.wait()
        return self.queue.popleft()


class FakeBackend:
    def __init__(self, *, queue_size=100):
        self.epoch = 7
        self.store = {}
        self.extra = {}  # parts of views that differ from what is made up below, by entity
        self.asked = []
        self.refusals = []  # texts that the next proposals are refused with
        self.meanwhile = None  # called once, before the next proposal is looked at
        self.subscriptions = []
        self._revision = 0
        self._number = 0
        self._queue_size = queue_size

    def revision(self):
        return self._revision

    def stored(self):
        return copy.deepcopy(list(self.store.values()))

    def entities(self, kind, nodes):
        found = [self._view(one) for _, one in sorted(self.store.items())]
        return [
            view
            for view in found
            if kind in (None, view.kind) and (nodes is None or view.node in nodes)
        ]

    def entity(self, entity):
        return self._view(self.store[entity]) if entity in self.store else None

    def summary(self):
        counts = {}
        for view in self.entities(None, None):
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
        return other.entities(None, None)

    def ask(self, entity):
        self.asked.append(entity)

    def subscribe(self):
        self.subscriptions.append(FakeSubscription(self._queue_size))
        return self.subscriptions[-1]

    def check_token(self, text):
        return TOKENS.get(text)

    def write(self, *changes):
        for change in changes:
            self._revision += 1
            self._apply(change)
        self.publish(*dict.fromkeys(change.entity for change in changes))

    def publish(self, *entities):
        self._number += 1
        for subscription in self.subscriptions:
            subscription.put((self._number, entities))

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
