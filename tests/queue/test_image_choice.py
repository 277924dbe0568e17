"""Jobs in images go only to nodes that can run them, and first to those with the image."""

from typing import Any

import msgspec

from haptera.queue.asking import ask, has_news, preference
from haptera.queue.demand import Wanted, demand
from haptera.queue.entry import Moment, StoredQueue, Submission
from haptera.queue.job import Job, JobSpec, Size
from haptera.queue.queue import JobQueue
from haptera.queue.reason import why
from haptera.queue.work import Assignment, WorkAsked

SMALL, LARGE = Size(1, 100), Size(4, 400)
NOW = Moment(0, 1_000.0)


class Desk:
    """A queue, and nodes that ask it."""

    def __init__(self) -> None:
        self.queue = JobQueue(StoredQueue(), NOW)
        self.asked = 0

    def submit(self, size: Size = SMALL, **spec: Any) -> Job:
        one = Submission(owner="eve", name="it", spec=JobSpec(("true",), size, **spec))
        return self.queue.submit(one, NOW)[0]

    def take(self, name: str, images: tuple[str, ...] | None, *, open: bool = True) -> list[int]:
        self.asked += 1
        asked = WorkAsked("b", self.asked, open=open, images=images)
        told = ask(self.queue, name, LARGE, asked, NOW)
        self.queue.check()
        return [one.job for one in told.work]

    def why(self, job: Job) -> str:
        return why(self.queue, job, NOW.wall_s)


def test_a_node_that_runs_no_images_is_given_none_of_their_jobs_and_all_others() -> None:
    desk = Desk()
    held, plain = desk.submit(image="a"), desk.submit()
    assert desk.take("old", None) == [plain.id]
    assert desk.why(held) == "no node runs jobs in images: they need root and runc there: old"
    assert desk.take("new", ()) == [held.id]


def test_a_place_for_a_blocked_job_is_kept_only_where_it_could_run() -> None:
    desk = Desk()
    desk.take("old", None, open=True)
    blocked = desk.submit(Size(4, 100), image="a")
    small = desk.submit()
    assert desk.take("old", None) == [small.id]
    assert desk.take("new", ("a",)) == [blocked.id]


def test_a_job_whose_image_is_not_there_blocks_nobody_grows_no_pool_and_says_so() -> None:
    desk = Desk()
    lacking = desk.submit(image="a")
    other = desk.submit(image="b")
    desk.queue.lanes.lacking = {"a"}
    assert desk.take("n1", ()) == [other.id]
    assert not has_news(desk.queue, desk.queue.holders["n1"], NOW)
    assert demand(desk.queue.lanes, []) == []
    assert desk.why(lacking) == "there is no image 'a' here yet: see haptera why image:a"
    desk.queue.lanes.lacking = ()
    assert demand(desk.queue.lanes, []) == [Wanted(SMALL, 1, 0)]
    assert desk.take("n2", ()) == [lacking.id]


def test_of_nodes_with_as_much_room_the_one_that_has_the_image_is_told_first() -> None:
    desk = Desk()
    for name, images in (("n1", ()), ("n2", ("b",)), ("n3", ("a", "b"))):
        desk.take(name, images)
    desk.submit(image="a")
    holders = sorted(desk.queue.holders.values(), key=lambda one: preference(desk.queue, one, NOW))
    assert [one.name for one in holders] == ["n3", "n1", "n2"]


def test_a_free_place_without_images_is_none_for_a_job_in_one() -> None:
    desk = Desk()
    desk.take("old", None)
    desk.submit(image="a")
    rooms = desk.queue.rooms(None)
    assert demand(desk.queue.lanes, rooms) == [Wanted(SMALL, 1, 0)]
    desk.take("old", (), open=False)
    desk.take("new", ("b",))
    assert demand(desk.queue.lanes, desk.queue.rooms(None)) == []


def test_an_agent_that_knows_no_images_reads_jobs_as_before() -> None:
    sent = msgspec.json.encode(Assignment(1, 1, "it", JobSpec(("true",), SMALL)))
    assert sorted(msgspec.json.decode(sent)["spec"]) == ["command", "size"]
