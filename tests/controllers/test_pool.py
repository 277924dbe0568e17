"""A pool buys what the queue needs and gives back what it does not, on a cloud with faults."""

import random

import pytest

from haptera.controllers.pool import (
    CREATES_AT_ONCE,
    SECOND_NS,
    Create,
    Drain,
    Pool,
    PoolDecision,
    Reopen,
    Slot,
    SlotPhase,
    Unmet,
    decide,
)
from haptera.kinds.instance import Refusal, RefusalCause, RefusalWords
from haptera.kinds.pool import InstanceSize
from haptera.queue.demand import Wanted
from haptera.queue.job import Size
from tests.controllers.cloud import Cloud, crashed

SMALL = InstanceSize("small", 1.0, 1, 512, "s")
MEDIUM = InstanceSize("medium", 1.4, 2, 1_024, "s")
LARGE = InstanceSize("large", 4.0, 8, 8_192, "l")
IDLE_S, BOOT_S = 30, 20


def a_pool(*, least: int = 0, most: int = 10, factor: float = 1.5) -> Pool:
    sizes = (SMALL, MEDIUM, LARGE)
    return Pool(sizes, least, most, factor, IDLE_S * SECOND_NS, BOOT_S * SECOND_NS)


def one_job(cpus: int, count: int = 1) -> Wanted:
    return Wanted(Size(cpus, 100), count, 0)


def absent(count: int) -> list[Slot]:
    return [Slot(f"p-{number}", SlotPhase.ABSENT) for number in range(1, count + 1)]


def created(cloud: Cloud) -> list[str]:
    return [size for _, _, size in cloud.asked]


def test_e1_a_hundred_jobs_of_three_sizes_come_and_go_and_nothing_stays() -> None:
    cloud = Cloud(a_pool(most=12))
    for cpus, count in ((1, 60), (2, 30), (8, 10)):
        cloud.submit(count, cpus, seconds=10)
    cloud.run_dry()
    assert (len(cloud.done), cloud.machines, cloud.killed) == (100, {}, [])
    assert cloud.living_max <= 12
    assert set(created(cloud)) == {"small", "medium", "large"}


@pytest.mark.parametrize(("cpus", "size"), [(1, "small"), (2, "medium"), (3, "large")])
def test_e1_each_job_is_given_the_cheapest_that_it_fits(cpus: int, size: str) -> None:
    decision = decide(a_pool(), absent(3), [one_job(cpus)], [], 0)
    assert decision.actions == (Create("p-1", size),)


def test_e1_what_is_on_its_way_is_counted_before_more_is_bought() -> None:
    booting = Slot("p-1", SlotPhase.BOOTING, "large", 0)
    decision = decide(a_pool(), [booting, *absent(3)[1:]], [one_job(1, 9)], [], SECOND_NS)
    assert decision.actions == (Create("p-2", "small"),)


def test_e1_small_jobs_leave_the_large_one_that_comes_to_who_needs_it() -> None:
    coming = [
        Slot("p-1", SlotPhase.BOOTING, "large", 0),
        Slot("p-2", SlotPhase.CREATING, "medium", 0),
    ]
    wanted = [one_job(2), one_job(8)]
    assert decide(a_pool(), [*coming, *absent(3)[2:]], wanted, [], SECOND_NS).actions == ()


def test_e2_a_quota_of_five_is_never_exceeded_and_met_without_a_storm() -> None:
    cloud = Cloud(a_pool(most=10), quota=5)
    cloud.submit(40, 1, seconds=10)
    cloud.run_dry()
    assert len(cloud.done) == 40
    assert cloud.living_max == 5
    refused = len(cloud.refusals)
    assert refused <= 2 + cloud.now_s // 60 + CREATES_AT_ONCE


def test_e2_a_head_that_the_full_pool_has_no_size_for_gets_one_and_the_rest_goes_on() -> None:
    cloud = Cloud(a_pool(most=3))
    cloud.submit(60, 1, seconds=5)
    cloud.run(10)
    cloud.submit(1, 8, seconds=5, priority=9)
    cloud.run(45)
    (head,) = [job for job in cloud.done if job.priority == 9]
    assert cloud.machines.keys() >= set(head.began)
    before = [job for job in cloud.done if job.priority == 0]
    assert len(before) > 20  # they went on beside it
    cloud.run_dry()
    assert cloud.killed == []


def test_e3_a_size_without_capacity_is_replaced_at_once_and_asked_for_again_later() -> None:
    cloud = Cloud(a_pool())
    cloud.answers["small"] = RefusalWords(RefusalCause.CAPACITY, "no more", "size")
    cloud.submit(3, 1, seconds=200)
    cloud.run(3)
    assert created(cloud) == ["small", "small", "small", "medium", "medium"]
    cloud.answers.clear()
    cloud.submit(5, 1, seconds=200)
    cloud.run(70)
    asked = [at for at, _, size in cloud.asked if size == "small"]
    assert [at for at in asked if 2 < at < 61] == []


def test_e3_a_family_without_capacity_is_passed_over_as_a_whole() -> None:
    refusal = Refusal(RefusalCause.CAPACITY, "capacity of family: none", 0, size=None, family="s")
    decision = decide(a_pool(factor=9), absent(1), [one_job(1)], [refusal], SECOND_NS)
    assert decision.actions == (Create("p-1", "large"),)


def test_e3_what_costs_too_much_is_not_bought_instead_and_the_reason_says_so() -> None:
    refusal = Refusal(RefusalCause.CAPACITY, "capacity of family: none", 0, size=None, family="s")
    decision = decide(a_pool(), absent(1), [one_job(1, 2)], [refusal], SECOND_NS)
    why = (
        "small: capacity of family: none, again in 59.0 s; medium: capacity of family: none, again"
        " in 59.0 s; large costs more than 1.5 times small"
    )
    assert decision == PoolDecision((), (Unmet(Size(1, 100), 2, why),), until_ns=60 * SECOND_NS)


def test_e4_a_rate_limit_is_kept_to_the_millisecond_and_no_longer() -> None:
    words = RefusalWords.parse(str(RefusalWords(RefusalCause.RATE, "slow down", after_ms=1_500)))
    refusal = words.refusal("small", "s", 0, SECOND_NS)
    until = SECOND_NS + 1_500_000_000
    early = decide(a_pool(), absent(1), [one_job(1)], [refusal], until - 1)
    assert (early.actions, early.until_ns) == ((), until)
    assert decide(a_pool(), absent(1), [one_job(1)], [refusal], until).actions == (
        Create("p-1", "small"),
    )


def test_e5_one_that_never_comes_up_is_destroyed_at_its_deadline_and_another_serves() -> None:
    cloud = Cloud(a_pool())
    cloud.hangs.add("small")
    cloud.submit(1, 1, seconds=5)
    cloud.run(BOOT_S)
    assert cloud.destroyed == []
    cloud.step()
    assert cloud.destroyed == [(BOOT_S + 1, "p-1")]
    cloud.hangs.clear()
    cloud.run_dry()
    (job,) = cloud.done
    assert len(job.began) == 1


def test_e6_a_pool_that_forgot_everything_takes_up_what_is_there_and_leaks_nothing() -> None:
    cloud = Cloud(a_pool())
    cloud.submit(20, 1, seconds=15)
    for _ in range(60):
        cloud.step()
        cloud = crashed(cloud)
    cloud.run_dry()
    assert (len(cloud.done), cloud.machines, cloud.killed) == (20, {}, [])


@pytest.mark.parametrize(
    "words",
    [
        RefusalWords(RefusalCause.QUOTA, "5 at most"),
        RefusalWords(RefusalCause.CAPACITY, "none", "size"),
        RefusalWords(RefusalCause.CAPACITY, "none"),
        RefusalWords(RefusalCause.RATE, "slow down", after_ms=300_000),
    ],
    ids=str,
)
def test_e6_a_pool_that_forgot_what_was_refused_asks_for_each_size_once_more(
    words: RefusalWords,
) -> None:
    lives, sizes_in_reach = 10, 2
    cloud = Cloud(a_pool(), answers={"*": words})
    cloud.submit(40, 1, seconds=5)
    for _ in range(lives):
        before = len(cloud.asked)
        cloud.run(cloud.now_s + 50)
        assert 0 < len(cloud.asked) - before <= CREATES_AT_ONCE * sizes_in_reach
        cloud = crashed(cloud)
    cloud.answers = {}
    cloud.run_dry()
    assert len(cloud.done) == 40


def test_e8_the_jobs_of_one_that_vanished_get_another() -> None:
    cloud = Cloud(a_pool())
    cloud.submit(2, 1, seconds=15)
    cloud.run(8)
    gone = cloud.machines.pop("p-1")
    cloud.queue += gone.jobs  # the queue's own rule, when their holder is lost
    cloud.run_dry()
    assert len(cloud.done) == 2


def test_e9_one_that_will_not_go_counts_until_it_is_gone_and_is_told_again() -> None:
    cloud = Cloud(a_pool(most=1), destroy_fails=100)
    cloud.submit(1, 1, seconds=1)
    cloud.run(IDLE_S + 15)
    assert len(cloud.destroyed) >= 5
    cloud.submit(1, 8, seconds=1)
    cloud.step()
    assert len(cloud.machines) == 1
    cloud.destroy_fails = 0
    cloud.run_dry()
    assert len(cloud.done) == 2


def test_e10_demand_that_comes_and_goes_within_the_idle_time_boots_nothing_twice() -> None:
    cloud = Cloud(a_pool())
    for _ in range(20):
        cloud.submit(3, 1, seconds=2)
        cloud.run(cloud.now_s + IDLE_S // 2)
    assert len(cloud.asked) == 3


def test_e10_one_that_is_being_drained_is_opened_again_rather_than_another_bought() -> None:
    slots = [Slot("p-1", SlotPhase.DRAINING, "small", 0), *absent(2)[1:]]
    assert decide(a_pool(), slots, [one_job(1)], [], SECOND_NS).actions == (Reopen("p-1"),)


def test_e11_a_busy_one_is_never_destroyed_whatever_else_is_wanted() -> None:
    busy = [Slot(f"p-{number}", SlotPhase.BUSY, "small", 0) for number in (1, 2)]
    late = 10_000 * SECOND_NS
    decision = decide(a_pool(most=2), busy, [one_job(8)], [], late)
    assert decision.actions == (
        Drain("p-1", "the pool is full, and a job of 8 CPUs, 100 MB waits"),
    )
    assert decide(a_pool(most=2), busy, [], [], late).actions == ()


def test_what_a_person_holds_is_neither_opened_nor_drained_nor_destroyed() -> None:
    held = [Slot("p-1", SlotPhase.HELD, "small", 0)]
    late = 10_000 * SECOND_NS
    assert decide(a_pool(most=1), held, [one_job(1)], [], late).actions == ()
    assert decide(a_pool(), held, [], [], late).actions == ()


def test_so_many_as_there_always_should_be_are_kept_idle() -> None:
    cloud = Cloud(a_pool(least=2))
    cloud.run(5 * IDLE_S)
    assert [one.phase for one in cloud.machines.values()] == [SlotPhase.IDLE, SlotPhase.IDLE]
    assert created(cloud) == ["small", "small"]


def test_a_job_that_no_size_has_room_for_is_said_and_stands_in_nobodys_way() -> None:
    decision = decide(a_pool(), absent(2), [one_job(64), one_job(1)], [], 0)
    assert decision.actions == (Create("p-1", "small"),)
    (unmet,) = decision.unmet
    assert unmet.why == (
        "no size of the pool has room: small (1 CPU, 512 MB), medium (2 CPUs, 1024 MB),"
        " large (8 CPUs, 8192 MB)"
    )


@pytest.mark.parametrize(
    "seed", [*range(30), *(pytest.param(one, marks=pytest.mark.campaign) for one in range(30, 200))]
)
def test_whatever_the_cloud_does_each_job_runs_once_and_nothing_is_left(seed: int) -> None:
    rng = random.Random(seed)
    cloud = Cloud(
        a_pool(
            least=rng.choice((0, 0, 2)), most=rng.randint(2, 10), factor=rng.choice((1, 1.5, 9))
        ),
        rng,
        boot_s=rng.randint(1, 8),
        quota=rng.choice((None, rng.randint(1, 10))),
        fails=rng.choice((0, 10, 30)),
        destroy_fails=rng.choice((0, 10, 50)),
    )
    if cloud.quota is not None and cloud.quota < cloud.pool.least:
        cloud.quota = cloud.pool.least
    for _ in range(6):
        for _ in range(rng.randint(0, 4)):
            cloud.submit(
                rng.randint(1, 8),
                rng.choice((1, 1, 2, 8)),
                rng.randint(1, 40),
                priority=rng.randrange(9),
            )
        cloud.hangs = set(rng.sample(["small", "medium", "large"], rng.choice((0, 0, 1))))
        scope = rng.choice(("size", "family", None))
        words = RefusalWords(RefusalCause.CAPACITY, "none", scope)
        slow = RefusalWords(RefusalCause.RATE, "slow down", after_ms=rng.randint(1, 9_000))
        cloud.answers = rng.choice(({}, {}, {rng.choice(("small", "large")): words}, {"*": slow}))
        cloud.run(cloud.now_s + rng.randint(5, 120))
        if rng.random() < 0.3:
            cloud = crashed(cloud)
    cloud.hangs, cloud.answers, cloud.destroy_fails = set(), {}, 0
    cloud.run_dry(within_s=20_000)
    assert sorted(job.number for job in cloud.done) == list(range(cloud.submitted))
    assert all(len(job.began) == 1 for job in cloud.done)
    assert cloud.killed == []
    assert cloud.living_max <= cloud.pool.most
