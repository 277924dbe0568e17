"""Pools are kept each for itself: what is wrong with one stops no other."""

import asyncio
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from haptera.api.backend import Backend
from haptera.controllers.supply import WHO, PoolWrites, pool_said, relieve, supply_of
from haptera.daemon.queue.pools import Pools
from haptera.model.answers.views import Condition, DesiredView, EntityView, ObservedView
from haptera.model.changes import Author, Declare, SetDesired, UnsetDesired
from haptera.model.entity import EntityId, node_id
from haptera.queue.entry import Submission
from haptera.queue.job import JobSpec, Size
from haptera.queue.work import Holding, HoldingPhase, WorkAsked, WorkTold
from tests.api.real_backend import comes, real_backend

pytestmark = pytest.mark.slow

OWNER = "haptera-test"


def a_pool(name: str, **desired: str | int) -> list[Declare | SetDesired]:
    entity = EntityId("pool", name, None)
    return [
        Declare(entity, {}, "site"),
        *(SetDesired(entity, key, value, "site") for key, value in desired.items()),
    ]


WHOLE = {"provider": "local", "sizes": "small: 1 cpus, 512 MB, price 1", "min": 1, "max": 2}


@asynccontextmanager
async def pools_kept(folder: Path, *changes: Declare | SetDesired):
    async with real_backend(folder, *changes) as backend:
        keeping = asyncio.create_task(Pools(backend, backend.jobs, OWNER).run())
        try:
            yield backend, backend.jobs
        finally:
            keeping.cancel()
            await asyncio.wait([keeping])


def exists(backend: Backend, name: str) -> str | int | None:
    """What is desired of an instance: all of the places of a pool that is kept are declared."""
    held = backend.desires.declared(EntityId("instance", name, None))
    desired = None if held is None else held.desired.get("exist")
    return None if desired is None else desired.value


async def test_a_pool_that_lacks_settings_stops_no_other_and_says_what_it_lacks(
    tmp_path: Path,
) -> None:
    lacking = {name: value for name, value in WHOLE.items() if name != "sizes"}
    changes = [*a_pool("a", **lacking), *a_pool("b", **WHOLE)]
    async with pools_kept(tmp_path, *changes) as (backend, jobs):
        await comes(lambda: exists(backend, "b-1") == "absent", lambda: jobs.pools)
        said = "is not kept: pool:a: its sizes is not given (desire its sizes)"
        assert jobs.pools["a"] == said
        assert exists(backend, "a-1") is None


async def test_a_pool_whose_instances_are_anothers_stops_no_other(tmp_path: Path) -> None:
    taken = EntityId("instance", "a-1", None)
    theirs = [Declare(taken, {}, "user:eve"), SetDesired(taken, "exist", "absent", "user:eve")]
    changes = [*a_pool("a", **WHOLE), *a_pool("b", **WHOLE), *theirs]
    async with pools_kept(tmp_path, *changes) as (backend, jobs):
        await comes(lambda: exists(backend, "b-1") == "absent", lambda: jobs.pools)
        await comes(lambda: "user:eve" in jobs.pools.get("a", ""), lambda: jobs.pools)


async def test_what_is_desired_of_a_node_s_work_is_its_duty_and_outlives_the_parent(
    tmp_path: Path,
) -> None:
    node = node_id("n1")
    wish = {"work": "held", "work_why": "a fan"}
    said = [SetDesired(node, name, value, "user:eve") for name, value in wish.items()]
    async with real_backend(tmp_path, Declare(node, {}, "site"), *said) as backend:
        duty = backend.jobs.queue.duties["n1"]
        assert (duty.work, duty.reason, duty.who) == ("held", "a fan", "user:eve")
    async with real_backend(tmp_path) as backend:
        assert backend.jobs.queue.duties == {"n1": duty}
        await backend.desires.propose((UnsetDesired(node, "work"),), None, Author("user:eve"))
        assert backend.jobs.queue.duties == {}


async def test_what_the_queue_does_with_a_node_is_observed_of_it(tmp_path: Path) -> None:
    node = node_id("n1")

    def observed() -> tuple[str, bool] | None:
        view = backend.queries.entity(node)
        seen = None if view is None else view.observed.get("work")
        return None if seen is None else (seen.value, seen.known)

    async def asks(number: int, *held: Holding) -> WorkTold:
        asked = WorkAsked("boot", number, held, wait_ms=0)
        return await backend.jobs.ask("n1", Size(4, 4096), asked)

    async with real_backend(tmp_path, Declare(node, {}, "site")) as backend:
        one = Submission(owner="user:eve", name="sum", spec=JobSpec(("true",), Size(1, 1)))
        await backend.jobs.submit(one)
        (job,) = (await asks(1)).work
        await comes(lambda: observed() == ("open", True), observed)

        drain = SetDesired(node, "work", "draining", "user:eve")
        await backend.desires.propose((drain,), None, Author("user:eve"))
        await comes(lambda: observed() == ("draining", True), observed)
        # The queue heeds it where it is stored: of the engine nothing is wanted.
        assert backend.queries.entity(node).condition is Condition.IDLE

        await asks(2, Holding(job.job, job.token, HoldingPhase.ENDED, 0))
        await comes(lambda: observed() == ("drained", True), observed)
        await backend.desires.propose((UnsetDesired(node, "work"),), None, Author("user:eve"))
        await comes(lambda: observed() == ("open", True), observed)

        await backend.jobs.lose("n1", "n1 is gone")
        await comes(lambda: observed() == ("open", False), observed)


MACHINES = {"provider": "machines", "nodes": "n1", "sizes": "any: 1 cpus, 1 MB, price 1"}


def machine(**desired: tuple[str, str]) -> EntityView:
    held = {name: DesiredView(value, owner) for name, (value, owner) in desired.items()}
    attributes = {"cpus": "4", "memory_mb": "4096"}
    off = ObservedView("off", known=True, method="read", by="look_power", age_ms=1)
    return EntityView(
        entity="node:n1",
        kind="node",
        name="n1",
        node="n1",
        revision=1,
        attributes=attributes,
        desired=held,
        observed={"power": off},
        condition=Condition.CONVERGED,
        chain=[],
        since_ms=0,
    )


@pytest.mark.parametrize(
    ("desired", "patch"),
    [
        ({}, {"work": "draining", "work_why": "idle"}),
        ({"work": ("draining", WHO), "work_why": ("idle", WHO)}, None),
        ({"work": ("held", "user:eve")}, None),
        ({"work": ("open", "site")}, None),
    ],
)
def test_a_pool_drains_a_node_unless_another_says_what_its_work_is(desired, patch) -> None:
    writes = PoolWrites()
    relieve("n1", "idle", {"node:n1": machine(**desired)}, writes)
    assert writes.desired.get("node:n1") == patch


def test_a_pool_opens_what_it_has_drained_itself() -> None:
    writes = PoolWrites()
    view = machine(work=("draining", WHO), work_why=("idle", WHO))
    relieve("n1", None, {"node:n1": view}, writes)
    assert writes.desired == {"node:n1": {"work": None, "work_why": None}}


@pytest.mark.parametrize(
    ("work", "is_slot"),
    [(("failed", "user:eve"), False), (("open", "user:eve"), True), (("draining", WHO), True)],
)
def test_a_machine_that_is_off_and_that_a_person_keeps_is_no_slot(work, is_slot) -> None:
    desired = {key: DesiredView(value, "site") for key, value in MACHINES.items()}
    view = replace(machine(), entity="pool:a", kind="pool", name="a", node=None)
    said = pool_said(replace(view, desired={**desired, "max": DesiredView(1, "site")}))
    slots = supply_of(said, OWNER, 0.0).slots({"node:n1": machine(work=work)}, {})
    assert bool(slots) == is_slot


def test_what_a_user_says_of_a_node_s_work_ends_with_the_node() -> None:
    desired = {key: DesiredView(value, "site") for key, value in WHOLE.items()}
    view = replace(machine(), entity="pool:a", kind="pool", name="a", node=None)
    said = pool_said(replace(view, desired=desired))
    gone = ObservedView("absent", known=True, method="read", by="look", age_ms=1)
    there = replace(
        machine(),
        entity="instance:n1",
        kind="instance",
        observed={"exist": gone},
        desired={},
        attributes={"pool": "a"},
    )
    node = machine(work=("failed", "user:eve"))
    writes, views = PoolWrites(), {"instance:n1": there, "node:n1": node}
    supply_of(said, OWNER, 0.0).reconcile(views, {}, writes)
    assert writes.undeclare == ["node:n1"]
    assert writes.released == {"user:eve": {"node:n1": {"work": None}}}
