"""Rehearsed controllers: a roll of systems, as the real controller of rolls decides it."""

from collections.abc import Iterable

from haptera.controllers.roll.beginning import beginning, to_be_changed
from haptera.kinds import KINDS
from haptera.model.answers.views import Condition, DesiredView, EntityView
from haptera.model.changes import Change, Declare, Desired, SetDesired, StoredEntity
from haptera.model.entity import EntityId, node_id, parse_entity
from haptera.modules import load
from haptera.rehearsal.faults import parse_fault
from haptera.rehearsal.jobs import MeasuredJobs
from haptera.rehearsal.present import CONTROLLERS, Present
from haptera.rehearsal.rehearse import Rehearsal, RehearsalRun, rehearse
from haptera.rest.rolls import RollBody
from haptera.testing.actual import PartTimes, Values

NODES = tuple(f"n{number}" for number in range(1, 9))
S = 1_000_000_000
PACE = PartTimes({"system.stage": 60 * S, "system.flip": 10 * S})
WALL_S = 1_795_284_000


def compute(node: str) -> EntityId:
    return EntityId("system", "compute", node)


def the_present(
    jobs: MeasuredJobs | None = None, busy: Iterable[str] = (), budget: int | None = None
) -> Present:
    """Eight nodes that run image a, with the controller of rolls."""
    entities: list[StoredEntity] = []
    values: dict[EntityId, Values] = {}
    if budget is not None:
        held = {"per": Desired("parent", "site"), "at_once": Desired(budget, "site")}
        entities.append(StoredEntity(EntityId("budget", "all", None), {}, "site", held, 1))
    for name in NODES:
        for entity, desired in (
            (node_id(name), {"power": "on", "agent": "up"}),
            (compute(name), {"run": "running", "image": "a"}),
        ):
            held = {key: Desired(value, "site") for key, value in desired.items()}
            entities.append(
                StoredEntity(
                    entity,
                    {"platform": "labnode"} if entity.kind == "node" else {},
                    "site",
                    held,
                    1,
                )
            )
        values[node_id(name)] = {
            "power": "on",
            "agent": "up",
            "busy": "busy" if name in busy else "free",
        }
        values[compute(name)] = {"run": "running", "applied": "current", "staged": "current"}
    manifests = tuple(load(name).manifest() for name in ("labnode", "jobs", "system"))
    controllers = ((CONTROLLERS["roll"], {}),)
    jobs = jobs or MeasuredJobs()
    return Present(
        1, tuple(entities), values, manifests, KINDS, PACE, (), controllers, jobs, WALL_S
    )


def the_roll(deadline_s: int = 7_200, unavailable: str = "2") -> list[Change]:
    body = RollBody("b", "system:compute", deadline_s=deadline_s, unavailable=unavailable)
    desired = {"image": DesiredView("a", "site")}
    views = [
        EntityView(
            str(compute(name)),
            "system",
            "compute",
            name,
            1,
            {},
            desired,
            {},
            Condition.CONVERGED,
            [],
            0,
        )
        for name in NODES
    ]
    return [
        Declare(EntityId("roll", "b", None), {}, "user:eve"),
        *(
            SetDesired(parse_entity(entity), name, value, "user:eve")
            for entity, patch in beginning(body, to_be_changed(body, views), WALL_S).items()
            for name, value in patch.items()
            if value is not None
        ),
    ]


def rolled(
    *faults: str, present: Present | None = None, seed: int = 1, **order: object
) -> RehearsalRun:
    rehearsal = Rehearsal(the_roll(**order), [*map(parse_fault, faults)])  # type: ignore[arg-type]
    return rehearse(present or the_present(), rehearsal, seed)


def flips(run: RehearsalRun) -> list[str | None]:
    return [one.node for one in run.spans if one.part == "system.flip" and not one.failed]


def test_a_roll_flips_a_canary_first_and_then_as_many_as_may_be_away() -> None:
    run = rolled(present=the_present(budget=2))
    assert (sorted(map(str, flips(run))), run.stuck, run.disrupted_at_once) == ([*NODES], {}, 2)
    canary, second, *_ = sorted(
        (one for one in run.spans if one.disruptive), key=lambda one: one.from_s
    )
    assert canary.to_s <= second.from_s


def test_the_budget_that_holds_a_roll_up_is_named() -> None:
    run = rolled()
    assert run.disrupted_at_once == 1
    [longest, *_] = sorted(run.waited_s, key=run.waited_s.__getitem__, reverse=True)
    assert "the budget of this parent allows 1 at once" in longest, run.waited_s


def test_an_image_that_lies_there_under_its_other_name_is_not_fetched_again() -> None:
    run = rolled()
    fetched = [one.to_s - one.from_s > 1 for one in run.spans if one.part == "system.stage"]
    assert sum(fetched) == len(NODES)


def test_a_bad_image_goes_back_and_halts_the_roll() -> None:
    run = rolled("n1: image is bad for 2h")
    assert run.settled_s is None
    assert run.stuck.keys() == {"roll:b"}
    assert run.stuck["roll:b"].startswith("halted: system:compute@n1: ")
    assert flips(run) == []


def test_a_node_with_a_job_comes_last_once_the_job_has_ended() -> None:
    jobs = MeasuredJobs((900.0,), {"n1": 100.0})
    run = rolled(present=the_present(jobs, ["n1"]))
    assert flips(run)[-1] == "n1"
    assert run.settled_s is not None
    assert run.settled_s > 600


def test_a_job_without_measured_lengths_holds_its_node_until_the_roll_halts() -> None:
    run = rolled(present=the_present(busy=["n1"]), deadline_s=1_800)
    assert run.stuck == {"roll:b": "halted: its deadline has passed"}
    assert len(flips(run)) == len(NODES) - 1


def test_a_roll_outlives_its_parent_and_the_same_seed_gives_the_same_run() -> None:
    once, again = (rolled("parent dies at 90s for 1m") for _ in range(2))
    assert once == again
    assert sorted(map(str, flips(once))) == [*NODES]
