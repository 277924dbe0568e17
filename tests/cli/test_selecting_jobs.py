"""Jobs under the verbs that tell of everything else: `get`, `why`, `watch`."""

import json
import os
import signal
import subprocess
from contextlib import ExitStack, contextmanager
from dataclasses import replace

import pytest

from haptera.cli.main import OK, REFUSED, USAGE, run
from haptera.model.changes import Declare
from haptera.model.entity import node_id
from haptera.queue.asking import ask as ask_for_work
from haptera.queue.entry import Submission
from haptera.queue.job import JobSpec, Size
from haptera.queue.work import WorkAsked
from tests.api.job_desk import NOW
from tests.api.serving import WITHIN_S, serving
from tests.cli.rig import command
from tests.cli.test_commands import point_at
from tests.cli.test_watching import until

pytestmark = pytest.mark.net

SUM = Submission(owner="user:admin", name="sum", spec=JobSpec(("true",), Size(2, 512)))
GIANT = Submission(owner="user:eve", name="giant", spec=JobSpec(("true",), Size(64, 512)))
TOO_LARGE = (
    "no node is large enough for 64 CPUs, 512 MB: 62 CPUs missing; there are 1 x 2 CPUs, 512 MB"
)


@pytest.fixture
def cluster(monkeypatch, tmp_path):
    """Job 1, which n3 has, and job 2, which is larger than n3."""
    monkeypatch.chdir(tmp_path)
    with serving() as one:
        queue = one.backend.jobs.queue
        one.do(queue.submit, SUM, NOW)
        one.do(ask_for_work, queue, "n3", Size(2, 512), WorkAsked("a", 1), NOW)
        one.do(queue.submit, GIANT, NOW)
        point_at(one.url, "admin-token", monkeypatch, tmp_path)
        yield one


def typed(capsys, *words):
    return run(words), *capsys.readouterr()


TABLE = f"""\
JOB    STATE   NAME   PRIO  CPUS  MB   NODE  WHY
job:2  queued  giant  0     64    512  -     {TOO_LARGE}
job:1  locked  sum    0     2     512  n3    n3 has it and is about to start
"""


@pytest.mark.parametrize("words", [["job"], ["job:*"], ["job", "1", "2"], ["job:*@n3 or job:2"]])
def test_jobs_are_got_as_all_else_is(cluster, capsys, words):
    assert typed(capsys, "get", *words) == (OK, TABLE, "")
    assert typed(capsys, "get", *words, "-o", "name") == (OK, "job:[1-2]\n", "")


def test_what_one_command_prints_as_jobs_another_takes(cluster, capsys):
    selector = typed(capsys, "get", "job:* and state=queued", "-o", "name")[1].strip()
    assert selector == "job:2"
    assert typed(capsys, "why", selector) == (OK, f"job:2 giant is queued: {TOO_LARGE}\n", "")


def test_why_tells_of_each_job_that_has_not_ended(cluster, capsys):
    assert run(["cancel", "job:2"]) == OK
    capsys.readouterr()
    told = "job:1 sum is locked: n3 has it and is about to start\n"
    assert typed(capsys, "why", "job:*") == (OK, told, "")
    assert typed(capsys, "why", "job:* and state=cancelled") == (
        OK,
        "all of them have ended\n",
        "",
    )


def test_jobs_that_are_not_there_are_said_to_be_so(cluster, capsys):
    for verb in ("get", "why"):
        assert typed(capsys, verb, "job:7")[0] == REFUSED
        code, out, err = typed(capsys, verb, "job:* and state=failed")
        assert (code, out) == (REFUSED, "")
        assert err.startswith("error: there is no job:* and state=failed\n")


def test_many_jobs_are_cancelled_by_range_and_selector_in_one_request(cluster, capsys):
    more = replace(GIANT, count=30)
    cluster.do(cluster.backend.jobs.queue.submit, more, NOW)
    assert typed(capsys, "jobs", "2-3", "job:*@n3", "-o", "name")[1] == "job:3\njob:2\njob:1\n"
    code, out, err = typed(capsys, "cancel", "2", "job:[3-4]", "6-7", "job:*@n3", "-m", "a typo")
    assert (code, err) == (OK, "")
    assert [line.split()[0] for line in out.splitlines()] == [
        f"job:{n}" for n in (1, 2, 3, 4, 6, 7)
    ]
    code, out, err = typed(capsys, "cancel", "job:* and name=giant")
    assert (code, err) == (OK, "job:[2-4,6-7] had ended before\n")
    assert out.splitlines()[-1] == "and 6 more: 26 jobs in all"
    code, _, err = typed(capsys, "cancel", "30-34")
    assert code == REFUSED
    assert err.startswith("job:[30-32] had ended before\nerror: not there: job:[33-34]\n")


def test_what_is_no_job_is_not_cancelled(cluster, capsys):
    for word in ("n3", "state=queued", "giant"):
        code, _, err = typed(capsys, "cancel", word)
        assert code == USAGE
        assert f"{word!r} is not a job: write 7, 7-9, job:[7-9]" in err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["get", "job:1", "--at", "10m"], "how jobs were is not kept: leave out --at"),
        (["get", "job", "--watch", "-o", "json"], "leave out -o, or use haptera watch -o json"),
        (["watch", "job:*", "--type", "desired"], "jobs change in one way only"),
    ],
)
def test_what_is_no_question_about_jobs_is_said_to_be_so(cluster, capsys, words, said):
    code, _, err = typed(capsys, *words)
    assert (code, said in err) == (USAGE, True)


@contextmanager
def watching(selector):
    """The next line that `watch` writes; it must end well when it is interrupted."""
    with subprocess.Popen(
        command("watch", selector), stdout=subprocess.PIPE, env=os.environ, text=True
    ) as process:
        try:
            yield process.stdout.readline
            process.send_signal(signal.SIGINT)
            assert process.wait(WITHIN_S) == OK
        finally:
            process.kill()


@pytest.mark.slow
def test_jobs_are_watched_as_they_change(cluster):
    with watching("job:* and state in (queued,cancelled) and cpus=64") as line:
        assert line() == f"{'job:2':24}  queued     giant  {TOO_LARGE}\n"
        assert run(["cancel", "job:1"]) == run(["cancel", "job:2", "-m", "a typo"]) == OK
        assert line() == f"{'job:2':24}  cancelled  giant  by user:ada: a typo\n"


@pytest.mark.slow
def test_a_job_that_is_meant_no_more_has_left(cluster):
    with watching("job:* and state=queued") as line:
        assert line().startswith("job:2 ")
        assert run(["cancel", "job:2"]) == OK
        assert line() == f"{'job:2':24}  left\n"


@pytest.mark.slow
def test_get_and_why_are_written_again_when_a_job_changes(cluster):
    asked = command("get", "job:*", "--watch"), command("why", "job:2", "--watch")
    with ExitStack() as opened:
        got, why = (
            opened.enter_context(subprocess.Popen(one, stdout=subprocess.PIPE, text=True))
            for one in asked
        )
        until(got.stdout, "job:2  queued ")
        until(why.stdout, f"job:2 giant is queued: {TOO_LARGE}")
        assert run(["cancel", "job:2", "-m", "a typo"]) == OK
        until(got.stdout, "job:2  cancelled ")
        until(why.stdout, "job:2 giant is cancelled: by user:ada: a typo")
        for one in (got, why):
            one.send_signal(signal.SIGINT)
            assert one.wait(WITHIN_S) == OK


def test_many_nodes_are_drained_and_resumed_by_one_command(cluster, capsys):
    nodes = [node_id(f"n{number}") for number in (3, 4, *range(10, 35))]
    cluster.do(cluster.backend.write, *(Declare(one, {}, "site") for one in nodes))
    told = "n3 is draining: job:1 is there still: heat\nn4 is drained: heat\n"
    assert typed(capsys, "drain", "n3", "node:n4", "-m", "heat") == (OK, told, "")
    assert typed(capsys, "resume", "*", "--state", "drained", "--who", "ada") == (
        OK,
        "n4 may take jobs again, but it takes no jobs: no cpus and memory_mb are declared for it\n",
        "",
    )
    code, out, err = typed(capsys, "hold", "n[10-34]", "-m", "heat")
    assert (code, err) == (OK, "")
    assert out.splitlines()[19:] == ["n29 is hold: heat", "and 5 more: 25 nodes in all"]
    assert typed(capsys, "resume", "n[30-36]") == (
        REFUSED,
        "",
        "error: there is no node:n35\n"
        "  see which there are: haptera get node, or GET /v1/entities?kind=node\n",
    )
    both = json.loads(typed(capsys, "resume", "n[3-4]", "-o", "json")[1])
    assert [one["name"] for one in both] == ["n3", "n4"]
    assert json.loads(typed(capsys, "resume", "n3", "-o", "json")[1])["name"] == "n3"
