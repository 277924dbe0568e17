"""What is on no node, and the jobs: tables, logs, and what may be done there."""

import re

import pytest

import haptera
from haptera.api.routes.metrics import Tallies
from haptera.model.answers.views import BrakeView, Condition, ParentView, TreeView
from haptera.model.changes import Declare, SetDesired
from haptera.model.entity import EntityId, node_id
from haptera.queue.entry import Submission
from haptera.queue.job import JobSpec, JobState, Size
from tests.api.job_desk import NOW
from tests.api.serving import serving
from tests.cli.drawing.examples import EXAMPLES
from tests.web.chromium import CHROMIUM
from tests.web.seen import NODES, changes, tell, web
from tests.web.test_acting import confirm, press
from tests.web.test_overview import see

pytestmark = [pytest.mark.slow, *CHROMIUM]

LEDGER, MAIL = (EntityId("group", name, None) for name in ("ledger", "mail"))
TABS = "[...document.querySelectorAll('#tabs button')].map(e => e.textContent)"
ROWS = "[...document.querySelectorAll('#%s tbody tr')].map(e => e.innerText.replaceAll('\\n', ' '))"
PANEL = "document.querySelector('#panel article')?.innerText"
DIALOG = "document.getElementById('ask').innerText"
GONE = "!document.getElementById('ask').open"


def cluster():
    yield from changes()
    yield Declare(web(NODES[0]), {}, "site")
    for group, count in ((LEDGER, 3), (MAIL, 1)):
        yield Declare(group, {}, "site")
        yield SetDesired(group, "replicas", count, "site")


@pytest.fixture
def parent():
    with serving(*cluster()) as one:
        one.do(tell, one.backend)
        yield one


@pytest.fixture
def page(browser, parent):
    see(browser, parent, token="write-token")
    yield browser
    assert [one for one in browser.wrong if one.get("source") != "network"] == []


def show(page, kind):
    page.evaluate(f"document.querySelector('#tabs [data-key={kind}]').click()")


def choose(page, entity):
    page.evaluate(f"document.querySelector('main [data-key=\"{entity}\"]').click()")
    return page.await_(f"{PANEL}?.startsWith('{entity}') && {PANEL}")


def submit(parent, count=1, cpus=2, owner="user:bob"):
    spec = JobSpec(("sleep", "60"), Size(cpus, 512))
    one = Submission(owner=owner, name="sim", spec=spec, count=count)
    return parent.do(parent.backend.jobs.queue.submit, one, NOW)


def test_each_kind_that_is_on_no_node_has_a_tab_that_tells_what_is_wrong(page, parent):
    assert page.await_(TABS) == ["nodes 16", "group 2", "jobs", "haptera"]
    parent.do(parent.backend.say, LEDGER, condition="stuck", why="the racks are too few")
    page.await_(f"{TABS}.includes('group 2, stuck')")
    show(page, "group")
    rows = page.await_(f"{ROWS % 'table'}.length && {ROWS % 'table'}")
    assert [one.split() for one in rows] == [
        ["ledger", "stuck", "3", "the", "racks", "are", "too", "few"],
        ["mail", "converged", "1"],
    ]
    assert "the racks are too few" in choose(page, "group:ledger")
    assert page.evaluate("location.hash.includes('show=group')")
    assert page.evaluate("document.getElementById('overview').hidden")
    page.evaluate("document.querySelector('#tabs button').click()")
    assert page.await_("!document.getElementById('overview').hidden")
    assert page.evaluate("document.getElementById('canvas').clientWidth") > 300


def test_jobs_are_shown_with_what_they_wait_for_and_one_is_cancelled(page, parent):
    first, second = submit(parent, count=2)
    show(page, "jobs")
    rows = page.await_(f"{ROWS % 'jobs'}.length && {ROWS % 'jobs'}")
    assert [one.split()[:3] for one in rows] == [["2", "queued", "sim"], ["1", "queued", "sim"]]
    told = page.evaluate("document.getElementById('jobs').innerText")
    assert "2 jobs wait for 2 CPU, 512 MB: no node has so much free now" in told
    choose(page, f"job:{second.id}")
    page.await_(f"{PANEL}.includes('sleep 60')")
    press(page, "cancel")
    confirm(page, "the wrong input")
    page.await_(f"{PANEL}.includes('cancelled')")
    job = parent.backend.jobs.queue.job(second.id)
    assert (job.state, parent.backend.jobs.queue.job(first.id).state) == (
        JobState.CANCELLED,
        JobState.QUEUED,
    )
    assert "by user:bob: the wrong input" in page.evaluate(PANEL)


def test_a_job_of_somebody_else_has_no_button_that_would_be_refused(page, parent):
    (other,) = submit(parent, owner="user:eve")
    show(page, "jobs")
    page.await_(f"{ROWS % 'jobs'}.length")
    choose(page, f"job:{other.id}")
    page.await_(f"{PANEL}.includes('sleep 60')")
    assert page.evaluate("document.querySelector('#panel [data-deed=cancel]')") is None


def test_a_node_is_drained_with_a_reason_and_let_take_jobs_again(page, parent):
    node = node_id(NODES[0])
    wish = {"work": "held", "work_why": "a fan"}.items()
    changes = [SetDesired(node, name, value, "user:eve") for name, value in wish]
    parent.do(parent.backend.write, *changes)
    show(page, "jobs")
    page.await_(f"{ROWS % 'jobs'}.some((one) => one.includes('a fan, says user:eve'))")
    page.evaluate("document.querySelector('#jobs [data-deed=resume]').click()")
    confirm(page)
    page.await_(GONE)
    assert {"work", "work_why"}.isdisjoint(parent.backend.entity(node).desired)


def test_a_value_is_set_after_its_plan_was_seen(page, parent):
    page.evaluate(f"location.hash = 'node={NODES[0]}'")
    press(page, "set")
    page.evaluate(
        "(() => { const it = document.getElementById('value'); it.value = 'off';"
        " it.dispatchEvent(new Event('input')); })()"
    )
    confirm(page)
    page.await_("document.querySelector('#ask .plan li')")
    assert "it is desired by site; it will be yours" in page.evaluate(DIALOG)
    power = parent.backend.entity(node_id(NODES[0])).desired["power"]
    assert (power.value, power.owner) == ("on", "site")  # Seen only.
    confirm(page, "moved")
    page.await_(GONE)
    power = parent.backend.entity(node_id(NODES[0])).desired["power"]
    assert (power.value, power.owner) == ("off", "user:bob")


def test_a_node_is_switched_off_after_its_plan_and_its_owner_were_seen(page, parent):
    page.evaluate(f"location.hash = 'node={NODES[0]}'")
    press(page, "power")
    page.await_("document.querySelector('#ask .plan li')")
    asked = page.evaluate(DIALOG)
    assert f"Set a desired value of node:{NODES[0]}" in asked
    assert "it is desired by site; it will be yours" in asked
    assert parent.backend.entity(node_id(NODES[0])).desired["power"].value == "on"
    confirm(page, "a fan")
    page.await_(GONE)
    power = parent.backend.entity(node_id(NODES[0])).desired["power"]
    assert (power.value, power.owner) == ("off", "user:bob")
    button = "document.querySelector('#panel [data-deed=power]')?.textContent"
    page.await_(f"{button} === 'Switch on'")


DRAWN = """
import('./page/setting.js').then(({drawn}) => {
  const chain = [{does: 'reboots it'}];
  const all = {of: 'node', on: 'n[1-90]', usual_ms: 1000, at_least_ms: 0};
  const groups = [1, 3, 30, null].map((rounds) => (
    {...all, chain, rounds, busy: null, services: null, why: null}));
  const [list] = drawn({rewrites: [], groups, disrupted: null});
  const boxes = (one) => [...one.querySelectorAll('.waves span')].map((e) => e.textContent);
  return [...list.children].map(boxes);
})
"""


def test_a_plan_is_drawn_with_a_box_for_each_round_of_its_budgets(page):
    none, three, thirty, never = page.evaluate(DRAWN)
    assert (none, three, never) == ([], ["1", "2", "3"], [])
    assert thirty == [*map(str, range(1, 24)), "… 30"]


def test_a_value_that_is_refused_says_why(page):
    page.evaluate(f"location.hash = 'node={NODES[0]}'")
    press(page, "set")
    page.evaluate("document.getElementById('value').value = 'sideways'")
    confirm(page)
    wrong = page.await_("document.querySelector('#ask .wrong[role=alert]').textContent")
    assert "sideways" in wrong


def test_a_log_is_followed_while_it_is_open(page, parent):
    service = web(NODES[0])
    parent.backend.logs[service] = b"ready at port 80\n"
    page.evaluate(f"location.hash = 'node={NODES[0]}'")
    page.await_("!document.getElementById('log').hidden")
    page.evaluate("document.getElementById('log').open = true")
    lines = "document.querySelector('#log pre').textContent"
    page.await_(f"{lines} === 'ready at port 80\\n'")
    parent.backend.logs[service] += b"a request\n"
    page.await_(f"{lines} === 'ready at port 80\\na request\\n'")


def test_a_console_is_followed_while_it_is_open_and_its_reader_is_in_the_audit(page, parent):
    node, lines = node_id(NODES[0]), "document.querySelector('#log pre').textContent"
    parent.backend.logs |= {node: b"GRUB loads\n", web(NODES[0]): b"ready at port 80\n"}
    page.evaluate(f"location.hash = 'node={NODES[0]}'")
    page.await_("!document.getElementById('log').hidden")
    page.evaluate("document.getElementById('log').open = true")
    page.await_(f"{lines} === 'ready at port 80\\n'")
    assert parent.backend.noted == []
    pick = "it.value = it.options[1].value; it.dispatchEvent(new Event('change'))"
    page.evaluate(f"(() => {{ const it = document.querySelector('#log select'); {pick}; }})()")
    page.await_(f"{lines} === 'GRUB loads\\n'")
    parent.backend.logs[node] += b"login:\n"
    page.await_(f"{lines} === 'GRUB loads\\nlogin:\\n'")
    page.evaluate(f"location.hash = 'node={NODES[1]}'")
    page.await_("!document.getElementById('log').open")
    assert [(one.who, one.what) for one in parent.backend.noted] == [
        ("user:bob", f"console {node}")
    ]


def test_a_node_without_a_recorded_console_says_so(page):
    page.evaluate(f"location.hash = 'node={NODES[1]}'")
    page.await_("!document.getElementById('log').hidden")
    page.evaluate("document.getElementById('log').open = true")
    page.await_(f"document.querySelector('#log pre').textContent.includes('{NODES[1]} has no log')")


def test_what_is_wrong_with_haptera_itself_stands_above_all(page, parent):
    assert page.evaluate("document.getElementById('faults').hidden")
    parent.backend.tree.wrong = ["the store of this parent cannot be written: the disk is full"]
    told = "document.getElementById('faults').innerText"
    assert parent.backend.tree.wrong[0] in page.await_(f"{told} && {told}")
    parent.backend.tree.wrong = []
    page.await_("document.getElementById('faults').hidden")


def test_the_brake_is_told_and_released(page, parent):
    parent.backend.braked = BrakeView("12 of 16 nodes are lost", 90_000)
    told = "document.getElementById('brake').innerText"
    assert "the brake is on: 12 of 16 nodes are lost" in page.await_(f"{told} && {told}")
    page.evaluate("document.querySelector('#brake button').click()")
    confirm(page, "a switch was down")
    page.await_("document.getElementById('brake').hidden")
    assert parent.backend.braked.why is None


def test_a_roll_shows_how_far_it_is_and_is_paused(page, parent):
    roll, backend = EntityId("roll", "b", None), parent.backend
    systems = [EntityId("system", "login", name) for name in NODES[:4]]
    wishes = {"image": "debian-b", "select": "system:*", "wish": "run"}
    parent.do(backend.write, Declare(roll, {}, "site"))
    for name, value in wishes.items():
        parent.do(backend.write, SetDesired(roll, name, value, "user:eve"))
    for number, system in enumerate(systems):
        image = "debian-b" if number < 3 else "debian-a"
        parent.do(backend.write, Declare(system, {}, "site"))
        parent.do(backend.write, SetDesired(system, "image", image, "user:eve"))
        parent.do(backend.write, SetDesired(system, "roll", "b", "user:eve"))
    parent.do(backend.say, systems[2], condition=Condition.ACTING, why="starts")
    page.await_(f"{TABS}.includes('roll 1')")
    show(page, "roll")
    page.await_(
        "document.querySelector('#table progress')?.ariaLabel === '2 of 4 run the new image'"
    )
    choose(page, "roll:b")
    press(page, "pause")
    assert "as user:eve says: that will be yours" in page.evaluate(DIALOG)
    confirm(page, "lunch")
    page.await_(f"{PANEL}.includes('pause')")
    wish = backend.entity(roll).desired["wish"]
    assert (wish.value, wish.owner) == ("pause", "user:bob")
    page.await_("document.querySelector('#panel [data-deed=goOn]')")


def test_haptera_itself_is_told_by_its_figures(page):
    show(page, "haptera")
    rows = page.await_(f"{ROWS % 'health'}.length && {ROWS % 'health'}")
    brake = next(one for one in rows if one.startswith("brake engaged"))
    assert brake.split("\t")[2] == "0"
    page.await_("!document.querySelector('#health .wrong')")


TREE = TreeView(
    [
        ParentView(None, None, "1.4", "t[1-2]", 0),
        ParentView("m1", "t1", "1.3", "rack1n[1-8]", 2300),
        ParentView("t1", None, "1.4", "", 400),
        ParentView("t2"),
    ],
    standby_lag=3,
)


def test_the_parents_tell_what_each_keeps_who_is_silent_and_whose_version_differs(browser):
    with serving(*changes()) as parent:
        parent.backend.tree.parents = TREE
        see(browser, parent, show="haptera")
        rows = browser.await_(f"{ROWS % 'health'}.length && {ROWS % 'health'}")
        assert rows[: len(TREE.parents)] == [
            "the root\tanswers\t\t1.4\t2\tt[1-2]",
            "m1\theard 2.3 s ago\tt1\t1.3, another\t8\track1n[1-8]",
            "t1\theard 0.4 s ago\tthe root\t1.4\t0\t",
            "t2\tsilent\tthe root\tunknown\t\t",
        ]
        standby = browser.evaluate("document.querySelector('#health p').textContent")
        assert standby == "Its standby lacks 3 commits."


def test_the_disk_the_lag_of_a_standby_and_the_version_are_told(browser, tmp_path):
    tallies = Tallies(lag=lambda: 7, home=tmp_path)
    with serving(*changes(), tallies=tallies) as parent:
        see(browser, parent, show="haptera")
        rows = browser.await_(f"{ROWS % 'health'}.length && {ROWS % 'health'}")
        told = {one.split("\t")[0]: one.split("\t")[1:3] for one in rows}
        assert re.fullmatch(r"[\d.,]+ (GiB|MiB|bytes)", told["store disk free"][1])
        assert told["standby lag commits"] == ["", "7"]
        assert told["info"][0] == f"cluster=quick, version={haptera.__version__}"


STATES = "[...document.querySelectorAll('#graph .state')].map(e => e.getAttribute('class'))"
WAYS = "[...document.querySelectorAll('#graph li')].map(e => e.textContent)"


def test_the_graph_of_an_entity_marks_where_it_stands_what_is_desired_and_the_chain(page, parent):
    stands = node_id(NODES[3])
    parent.do(parent.backend.graphs.update, {stands: EXAMPLES["chain"]})
    see(page, parent, node=stands.name)
    page.await_("document.querySelector('#panel article')")
    page.evaluate("document.getElementById('graph').open = true")
    page.await_(f"{STATES}.length")
    (graph,) = EXAMPLES["chain"].graphs
    states = page.evaluate(STATES)
    assert len(states) == len(graph.states)
    assert [at for at, one in enumerate(states) if "now" in one] == [graph.path[0]]
    assert [at for at, one in enumerate(states) if "goal" in one] == graph.goal
    numbers = "[...document.querySelectorAll('#graph .number')].map(e => e.textContent).sort()"
    links = sorted(str(one) for edge in graph.edges for one in edge.links)
    assert page.evaluate(numbers) == links != []
    from_here = [one for one in graph.edges if one.source == graph.path[0]]
    assert [one.partition(",")[0].split()[0] for one in page.evaluate(WAYS)] == [
        one.part for one in from_here
    ]
