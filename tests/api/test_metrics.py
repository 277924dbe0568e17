"""What Prometheus reads: figures with names, units and labels as its own tools want them."""

import shutil
import subprocess

import pytest

from haptera.api.app import make_app
from haptera.api.requests.meters import Meters
from haptera.api.routes.metrics import Tallies
from haptera.core.figures import Figures, ModuleFigures
from haptera.core.sync.peers import Tier
from haptera.kinds.node import NodeWork
from haptera.queue.asking import ask as ask_for_work
from haptera.queue.duty import Duty
from haptera.queue.entry import Submission
from haptera.queue.job import JobSpec, Size
from haptera.queue.work import WorkAsked
from haptera.site import Sites
from tests.api.asking import app_of, ask
from tests.api.fake_backend import FakeBackend
from tests.api.job_desk import NOW

SPEC = JobSpec(("true",), Size(3, 1))

FIGURES = Figures(
    entities={"node": {"converged": 3, "stuck": 1}},
    children={Tier.FRESH: 3, Tier.SUSPECT: 0, Tier.LOST: 1},
    steps={("labnode.switch_on", True): 4, ("labnode.switch_on", False): 2},
    usual_ns={"labnode.switch_on": 1_500_000_000},
    modules={"labnode": ModuleFigures(started=2, serves=True)},
    brakes=True,
)
TALLIES = Tallies(
    {"replay": 5},
    {"enrolled": 4},
    {"LogAsked": 1},
    slots={("burst", "busy"): 2},
    refusals={("burst", "quota"): 3},
)
COUNTED = """\
haptera_info{cluster="quick",version="0.dev0"} 1.0
haptera_entities{condition="converged",kind="node"} 3.0
haptera_entities{condition="stuck",kind="node"} 1.0
haptera_children{tier="fresh"} 3.0
haptera_children{tier="suspect"} 0.0
haptera_children{tier="lost"} 1.0
haptera_brake_engaged 1.0
haptera_steps_total{outcome="worked",step="labnode.switch_on"} 4.0
haptera_steps_total{outcome="failed",step="labnode.switch_on"} 2.0
haptera_part_usual_duration_seconds{part="labnode.switch_on"} 1.5
haptera_module_processes_started_total{module="labnode"} 2.0
haptera_module_serves{module="labnode"} 1.0
haptera_datagrams_refused_total{reason="replay"} 5.0
haptera_enrolments_total{outcome="enrolled"} 4.0
haptera_requests_total{request="LogAsked"} 1.0
haptera_pool_instances{phase="busy",pool="burst"} 2.0
haptera_pool_refusals_total{cause="quota",pool="burst"} 3.0
haptera_jobs{state="queued"} 2.0
haptera_jobs{state="locked"} 1.0
haptera_jobs{state="running"} 0.0
haptera_jobs{state="complete"} 0.0
haptera_jobs{state="failed"} 0.0
haptera_jobs{state="cancelled"} 0.0
haptera_jobs_longest_wait_seconds 60.0
haptera_job_holders{duty="idle"} 0.0
haptera_job_holders{duty="busy"} 1.0
haptera_job_holders{duty="draining"} 0.0
haptera_job_holders{duty="drained"} 0.0
haptera_job_holders{duty="failed"} 0.0
haptera_job_holders{duty="hold"} 1.0
haptera_job_holders{duty="absent"} 0.0
haptera_job_cpus{which="there"} 4.0
haptera_job_cpus{which="free"} 1.0
haptera_jobs_without_place 2.0
"""


async def figures():
    return FIGURES


@pytest.fixture
def app():
    backend = FakeBackend()
    backend.figures = figures
    fill(backend.jobs.queue)
    return make_app(
        backend,
        Sites("quick"),
        cluster="quick",
        tallies=TALLIES,
        meters=Meters(),
        wall_s=lambda: NOW.wall_s + 60,
    )


def fill(queue):
    """Three jobs of three CPUs, of which a node of four has one; another node is held."""
    queue.submit(Submission(owner="eve", name="it", spec=SPEC, count=3), NOW)
    ask_for_work(queue, "n1", Size(4, 4), WorkAsked("b", 1), NOW)
    queue.set_duty("n2", Duty(NodeWork.HELD, "looked into", "eve"))


def metrics(app, token="read-token", **headers):
    return ask(app, "GET", "/metrics", token=token, headers=headers)


def lines(app, start):
    """All samples that begin so, in order."""
    text = metrics(app).body.decode()
    return [line for line in text.splitlines() if line.startswith(start)]


def test_what_is_counted_is_told_with_its_labels(app):
    text = metrics(app).body.decode()
    told = text[text.index("# HELP haptera_info ") :].splitlines()
    assert [line for line in told if not line.startswith("#")] == COUNTED.splitlines()


def test_requests_are_measured_by_route_and_status_and_not_by_what_they_name(app):
    ask(app, "GET", "/v1/entities/node:n1", token="read-token")
    ask(app, "GET", "/v1/entities/node:n2", token="read-token")
    ask(app, "GET", "/v1/entities/node:n2")
    counted = "haptera_api_request_duration_seconds_count"
    route = 'method="GET",route="/v1/entities/{entity}"'
    assert lines(app, counted) == [
        f'{counted}{{code="404",{route}}} 2.0',
        f'{counted}{{code="401",{route}}} 1.0',
    ]


def test_turns_are_measured(app):
    meters = Meters()
    meters.turned(3, 0)
    meters.turned(0, 0)
    backend = FakeBackend()
    app = app_of(backend, meters=meters)
    assert lines(app, "haptera_turn_duration_seconds_count") == [
        "haptera_turn_duration_seconds_count 2.0"
    ]
    assert lines(app, "haptera_events_total") == ["haptera_events_total 3.0"]


def test_who_may_not_read_is_told_nothing(app):
    assert (metrics(app, token=None).status, metrics(app, token="none").status) == (401, 401)


def test_the_format_is_the_one_that_is_asked_for(app):
    assert metrics(app).headers["content-type"].startswith("text/plain; version=0.0.4")
    openmetrics = metrics(app, accept="application/openmetrics-text; version=1.0.0")
    assert openmetrics.headers["content-type"].startswith("application/openmetrics-text")
    assert openmetrics.body.endswith(b"# EOF\n")


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
def test_promtool_finds_nothing_to_say(app):
    ask(app, "GET", "/v1/summary", token="read-token")
    told = subprocess.run(
        ["promtool", "check", "metrics"],
        input=metrics(app).body,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (told.returncode, told.stdout, told.stderr) == (0, b"", b"")


def test_the_space_left_on_the_disk_of_the_store_is_told(tmp_path):
    app = app_of(FakeBackend(), tallies=Tallies(home=tmp_path))
    (line,) = lines(app, "haptera_store_disk_free_bytes")
    total, _, free = shutil.disk_usage(tmp_path)
    # Others write to it meanwhile.
    assert abs(float(line.split()[1]) - free) < total / 10


def test_a_disk_that_cannot_be_asked_takes_no_other_figure_away(tmp_path):
    gone = Tallies(home=tmp_path / "gone")
    app = app_of(FakeBackend(), tallies=gone)
    assert lines(app, "haptera_store_disk_free_bytes") == []
    assert lines(app, "haptera_brake_engaged") == ["haptera_brake_engaged 0.0"]
