"""Jobs over REST: which ones a selector means, and what changed of them since."""

import asyncio
from dataclasses import replace

import msgspec
import pytest

from haptera.api.routes.job_list import LOOKED_AT_ONCE, Cancelling, JobList
from haptera.model.answers.views import Condition, ObservedView
from haptera.model.changes import Author, Declare
from haptera.model.entity import EntityId, node_id
from haptera.queue.asking import ask as ask_for_work
from haptera.queue.entry import Holder, Submission
from haptera.queue.job import JobSpec, Size
from haptera.queue.work import WorkAsked
from haptera.rest.job_selector import JobSubject, parse_job_selector
from haptera.rest.jobs import JobsView
from tests.api.asking import app_of, ask
from tests.api.fake_backend import FakeBackend
from tests.api.job_desk import NOW, MemoryDesk

NAMED = Submission(owner="user:eve", name="sum", spec=JobSpec(("true",), Size(2, 512)))
ARRAY = Submission(
    owner="user:bob",
    name="frames",
    spec=JobSpec(("true",), Size(1, 512), backend="slurm"),
    priority=5,
    count=3,
)


@pytest.fixture
def app():
    """Eve's job 1, which n3 has, her job 2, which waits, and Bob's array of 3 to 5 for Slurm."""
    backend = FakeBackend()
    queue = backend.jobs.queue
    queue.submit(NAMED, NOW)
    ask_for_work(queue, "n3", Size(2, 512), WorkAsked("a", 1), NOW)
    queue.submit(NAMED, NOW)
    queue.submit(ARRAY, NOW)
    return app_of(backend, wall_s=lambda: NOW.wall_s + 60)


def listed(app, **query):
    words = "&".join(f"{name}={value}" for name, value in query.items())
    answer = ask(app, "GET", f"/v1/jobs?{words.replace(' ', '%20')}", token="read-token")
    assert answer.status == 200, answer.body
    return msgspec.json.decode(answer.body, type=JobsView)


@pytest.mark.parametrize(
    ("select", "found"),
    [
        ("job:*", [5, 4, 3, 2, 1]),
        ("job:[2-4]", [4, 3, 2]),
        ("job:*@n3", [1]),
        ("n[1-4]", [1]),
        ("job:* and state=queued", [5, 4, 3, 2]),
        ("state in (locked,running)", [1]),
        ("not state=queued", [1]),
        ('owner="user:eve" and cpus=2', [2, 1]),
        ("job.name=frames and index!=0", [5, 4]),
        ("array=3", [5, 4, 3]),
        ('array="" and backend=""', [2, 1]),
        ("backend=slurm and priority=5 or state=locked", [5, 4, 3, 1]),
        ("age(submitted)>30s", [5, 4, 3, 2, 1]),
        ("age(submitted)>2m", []),
        ("age(began)>0s or age(ended)<1d", []),
        ("retry=lost or memory_mb=1 or status=0 or user=eve", []),
    ],
)
def test_jobs_are_selected_by_number_node_and_what_they_have(app, select, found):
    assert [one.id for one in listed(app, select=select).jobs] == found


@pytest.mark.parametrize(
    ("select", "what", "do"),
    [
        ("job:7 or node:n1", "a node is no job", "ask for jobs by themselves"),
        ("job:*@@gpu", "the group @gpu cannot be used for jobs", "name the nodes: job:*@n[1-4]"),
        ("job:* and state=quued", "the state of a job cannot be 'quued'", "did you mean queued"),
        ("job:* and stat=queued", "no job has a 'stat'", "did you mean state"),
        ("node.power=on", "no job has a 'node.power'", "did you mean owner? there are"),
        ("desired.state=queued", "no job has a 'desired.state'", "did you mean state? there are"),
        ("age(state)>1m", "no job has an age of 'state'", "there are"),
        ("job:* and", "a name is missing", "write NAME"),
    ],
)
def test_what_no_job_can_be_is_refused_with_its_place(app, select, what, do):
    path = f"/v1/jobs?select={select.replace(' ', '%20')}"
    told = ask(app, "GET", path, token="read-token")
    assert told.status == 400
    assert f": {what} ({do}" in told.json["detail"]


def test_who_asks_again_is_told_what_changed_and_what_is_meant_no_more(app):
    first = listed(app, select="state=queued")
    assert listed(app, select="state=queued", since=first.turn).jobs == []
    ask(app, "PATCH", "/v1/jobs/4", token="admin-token", body={"priority": 9})
    ask(app, "DELETE", "/v1/jobs/2", token="admin-token")
    ask(app, "PATCH", "/v1/jobs/3", token="admin-token", body={"priority": 9})
    then = listed(app, select="state=queued", since=first.turn, wait_s=30)
    assert ([one.id for one in then.jobs], then.others) == ([4, 3], [2])
    part = listed(app, since=first.turn, limit=2)
    assert [one.id for one in part.jobs] == [4, 2]
    assert [one.id for one in listed(app, since=part.turn).jobs] == [3]


def cancel(app, select, token="admin-token", why="a typo"):
    path = f"/v1/jobs?select={select}&why={why}".replace(" ", "%20")
    return ask(app, "DELETE", path, token=token)


def some(*ids):
    return {"count": len(ids), "ids": list(ids)}


@pytest.mark.parametrize(
    ("select", "cancelled"),
    [
        ("job:[1-3]", [1, 2, 3]),
        ("array=3", [3, 4, 5]),
        ("job:* and name=sum", [1, 2]),
        ("job:* and state=queued", [2, 3, 4, 5]),
        ('owner="user:bob" and index!=0', [4, 5]),
        ("job:*@n3 or job:[4]", [1, 4]),
    ],
)
def test_all_that_a_selector_means_are_cancelled_in_one_request(app, select, cancelled):
    told = cancel(app, select)
    assert (told.status, told.json["cancelled"]) == (200, some(*cancelled))
    assert [one["id"] for one in told.json["jobs"]] == cancelled
    gone = {one.id for one in listed(app, select="state=cancelled").jobs}
    # The one that n3 has is being stopped there.
    assert gone == set(cancelled) - {1}
    assert all("a typo" in one["why"] for one in told.json["jobs"] if one["id"] != 1)


def test_who_cancels_many_is_told_how_many_were_left_and_why(app):
    assert cancel(app, "job:[4]").status == 200
    made = {"spec": {"command": ["true"], "size": {"cpus": 1, "memory_mb": 1}}}
    ask(app, "POST", "/v1/jobs", token="write-token", body=made)
    told = cancel(app, "job:[2-7]", token="write-token")
    counted = {name: one for name, one in told.json.items() if name != "jobs"}
    assert (told.status, counted) == (
        207,
        {
            "cancelled": some(3, 5, 6),
            "ended": some(4),
            "forbidden": some(2),
            "missing": some(7),
        },
    )
    again = cancel(app, "job:[2-6]")
    assert (again.status, again.json["cancelled"]) == (200, some(2))
    assert again.json["ended"] == some(3, 4, 5, 6)


def test_cancelling_nothing_that_one_may_is_refused(app):
    assert cancel(app, "job:[1-2]", token="write-token").status == 403
    eves = cancel(app, 'owner="user:eve"', token="write-token")
    assert "2 jobs belong to others" in eves.json["detail"]
    assert cancel(app, "job:[7-9]").json["code"] == "selects-nothing"
    assert cancel(app, "job:* and state=failed").json["code"] == "selects-nothing"
    assert ask(app, "DELETE", "/v1/jobs", token="admin-token").json["code"] == "missing-value"
    assert cancel(app, "node:n1").status == 400
    assert {one.state for one in listed(app).jobs} == {"queued", "locked"}


async def test_many_are_cancelled_over_turns_and_one_that_began_meanwhile_runs_on():
    desk = MemoryDesk()
    for _ in range(3):
        await desk.submit(replace(ARRAY, count=LOOKED_AT_ONCE))
    last = 3 * LOOKED_AT_ONCE
    select = parse_job_selector("state=queued")
    meant = lambda job: select.choice.means(JobSubject(job, 0))  # noqa: E731
    many = Cancelling(desk, meant, lambda job: True)
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(many.cancel(select, "a typo"))
        await asyncio.sleep(0)
        assert desk.queue.counts["cancelled"] == LOOKED_AT_ONCE
        job = desk.queue.job(last)
        desk.queue.holders["n3"] = Holder("n3")
        desk.queue.lock(job, desk.queue.holders["n3"])
        assert not task.done()
    assert desk.queue.job(last).stopping is None
    assert many.cancelled.count == last - 1


@pytest.mark.parametrize(
    ("node", "duty", "why"),
    [
        ("n3", "busy", None),
        ("idle", "idle", None),
        ("closed", "absent", "it requests work, and starts no jobs now"),
        ("silent", "absent", "it does not request work"),
        ("small", "absent", "it takes no jobs: no cpus and memory_mb are declared for it"),
    ],
)
def test_a_held_node_that_is_opened_says_why_it_takes_no_jobs(node, duty, why):
    backend = FakeBackend()
    queue, size = backend.jobs.queue, Size(2, 512)
    queue.submit(NAMED, NOW)
    for name, is_open in (("n3", True), ("idle", True), ("closed", False)):
        ask_for_work(queue, name, size, WorkAsked("a", 1, open=is_open), NOW)
    has = {"silent": {"cpus": "2", "memory_mb": "512"}}
    names = ("n3", "idle", "closed", "silent", "small")
    changes = tuple(Declare(node_id(name), has.get(name, {}), "site") for name in names)
    asyncio.run(backend.propose(changes, None, Author("site")))
    app = app_of(backend, wall_s=lambda: NOW.wall_s)
    desire(app, node, work="held", work_why="a look")
    assert holders(app, node) == [(node, "hold", "a look", "user:bob")]
    desire(app, node, work=None, work_why=None)
    assert holders(app, node) == [(node, duty, why, None)]


@pytest.fixture
def nodes():
    """Nodes n1 to n4, of which n3 has a job; n4 is off."""
    backend = FakeBackend()
    queue, size = backend.jobs.queue, Size(2, 512)
    queue.submit(NAMED, NOW)
    ask_for_work(queue, "n3", size, WorkAsked("a", 1), NOW)
    changes = [Declare(node_id(f"n{number}"), {}, "site") for number in range(1, 5)]
    changes.append(Declare(EntityId("service", "web", "n2"), {}, "site"))
    asyncio.run(backend.propose(tuple(changes), None, Author("site")))
    backend.say(node_id("n4"), condition=Condition.STUCK, why="it refuses")
    return app_of(backend, wall_s=lambda: NOW.wall_s)


def desire(app, node, **wish):
    path = f"/v1/entities/node:{node}/desired"
    answer = ask(app, "PATCH", path, token="write-token", body=wish)
    assert answer.status == 200, answer.body


def holders(app, select=None):
    path = "/v1/queue" if select is None else f"/v1/queue?select={select}".replace(" ", "%20")
    answer = ask(app, "GET", path, token="read-token")
    assert answer.status == 200, answer.body
    found = answer.json["holders"]
    return [tuple(one[name] for name in ("name", "duty", "reason", "who")) for one in found]


@pytest.mark.parametrize(
    ("select", "names"),
    [
        ("n[1-2]", ["n1", "n2"]),
        ("n1 or node:n3", ["n1", "n3"]),
        ("n*", ["n1", "n2", "n3", "n4"]),
        ("condition=stuck", ["n4"]),
        ("node:* and not n[1-3]", ["n4"]),
        (None, ["n3"]),
    ],
)
def test_the_queue_shows_the_nodes_that_a_selector_means_or_those_that_take_jobs(
    nodes, select, names
):
    assert [name for name, *_ in holders(nodes, select)] == names


def test_what_is_desired_of_the_work_of_nodes_is_their_duty(nodes):
    desire(nodes, "n1", work="draining", work_why="heat")
    desire(nodes, "n2", work="failed")
    desire(nodes, "n3", work="draining", work_why="heat", work_until=2_000)
    desire(nodes, "n4", work="open", work_why="again")
    assert holders(nodes) == [
        ("n1", "drained", "heat", "user:bob"),
        ("n2", "failed", "no reason is given", "user:bob"),
        ("n3", "draining", "heat", "user:bob"),
    ]
    (one,) = ask(nodes, "GET", "/v1/queue?select=n3", token="read-token").json["holders"]
    assert one["deadline_s"] == 2_000


def test_a_node_of_another_batch_system_is_drained_once_that_says_so():
    backend, node = FakeBackend(), node_id("n1")
    asyncio.run(backend.propose((Declare(node, {}, "site"),), None, Author("site")))
    app = app_of(backend, wall_s=lambda: NOW.wall_s)
    desire(app, "n1", work="draining", work_why="heat")
    for value, stands in (("open", "draining"), ("draining", "draining"), ("drained", "drained")):
        seen = ObservedView(value, known=True, method="read", by="slurm", age_ms=1)
        backend.say(node, observed={"work": seen})
        assert holders(app) == [("n1", stands, "heat", "user:bob")]


@pytest.mark.parametrize("select", ["n[1-9]", "n1 or n9", "n1 or node:n9"])
def test_the_queue_shows_none_where_one_of_those_named_is_not_there(nodes, select):
    path = f"/v1/queue?select={select}".replace(" ", "%20")
    assert ask(nodes, "GET", path, token="read-token").status == 404


@pytest.mark.parametrize("wish", [{"work": "rest"}, {"work_until": -1}, {"work_why": "a" * 201}])
def test_work_that_no_node_can_have_is_refused(nodes, wish):
    path = "/v1/entities/node:n1/desired"
    assert ask(nodes, "PATCH", path, token="write-token", body=wish).status == 400


@pytest.mark.parametrize(
    ("method", "path"), [("PUT", "/n1"), ("DELETE", ""), ("PUT", "?select=n1")]
)
def test_who_asks_for_a_duty_as_before_is_told_what_to_write(nodes, method, path):
    answer = ask(nodes, method, f"/v1/duties{path}", token="write-token", body={"mode": "drain"})
    assert answer.status == 404
    assert "PATCH /v1/entities/node:NAME/desired" in answer.json["do"]


def test_a_turn_of_a_parent_that_was_before_is_of_nothing_seen(app):
    ask(app, "DELETE", "/v1/jobs/2", token="admin-token")
    assert [one.id for one in listed(app, since="another-9.9000").jobs] == [2]
    assert ask(app, "GET", "/v1/jobs?since=7", token="read-token").status == 400


def test_a_change_is_waited_for():
    async def waits():
        desk = MemoryDesk()
        jobs = JobList(desk, lambda job: True, 10)
        async with asyncio.TaskGroup() as tasks:
            waiting = tasks.create_task(jobs.changed(desk.news.last, 60))
            await asyncio.sleep(0)  # it is asked before anything changes
            assert not waiting.done()
            await desk.submit(NAMED)
        return [job.id for job in waiting.result().jobs]

    assert asyncio.run(waits()) == [1]


def test_a_job_that_asks_for_no_cpus_is_counted_like_others():
    backend = FakeBackend()
    queue = backend.jobs.queue
    ask_for_work(queue, "n3", Size(2, 512), WorkAsked("a", 1), NOW)
    queue.submit(Submission(owner="user:eve", name="no", spec=JobSpec(("true",), Size(0, 0))), NOW)
    big = JobSpec(("true",), Size(0, 1024))
    queue.submit(Submission(owner="user:eve", name="big", spec=big), NOW)
    app = app_of(backend, wall_s=lambda: NOW.wall_s + 60)

    told = ask(app, "GET", "/v1/queue", token="read-token")

    assert told.status == 200, told.body
    assert [one["count"] for one in told.json["wanted"]] == [1]


def test_a_list_has_no_commands_and_comes_in_pieces():
    """However long the commands are, and however many jobs there are, others have their turn."""
    backend = FakeBackend()
    long = replace(NAMED, spec=JobSpec(("echo", "x" * 32_000), Size(2, 512)), count=3_000)
    backend.jobs.queue.submit(long, NOW)
    app = app_of(backend, wall_s=lambda: NOW.wall_s)

    answer = ask(app, "GET", "/v1/jobs?limit=10000", token="read-token")

    assert len(answer.json["jobs"]) == 3_000
    assert len(answer.body) < 2_000_000
    assert answer.pieces > 10
    assert "command" not in answer.json["jobs"][0]["spec"]
    one = ask(app, "GET", "/v1/jobs/7", token="read-token").json
    assert one["spec"]["command"] == ["echo", "x" * 32_000]


@pytest.mark.parametrize("words", [["x" * 32_768], ["x" * 200] * 200, ["é" * 16_384]])
def test_a_command_is_bounded_as_a_whole(app, words):
    spec = {"command": words, "size": {"cpus": 1, "memory_mb": 1}}
    answer = ask(app, "POST", "/v1/jobs", token="admin-token", body={"spec": spec})
    assert answer.status == 400
    assert "bytes, more than 32768: put what is long into a file" in answer.json["detail"]


@pytest.mark.parametrize("number", ["9" * 5_000, "%C2%B2", "%D9%A1", "-1", "1e9"])
def test_a_job_of_no_number_is_not_there(number):
    app = app_of(FakeBackend())
    for method in ("GET", "DELETE"):
        assert ask(app, method, f"/v1/jobs/{number}", token="admin-token").status == 404
