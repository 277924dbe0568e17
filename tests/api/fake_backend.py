"""A cluster in memory that is at once as it should be, for what stands on top of the API."""

import asyncio
import copy
import secrets
import sqlite3
from collections import Counter
from io import BytesIO

import msgspec

from haptera.core.figures import Figures
from haptera.core.state.entity.stance import Stance
from haptera.core.state.entity.verdict import Verdict
from haptera.core.sync.parents import subject_of
from haptera.core.views.bus import Bus
from haptera.core.views.standing import alike
from haptera.daemon.logs import part_of
from haptera.model.answers.graph import DrawingView
from haptera.model.answers.past import Changed, Deed, Page
from haptera.model.answers.plan import Plan, PlanGroup, digest_of
from haptera.model.answers.story import StoryView
from haptera.model.answers.views import (
    BrakeView,
    Condition,
    DesiredView,
    EntityView,
    ObservedView,
    ParentView,
    Summary,
    TreeView,
    detail_of,
)
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
from haptera.model.entity import parse_entity
from haptera.model.errors import HapteraError
from haptera.model.events import Asked, Released
from haptera.model.news import News
from haptera.model.reading import Reading, split_series
from haptera.model.samples import Sample
from haptera.model.token_scope import Scope
from haptera.planner.domain.pieces import at_once
from haptera.queue.duty import duty_of
from haptera.rest.schemas import ReplicaView, ReportTaken
from haptera.rest.unclaimed import InvitationView
from haptera.runtime.clock import wall_s
from haptera.runtime.identity.tokens import ApiToken, Bearer, Certified, MintedToken
from haptera.runtime.network.peer_messages import LogAsked
from haptera.runtime.store import keyed
from haptera.runtime.store.schema_sql import KEYED
from haptera.selectors.names import nearest_name
from haptera.selectors.nodeset import fold
from tests.api.job_desk import MemoryDesk
from tests.model.view_subject import ViewSubject

TOKENS = {
    "read-token": Bearer("eve", Scope.READ),
    "write-token": Bearer("bob", Scope.WRITE),
    "exec-token": Bearer("kim", Scope.EXEC),
    "admin-token": Bearer("ada", Scope.ADMIN),
    "report-token": Bearer("mon", Scope.REPORT),
}


def fake_plan(views, nodes, disrupts):
    """A plan of all that is not as it should be, by the chains that they have."""
    alike = {}
    for one in views:
        if one.condition not in (Condition.CONVERGED, Condition.IDLE):
            title = one.kind if one.kind == "node" else f"{one.kind} {one.name}"
            key = repr((title, one.chain, one.why, one.desired))
            alike.setdefault(key, (title, []))[1].append(one)
    groups = [
        PlanGroup(
            of=title,
            on=fold(one.node for one in some),
            entities=len(some),
            state={"power": "off"},
            goal={name: str(wanted.value) for name, wanted in some[0].desired.items()},
            condition=some[0].condition,
            why=some[0].why,
            chain=some[0].chain,
            cost=len(some[0].chain) or None,
            usual_ms=0,
            unmeasured=[link.part for link in some[0].chain],
            worst=None,
            services=None,
            busy=None,
            frozen=[],
            rounds=1,
            at_least_ms=0,
        )
        for title, some in alike.values()
    ]
    on = fold(disrupts) if disrupts else None
    plan = Plan("", [], groups, {}, nodes, on, len(disrupts), {"fake": "0" * 16}, None)
    return msgspec.structs.replace(plan, digest=digest_of(plan))


def everything(_entity):
    return True


class FakeSamples:
    """Numbers by entity and series, each of now; readings that are declared, by name."""

    def __init__(self):
        self.measured = {"temp.inlet": Reading("node", "temp.inlet", unit="°C")}
        self.now = {}  # numbers by entity and series
        self.told = []  # points of any series
        self.asked = []

    def last(self, entity):
        at = wall_s()
        found = self.now.get(entity, {})
        return {name: Sample(entity, name, at, value) for name, value in found.items()}

    def all_last(self):
        return [(entity, self.last(entity)) for entity in self.now]

    def reading(self, kind, series):
        return self.measured.get(split_series(series)[0])

    async def points(self, entity, series, since, until, step_s=None):
        self.asked.append((entity, series, round(until - since), step_s))
        return self.told


class FakeTokens:
    def __init__(self):
        self.minted = {}  # by text

    def check(self, text):
        held = {text: row.bearer for text, row in self.minted.items()}
        return (TOKENS | held).get(text)

    def held(self):
        return list(self.minted.values())

    async def mint(self, bearer, ttl_s):
        number = len(self.minted) + 1
        row = ApiToken(f"t{number}", bearer, b"", 1000.0, 1000.0 + ttl_s)
        self.minted[f"hp1.t{number}.secret"] = row
        return MintedToken(row, f"hp1.t{number}.secret")

    async def certify(self, bearer, ttl_s, request):
        row = (await self.mint(bearer, ttl_s)).row
        return Certified(row, b"certificate", b"authority")

    async def revoke(self, key):
        text = next((text for text, row in self.minted.items() if row.id == key), None)
        return None if text is None else self.minted.pop(text)


class FakeTree:
    def __init__(self):
        self.parents = TreeView([ParentView(None, None, "1.0", "", 0)])
        self.wrong = []  # with haptera itself

    async def view(self):
        return self.parents

    async def faults(self):
        return self.wrong

    async def replica(self, follower, log, place, files):
        return ReplicaView(7, 3, 3, [], "0")

    async def report(self, body):
        return ReportTaken(7)

    def durability(self):
        return "local"


class FakeBackend:
    """The subjects that speak of entities are one memory."""

    def __init__(self):
        self.queries = self.desires = self.orders = self.records = self
        self.outputs = self.readings = self
        self.tokens, self.tree, self.samples = FakeTokens(), FakeTree(), FakeSamples()
        self.epoch = 7
        self.radius_percent = 10
        self.bus = Bus(f"7-{secrets.token_hex(4)}", lambda: self.store)
        self.jobs = MemoryDesk()
        self.store = {}
        self.extra = {}  # parts of views that differ from what is made up below, by entity
        self.history = []
        self.noted = []
        self.happenings = []  # latest first
        self.pasts = {}  # views by time
        self.asked = []
        self.braked = BrakeView(None, 0)
        self.overridden = []  # nodes whose permits are not needed
        self.incarnations = {"n1": 3}
        self.strange = []
        self.agents = {}  # what agents say of entities
        self.unasked = "the agent does not answer"
        self.reasons = {}  # what is explained of entities
        self.logs = {}
        self.executed = []  # what was asked
        self.comes_of = []  # what each command tells
        self.hung_up = 0  # commands that nobody waited for to the end
        self.inventories = {}  # JSON, by image
        self.decisions = {}  # the last ones, as views
        self.graphs = {}  # drawings; of the others there is nothing to draw
        self.disrupts = []  # nodes that any change at all would disrupt
        self.refusals = []  # texts that the next proposals are refused with
        self.meanwhile = None  # called once, before the next proposal is looked at
        self._revision = 0
        self._keyed = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        self._keyed.executescript(KEYED)

    def revision(self):
        return self._revision

    def declared(self, entity):
        return self.store.get(entity)

    async def stored(self):
        return copy.deepcopy(list(self.store.values()))

    async def entities(self, selectors):
        return self._entities(selectors)

    async def texts(self, selectors):
        return [msgspec.Raw(msgspec.json.encode(one)) for one in self._entities(selectors)]

    def _entities(self, selectors):
        views = [self._view(one) for _, one in sorted(self.store.items())]
        nodes = {one.name: one for one in views if one.kind == "node"}
        subjects = [ViewSubject(view, nodes) for view in views]
        return [
            view
            for view, subject in zip(views, subjects, strict=True)
            if all(one.means(subject) for one in selectors)
        ]

    def means(self, selector, entity):
        if entity not in self.store or not selector.could_mean(entity):
            return False
        return selector.by_name or any(
            view.entity == str(entity) for view in self._entities([selector])
        )

    def entity(self, entity):
        return self._view(self.store[entity]) if entity in self.store else None

    def nearest(self, entity):
        kind, _, name = str(entity).partition(":")
        names = [str(one).partition(":")[2] for one in self.store if one.kind == entity.kind]
        near = nearest_name(name, names)
        return None if near is None else f"{kind}:{near}"

    def explained(self, entity):
        return self.reasons.get(entity)

    async def detail(self, entity):
        view = self.entity(entity)
        if view is None:
            return None
        agent = self.agents.get(entity)
        unasked = self.unasked if agent is None else None
        return detail_of(view, agent=agent, unasked=unasked)

    def story(self, entity):
        return (
            StoryView(str(entity), self.decisions.get(entity, [])) if entity in self.store else None
        )

    async def graph(self, entity):
        if entity not in self.store:
            return None
        nothing = DrawingView(title=str(entity), attributes={}, form="whole", graphs=[])
        return self.graphs.get(entity, nothing)

    async def inventory(self, image):
        return self.inventories.get(image)

    async def log(self, entity, after):
        if entity not in self.logs:
            raise HapteraError(f"{entity} has no log yet")
        return part_of(BytesIO(self.logs[entity]), 1, LogAsked(entity, after=after))

    async def execute(self, asked, who, what):
        self.note(who, what)
        self.executed.append(asked)
        told = list(self.comes_of)
        try:
            while told:
                yield told.pop(0)
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.hung_up += 1
            raise

    async def figures(self):
        return Figures((await self.summary()).counts)

    async def alike(self, selectors):
        views = self._entities(selectors)
        standing = (
            (parse_entity(one.entity), Stance(Verdict(one.condition, one.why), frozen=one.frozen))
            for one in views
        )
        return at_once(alike(standing))

    async def summary(self, within=None):
        counts = {}
        for view in self._entities([] if within is None else [within]):
            counts.setdefault(view.kind, Counter())[view.condition.value] += 1
        return Summary({kind: dict(one) for kind, one in counts.items()})

    async def propose(self, changes, if_revision, author):
        await asyncio.sleep(0)
        if self.meanwhile is not None:
            meanwhile, self.meanwhile = self.meanwhile, None
            meanwhile()
        if self.refusals:
            return Reply(1, None, self.refusals.pop(0), Cause.STORAGE)
        if if_revision is not None and if_revision != self._revision:
            return Reply(1, None, "what is desired changed", Cause.STALE)
        self.write(*changes, author=author)
        return Reply(1, self._revision)

    async def preview(self, changes):
        other = FakeBackend()
        other.store, other.extra = copy.deepcopy(self.store), self.extra
        other.write(*changes)
        nodes = sum(one.kind == "node" for one in self.store)
        return fake_plan(other._entities([]), nodes, self.disrupts)

    async def begin_keyed(self, key, sha256):
        return keyed.begin(self._keyed, key, sha256, 1000.0)

    async def end_keyed(self, key, answer):
        if answer is None:
            keyed.forget(self._keyed, key)
        else:
            keyed.finish(self._keyed, key, answer)

    def strangers(self):
        return list(self.strange)

    async def invite(self, node):
        return InvitationView(f"hp1.{node}.secret", "an authority", "127.0.0.1:4271")

    async def evict(self, node):
        return self.incarnations.pop(node, None)

    def brake(self):
        return self.braked

    async def request(self, request, who, what):
        self.note(who, what, subject_of(request))
        match request:
            case Asked(entity):
                self.asked.append(entity)
            case Released(None):
                self.braked = BrakeView(None, 0)
            case Released(node):
                self.overridden.append(node)

    def check_reading(self, one):
        """Any may be read of what is declared."""

    async def observe(self, readings, who):
        self.note(who, f"{len(readings)} readings")

    def past(self, chosen, *, before, count_max):
        some = [
            (number, one)
            for number, (_, one) in enumerate(self.history, 1)
            if chosen(parse_entity(one.entity)) and (before is None or number < before)
        ][::-1]
        whole = len(some) < count_max
        return Page([one for _, one in some[:count_max]], None if whole else some[count_max - 1][0])

    async def at(self, chosen, at_s):
        return [one for one in self.pasts.get(at_s, []) if chosen(parse_entity(one.entity))]

    def happened(self, chosen, count_max):
        return [
            one for one in self.happenings if not one.entity or chosen(parse_entity(one.entity))
        ][:count_max]

    def happened_since(self, names, since):
        return [one for one in self.happenings[::-1] if one.at_s >= since]

    def written(self, revision):
        last = min((one.revision for _, one in self.history if one.revision >= revision), default=0)
        rows = [(made, one) for made, one in self.history if one.revision == last]
        known = any(made <= revision for made, _ in rows)
        return [one for _, one in rows[::-1]] if known else []

    def deeds(self, within, count_max):
        assert within is None, "a real store tells what concerns whom"
        return self.noted[::-1][:count_max]

    def note(self, who, what, entity=None):
        self.noted.append(Deed(1000.0, who, what))

    def write(self, *changes, author=None):
        written = self._revision + len(changes)
        for change in changes:
            self._revision += 1
            before = self._held(change.entity)
            self._apply(change)
            self._remember(change, before, self._held(change.entity), written, author)
        count = sum(one.revision == written for _, one in self.history)
        if author is not None and count:
            what = f"{count} change{'' if count == 1 else 's'}"
            self.noted.append(Deed(1000.0, author.who, what, written, author.why))
        for entity in dict.fromkeys(change.entity for change in changes):
            if entity.kind == "node":
                held = self.store.get(entity)
                self.jobs.queue.set_duty(entity.name, duty_of({} if held is None else held.desired))
            self.publish(entity, News.DESIRED if entity in self.store else News.GONE)

    def publish(self, entity, *types):
        self.bus.publish([entity], [frozenset(types or [News.CONDITION])])

    def say(self, entity, **parts):
        """Have an entity look otherwise."""
        self.extra[entity] = self.extra.get(entity, {}) | parts
        self.publish(entity)

    def _held(self, entity):
        """All that is stored of an entity, by name; under None its attributes."""
        one = self.store.get(entity)
        if one is None:
            return {}
        attributes = msgspec.json.encode(one.attributes, order="sorted").decode()
        values = {name: (held.value, held.owner) for name, held in sorted(one.desired.items())}
        return {**values, None: (attributes, one.owner)}

    def _remember(self, change, before, after, written, author):
        nothing = (None, None)
        for name in before | after:
            was, now = before.get(name, nothing), after.get(name, nothing)
            if was != now:
                owner = was[1] if now == nothing else now[1]
                values = (str(change.entity), name, was[0], now[0], owner, was[1])
                by = (None, None) if author is None else (author.who, author.why)
                self.history.append((self._revision, Changed(written, 1000.0, *values, *by)))

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
            name: ObservedView(
                str(held.value),
                known=True,
                method="read",
                by="queue" if name == "work" else "fake",
                age_ms=40,
            )
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
