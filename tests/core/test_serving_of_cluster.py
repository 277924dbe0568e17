"""What serves and is on no node: as many are away at once as its budget says."""

from haptera.core.engine import Engine
from haptera.core.modules.catalog import Catalog
from haptera.core.state.side import Side
from haptera.kinds import KINDS
from haptera.kinds.declared.kind import KindTerms, kind_of
from haptera.model.changes import Desired, Stored, StoredEntity
from haptera.model.effects import Call, Reply, Write
from haptera.model.entity import EntityId
from haptera.model.events import Answered, Ended, Ready, Written
from haptera.model.parts import Change, Context, Look, Manifest, Step

S = 1_000_000_000
BOX = kind_of(
    "box",
    KindTerms({"run": ["down", "up"], "level": ["old", "new"]}, serves={"run": "up"}),
)
LOOKS = (
    Look("m", "look_run", "box", "run", ("down", "up"), context=Context.PARENT),
    Look("m", "look_level", "box", "level", ("old", "new"), context=Context.PARENT),
)
RAISE = Step(
    *("m", "raise_level", "box", (Change("level", ("old",), "new"),)),
    context=Context.PARENT,
    disruptive=True,
)
BOXES = [EntityId("box", f"b{n}", None) for n in range(5)]


def test_two_of_five_are_away_at_once_and_the_next_begins_when_one_serves_again():
    world = _World(at_once=2)

    assert len(world.under_way) == 2
    first = world.under_way[0]
    world.end(first)
    assert len(world.under_way) == 2
    assert first not in world.under_way


def test_without_a_budget_a_tenth_of_them_is_away_at_least_one():
    assert len(_World(at_once=None).under_way) == 1


class _World:
    """An engine with five boxes that serve; looks are answered at once, steps when they end."""

    def __init__(self, at_once: int | None) -> None:
        self.level = dict.fromkeys(BOXES, "old")
        self.calls: dict[EntityId, int] = {}
        self.now = S
        wish = {"run": Desired("up", "site"), "level": Desired("new", "site")}
        stored = [StoredEntity(one, {}, "site", wish, 1) for one in BOXES]
        if at_once is not None:
            says = {"of": "box:*", "per": "service", "at_once": at_once}
            values = {name: Desired(value, "site") for name, value in says.items()}
            stored.append(StoredEntity(EntityId("budget", "waves", None), {}, "site", values, 1))
        side = Side(Context.PARENT, None, 1, "-", 5 * S)
        manifest = Manifest("m", "1", Context.PARENT, LOOKS, (RAISE,))
        catalog = Catalog({**KINDS, "box": BOX}, [manifest])
        self.engine = Engine(side, catalog, Stored(1, 1, stored, [], {}), 0, self.now)
        self.run([Ready("m")])

    @property
    def under_way(self) -> list[EntityId]:
        return sorted(self.calls)

    def end(self, entity: EntityId) -> None:
        self.level[entity] = "new"
        self.run([Ended(self.calls.pop(entity))])

    def run(self, events: list) -> None:
        for _ in range(200):
            self.now += S // 100
            events = [
                one for effect in self.engine.handle(events, self.now) for one in self.of(effect)
            ]
            self.engine.check()

    def of(self, effect: object) -> list:
        match effect:
            case Write(ticket, changes):
                del changes
                return [Written(ticket, 2)]
            case Call(work="look", entity=entity, id=number, part=part):
                value = "up" if part == "look_run" else self.level[entity]
                return [Answered(number, value, self.now)]
            case Call(work="step", entity=entity, id=number):
                self.calls[entity] = number
                return []
            case Reply() | _:
                return []
