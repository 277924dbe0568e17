"""The commands as a person types them, and what they answer."""

import json
import os
import re
import signal
import socket
import subprocess
import sys

import msgspec
import pytest

from haptera.cli.main import NOT_CONVERGED, NOTHING_DESIRED, OK, REFUSED, UNREACHABLE, USAGE, run
from haptera.kinds import KINDS
from haptera.model.answers.explained import Alternative, Explained, Nearest
from haptera.model.answers.views import BrakeView, Condition, LinkView, TriedView
from haptera.model.changes import Declare, SetDesired
from haptera.model.declared.desired_check import nearest
from haptera.model.entity import EntityId, node_id
from haptera.model.errors import Code
from haptera.rest.unclaimed import UnclaimedView
from tests.api.fake_backend import TOKENS
from tests.api.serving import WITHIN_S, serving
from tests.cli.rig import without_waits

N1, N2, N3 = (node_id(f"rack1n{number}") for number in (1, 2, 3))
WEB1 = EntityId("service", "web", "rack1n1")
CHAIN = [
    LinkView("labnode.switch_on", "brings power to on", "parent"),
    LinkView("labnode.look_agent", "looks at agent", "self", expect="up"),
    LinkView("labnode.reset", "brings power to off", "parent", disruptive=True),
]
SITE = """\
cluster: quick
nodes: {"rack1n[1-3]": {rack: "1"}}
services: {web: {command: "serve {name}"}}
desired:
  rack1n[1-3]: {power: on}
  web@rack1n1: {run: running}
"""

pytestmark = pytest.mark.net


@pytest.fixture
def cluster(monkeypatch, tmp_path):
    """A served cluster of three nodes and a service, and a client file that names it."""
    nodes = [Declare(node, {"rack": "1"}, "site") for node in (N1, N2, N3)]
    powers = [SetDesired(node, "power", "on", "site") for node in (N1, N2, N3)]
    web = [Declare(WEB1, {}, "site"), SetDesired(WEB1, "run", "running", "site")]
    with serving(*nodes, *powers, *web) as one:
        point_at(one.url, "write-token", monkeypatch, tmp_path)
        yield one


def point_at(url, token, monkeypatch, tmp_path, mode=0o600):
    path = tmp_path / "client.json"
    path.write_text(json.dumps({"url": url, "token": token}))
    path.chmod(mode)
    monkeypatch.setenv("HAPTERA_CLIENT", str(path))
    return path


def stuck(one):
    one.do(
        one.backend.say,
        N3,
        condition=Condition.STUCK,
        chain=CHAIN,
        why="labnode.switch_on failed: the BMC refuses\x1b[31m",
        error="chassis interlock",
        since_ms=12_000,
    )


def typed(capsys, *arguments):
    """What the command answers: its code, output and errors."""
    code = run(arguments)
    captured = capsys.readouterr()
    return code, captured.out, without_waits(captured.err)


def columns(table):
    """Each row below the headers, as its cells."""
    _, *rows = table.splitlines()
    return [re.split(r" {2,}", row) for row in rows]


def test_status_tells_all_in_folded_groups(cluster, capsys):
    stuck(cluster)
    failed = "labnode.switch_on failed: the BMC refuses [31m"
    assert typed(capsys, "status") == (
        OK,
        "WHAT         CONDITION  COUNT  ON           REASON\n"
        "node         converged  2      rack1n[1-2]\n"
        f"node         stuck      1      rack1n3      {failed}\n"
        "service web  converged  1      rack1n1\n",
        "",
    )


FULL = "nothing can be changed: state.db: disk is full: see to the parent's disk at /var"


def test_status_begins_with_what_is_wrong_with_haptera_itself(cluster, capsys):
    cluster.backend.wrong = [FULL, "t2 is a parent that does not report"]
    code, out, err = typed(capsys, "status")
    assert (code, err) == (OK, "")
    assert out.splitlines()[:3] == [
        f"error: {FULL}",
        "error: t2 is a parent that does not report",
        "WHAT         CONDITION  COUNT  ON           REASON",
    ]
    told = json.loads(typed(capsys, "status", "-o", "json")[1])
    assert (told["faults"], len(told["entities"])) == (cluster.backend.wrong, 4)
    for form in ([], ["-o", "json"]):
        assert typed(capsys, "status", "--check", *form)[0] == NOT_CONVERGED
    # It is not of what was asked for: that is as desired.
    code, out, _ = typed(capsys, "status", "--check", "rack1n1")
    assert (code, "error" in out) == (OK, False)


def test_status_checks_for_scripts(cluster, capsys):
    assert typed(capsys, "status", "--check")[0] == OK
    stuck(cluster)
    assert typed(capsys, "status", "--check")[0] == NOT_CONVERGED
    assert typed(capsys, "status", "--check", "rack1n[1-2]")[0] == OK
    assert columns(typed(capsys, "status", "service:*")[1]) == [
        ["service web", "converged", "1", "rack1n1"]
    ]
    assert typed(capsys, "status", "--check", "rack1*")[0] == NOT_CONVERGED
    assert typed(capsys, "status", "--check", "rack2*")[0] == REFUSED


@pytest.mark.parametrize("words", [[], ["not (power=off)"], ["n1"], ["-o", "json"]])
def test_nothing_is_well_before_anything_is_desired(words, capsys, monkeypatch, tmp_path):
    """A script that waits until all is well waits on, whatever it asks for."""
    with serving() as one:
        point_at(one.url, "read-token", monkeypatch, tmp_path)
        told = "error: nothing is desired yet\n  apply a site: haptera apply FILE\n"
        code, _, errors = typed(capsys, "status", "--check", *words)
        assert code == NOTHING_DESIRED
        if "-o" in words:
            assert json.loads(errors)["errors"][0]["code"] == Code.NOT_CONVERGED
        else:
            assert errors == told
        one.do(one.backend.write, Declare(node_id("n1"), {}, "site"))
        assert typed(capsys, "status", "--check", *words)[0] == OK


def test_why_says_in_one_line_what_something_stands_at(cluster, capsys):
    assert typed(capsys, "why")[1] == "all is as desired\n"
    stuck(cluster)
    line = "node:rack1n3 is stuck for 12 s: labnode.switch_on failed: the BMC refuses [31m\n"
    assert typed(capsys, "why") == (OK, line, "")
    assert typed(capsys, "why", "rack1n[2-3]") == (OK, line, "")
    assert typed(capsys, "why", "node:rack1n1")[1] == "node:rack1n1 is as desired\n"


def test_why_tells_of_a_group_that_nobody_has_led_yet(cluster, capsys):
    ledger = EntityId("group", "ledger", None)
    cluster.do(cluster.backend.write, Declare(ledger, {}, "site"))

    assert typed(capsys, "why", "group:ledger") == (
        OK,
        "group:ledger: nothing is desired of it\n",
        "",
    )


def test_why_ends_with_what_a_node_that_is_not_as_desired_wrote_last_to_its_console(
    cluster, capsys
):
    console = "".join(f"step {number}\r\n" for number in range(9)) + "\x1b[31mno disk\x1b[0m\r\n"
    cluster.backend.logs |= {node_id(f"rack1n{one}"): console.encode() for one in (1, 3)}
    stuck(cluster)
    told = ["step 5", "step 6", "step 7", "step 8", "no disk"]
    for selection in ("node:rack1n3", "rack1n[2-3]"):
        _, out, errors = typed(capsys, "why", selection)
        assert out.splitlines()[1:] == [f"  console  {line}" for line in told]
        assert errors == ""
    assert typed(capsys, "why", "node:rack1n1")[1] == "node:rack1n1 is as desired\n"


def test_why_tells_the_chain_and_who_saw_what_when(cluster, capsys):
    stuck(cluster)
    assert typed(capsys, "why", "-v", "node:rack1n3")[1].splitlines()[1:] == [
        "  wants  power=on, says site",
        "  knows  power=on, read 0.0 s ago by fake",
        "  chain  1. brings power to on  (labnode.switch_on on the parent)",
        "  chain  2. looks at agent, expecting up  (labnode.look_agent on the node)",
        "  chain  3. brings power to off  (labnode.reset on the parent)  DISRUPTIVE",
        "  error  chassis interlock",
        "  agent  the agent does not answer",
    ]


def test_chain_shows_what_was_tried_and_what_is_next(cluster, capsys):
    stuck(cluster)
    tried = [TriedView("labnode.switch_on", 95_000, "the BMC\x1b[31m refuses")]
    cluster.do(cluster.backend.say, N3, tried=tried)
    assert typed(capsys, "chain", "node:rack1n3")[1].splitlines()[1:] == [
        "  parent  1 min ago  labnode.switch_on: the BMC [31m refuses",
        "  agent   the agent does not answer",
        "  next    1. brings power to on  (labnode.switch_on on the parent)",
        "  next    2. looks at agent, expecting up  (labnode.look_agent on the node)",
        "  next    3. brings power to off  (labnode.reset on the parent)  DISRUPTIVE",
    ]
    both = json.loads(typed(capsys, "chain", "node:rack1n3", "-o", "json")[1])
    assert both["tried"] == [
        {"part": "labnode.switch_on", "ago_ms": 95_000, "outcome": "the BMC\x1b[31m refuses"}
    ]


def test_chain_says_what_each_link_is_for_and_what_else_there_is(cluster, capsys):
    stuck(cluster)
    cluster.backend.reasons[N3] = Explained(
        cost=20,
        so_that=["so that power is on, as desired", None, "so that power is off, as desired"],
        runner_up=Alternative("without labnode.reset", 25, ["labnode.switch_on", "labnode.kill"]),
        cheaper=Alternative(
            "labnode.switch_off is excluded by busy=busy", 1, ["labnode.switch_off"]
        ),
    )
    assert typed(capsys, "chain", "node:rack1n3")[1].splitlines()[2:] == [
        "  next    1. brings power to on  (labnode.switch_on on the parent), "
        "so that power is on, as desired",
        "  next    2. looks at agent, expecting up  (labnode.look_agent on the node)",
        "  next    3. brings power to off  (labnode.reset on the parent)  DISRUPTIVE, "
        "so that power is off, as desired",
        "  costs   20; it would be 1 by labnode.switch_off, "
        "but labnode.switch_off is excluded by busy=busy",
        "  else    25 without labnode.reset: labnode.switch_on, labnode.kill",
    ]
    told = json.loads(typed(capsys, "chain", "node:rack1n3", "-o", "json")[1])
    assert (told["explained"]["cost"], told["explained"]["runner_up"]["cost"]) == (20, 25)


def test_chain_says_what_can_be_had_where_there_is_none(cluster, capsys):
    cluster.do(cluster.backend.say, N3, condition=Condition.STUCK, chain=[], why="no way to a=2")
    many = [f"m.part{number}" for number in range(8)]
    offer = "module jobs would look at busy (jobs.look_busy): add it to the site's modules"
    cluster.backend.reasons[N3] = Explained(
        nearest=Nearest({"power": "on", "busy": "free"}, 9, many), offers=[offer]
    )
    assert typed(capsys, "chain", "node:rack1n3")[1].splitlines()[2:] == [
        "  reach   power=on and busy=free can be had, for 9: "
        "m.part0, m.part1, m.part2, m.part3, m.part4, m.part5 and 2 more",
        f"  offer   {offer}",
    ]


def test_chain_shows_what_the_agent_tried_beside_what_the_parent_did(cluster, capsys):
    stuck(cluster)
    seen = cluster.backend.entity(N3)
    cluster.backend.agents[N3] = msgspec.structs.replace(
        seen,
        condition=Condition.STUCK,
        why="service.start: refused",
        tried=[TriedView("service.start", 2_000, "refused")],
        again_in_ms=4_000,
    )
    said = [
        line for line in typed(capsys, "chain", "node:rack1n3")[1].splitlines() if "age" in line
    ]
    assert said == [
        "  agent   node:rack1n3 is stuck for 12 s: service.start: refused",
        "  agent   2.0 s ago  service.start: refused",
        "  agent   again  in 4.0 s; at once: haptera retry node:rack1n3",
        "  next    2. looks at agent, expecting up  (labnode.look_agent on the node)",
    ]
    both = json.loads(typed(capsys, "why", "node:rack1n3", "-o", "json")[1])
    assert both[0]["agent"]["tried"][0]["outcome"] == "refused"


def test_why_takes_selectors(cluster, capsys):
    stuck(cluster)
    cluster.do(
        cluster.backend.say, WEB1, condition=Condition.WAITING, why="waits for node.agent=up"
    )
    assert typed(capsys, "why", "service:*")[1] == (
        "service:web@rack1n1 is waiting for 1.5 s: waits for node.agent=up\n"
    )
    assert typed(capsys, "why", "service:web@rack1n[1-2]")[1].count("\n") == 1
    assert typed(capsys, "why", "rack*")[1].count("\n") == 2
    assert typed(capsys, "why", "node:rack1n[1-2]")[1] == "all is as desired\n"
    assert typed(capsys, "why", "service:db@rack1n1")[2].startswith(
        "error: there is no service:db@rack1n1\n"
    )


def test_why_tells_in_one_line_what_has_one_cause(cluster, capsys):
    for number, node in enumerate((N1, N2, N3), start=1):
        why = f"labnode.switch_off waits: the agent of rack1n{number} is silent: no-permit"
        cluster.do(
            cluster.backend.say,
            node,
            condition=Condition.WAITING,
            why=why,
            since_ms=50_000 * number,
        )
    line = "labnode.switch_off waits: the agent of the node is silent: no-permit"
    every = f"node:rack1n[1-3] (3) are waiting for 50 s to 2 min: {line}\n"
    assert typed(capsys, "why") == (OK, every, "")
    assert typed(capsys, "why", "rack1n[1-2]")[1].startswith("node:rack1n[1-2] (2) are waiting ")
    assert typed(capsys, "why", "node:rack1n2")[1] == (
        "node:rack1n2 is waiting for 1 min: "
        "labnode.switch_off waits: the agent of rack1n2 is silent: no-permit\n"
    )
    assert typed(capsys, "why", "-v", "node:rack1n[1-2]")[1].count(" is waiting for ") == 2
    assert len(json.loads(typed(capsys, "why", "-o", "json")[1])) == 3
    assert columns(typed(capsys, "status")[1])[0] == [
        "node", "waiting", "3", "rack1n[1-3]", line
    ]  # fmt: skip


def test_why_says_who_or_what_would_let_it_go_on(cluster, capsys):
    cluster.do(
        cluster.backend.say,
        N3,
        condition=Condition.STUCK,
        why="service.start: refused",
        told_by="rack1n3",
        unblock="the agent of rack1n3, by service.start",
        again_in_ms=4_000,
    )
    assert typed(capsys, "why", "-v", "node:rack1n3")[1].splitlines()[-4:] == [
        "  says   the agent of rack1n3",
        "  needs  the agent of rack1n3, by service.start",
        "  again  in 4.0 s; at once: haptera retry node:rack1n3",
        "  agent  the agent does not answer",
    ]


def test_logs_show_the_end_of_what_was_written(cluster, capsys):
    cluster.backend.logs[WEB1] = b"first\nsecond\x1b[2J\nth\xffird\n"
    assert typed(capsys, "logs", "-n", "2", str(WEB1)) == (OK, "second\nth\ufffdird\n", "")
    cluster.backend.logs[EntityId("module", "labnode", None)] = b"ready\n"
    told = json.loads(typed(capsys, "logs", "module:labnode", "-o", "json")[1])
    assert told == {"entity": "module:labnode", "lines": ["ready"], "after": "1.6", "anew": False}
    code, _, errors = typed(capsys, "logs", "module:service@rack1n1")
    assert (code, errors.partition("\n")[0]) == (
        REFUSED,
        "error: module:service@rack1n1 has no log yet",
    )


@pytest.mark.slow
def test_a_parent_that_does_not_answer_is_waited_for_visibly(monkeypatch, tmp_path):
    """One that accepts and says nothing, until it hangs up."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        point_at(url, "read-token", monkeypatch, tmp_path)
        command = [sys.executable, "-m", "haptera", "status"]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as asking:
            connection, _ = server.accept()
            assert asking.stderr.readline() == f"waiting for {url}, for up to 60 s\n"
            connection.close()
            assert asking.stderr.readline().startswith("error: cannot reach the parent: ")
            assert asking.wait(WITHIN_S) == UNREACHABLE


def test_the_brake_is_shown_and_released(cluster, capsys):
    assert typed(capsys, "brake") == (OK, "the brake is off\n", "")
    cluster.backend.braked = BrakeView("15 of 20 nodes fell silent within 30 s", 240_000)
    on = "the brake is on for 4 min more: 15 of 20 nodes fell silent within 30 s\n"
    assert typed(capsys, "brake") == (OK, on, "")
    released = "the brake is released: 15 of 20 nodes fell silent within 30 s\n"
    assert typed(capsys, "brake", "--release") == (OK, released, "")
    assert typed(capsys, "brake") == (OK, "the brake is off\n", "")


def test_a_node_is_put_out_once(cluster, capsys, monkeypatch, tmp_path):
    point_at(cluster.url, "admin-token", monkeypatch, tmp_path)
    cluster.backend.incarnations[N2.name] = 4
    told = f"{N2.name} is evicted; boot it again to re-admit it\n"
    assert typed(capsys, "evict", str(N2)) == (OK, told, "")
    noted = len(cluster.backend.noted)
    for words, told in (
        (N2.name, f"{N2.name} has no session"),
        ("n99", "there is no node:n99"),
        ("n[1-2]", "'n[1-2]' is not the name of one node"),
        ("service:web@n1", "'service:web@n1' is not the name of one node"),
    ):
        code, out, errors = typed(capsys, "evict", words)
        assert (code, out, errors.splitlines()[0]) == (REFUSED, "", f"error: {told}")
    assert len(cluster.backend.noted) == noted + 2  # what no node can be called is not noted


def test_a_machine_that_asked_becomes_a_node(cluster, capsys, monkeypatch, tmp_path):
    point_at(cluster.url, "admin-token", monkeypatch, tmp_path)
    mac = "52:54:00:00:00:03"
    cluster.backend.strange = [UnclaimedView(mac, "BIOS", None, 2, 1.0, 63.0)]
    header, row = typed(capsys, "unclaimed")[1].splitlines()
    assert header.split() == ["MAC", "FIRMWARE", "ASKED", "FIRST", "LAST", "VENDOR"]
    times = ("1970-01-01 00:00:01 UTC", "1970-01-01 00:01:03 UTC")
    assert re.split(r"\s{2,}", row) == [mac, "BIOS", "2", *times, "-"]
    written = (
        f"rack1n3 is the machine with {mac}\n"
        f"add it to the site file, or the next apply removes it: mac: '{mac}'\n"
    )
    assert typed(capsys, "claim", mac, "rack1n3") == (OK, written, "")
    assert typed(capsys, "unclaimed") == (OK, "no machine is unclaimed\n", "")


def test_retry_asks_for_one_entity_at_once(cluster, capsys):
    assert typed(capsys, "retry", "node:rack1n3") == (OK, "node:rack1n3 is retried now\n", "")
    assert cluster.backend.asked == [N3]
    assert typed(capsys, "retry", "node:rack9n9")[0] == REFUSED


def test_what_waits_for_a_time_says_when_that_is(cluster, capsys):
    waits = {"unblock": "room in the budget", "again_in_ms": 720_000}
    cluster.do(cluster.backend.say, N3, condition=Condition.WAITING, **waits)
    (line,) = [one for one in typed(capsys, "why", "-v", str(N3))[1].splitlines() if "room" in one]
    assert re.fullmatch(r"  needs  room in the budget, in 12 min: \S+ \d\d:\d\d UTC", line)


def test_retry_says_what_it_does_not_bring(cluster, capsys):
    room = {"condition": Condition.WAITING, "unblock": "room in the budget"}
    for node in (N1, N3):
        cluster.do(cluster.backend.say, node, **room)
    out = typed(capsys, "retry", "rack1*")[1]
    assert out == (
        "node:rack1n[1,3] are retried now\n"
        "a retry does not bring what node:rack1n[1,3] waits for: room in the budget\n"
    )


def test_retry_of_many_asks_for_those_that_are_held_up(cluster, capsys):
    assert typed(capsys, "retry", "rack1*") == (
        OK,
        "nothing to retry: no selected entity is waiting or stuck\n",
        "",
    )
    stuck(cluster)
    assert typed(capsys, "retry", "rack1*") == (OK, "node:rack1n3 is retried now\n", "")
    assert cluster.backend.asked == [N3]
    cluster.do(cluster.backend.say, N1, condition=Condition.STUCK)
    assert typed(capsys, "retry", "condition=stuck")[1] == "node:rack1n[1,3] are retried now\n"
    assert typed(capsys, "retry", "-o", "name", "condition=stuck")[1] == "node:rack1n[1,3]\n"
    tried = json.loads(typed(capsys, "retry", "-o", "json", "rack1*")[1])
    assert tried == ["node:rack1n1", "node:rack1n3"]


def test_get_shows_one_or_all_of_a_kind(cluster, capsys):
    table = (
        "ENTITY               CONDITION  FOR    STATE\n"
        "service:web@rack1n1  converged  1.5 s  run=running\n"
    )
    assert typed(capsys, "get", "service:web@rack1n1") == (OK, table, "")
    assert typed(capsys, "get", "service")[1] == table


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["get", "roll"], "there is no roll: haptera roll SELECTOR --image NAME begins one"),
        (["get", "freeze"], "there is no freeze: haptera freeze SELECTOR --reason TEXT makes one"),
        (
            ["get", "budget"],
            "there is no budget: declare one in the site file, then haptera apply FILE",
        ),
        (["roll", "status"], "there is no roll: haptera roll SELECTOR --image NAME begins one"),
        (["image", "list"], "there is no image: haptera image build NAME DIR makes one"),
    ],
)
def test_what_there_is_none_of_is_told_with_the_command_that_makes_one(
    cluster, words, told, capsys
):
    # Not on the stream that is piped into what counts lines.
    assert typed(capsys, *words) == (0, "", f"{told}\n")


def test_wide_has_all_columns(cluster, capsys):
    stuck(cluster)
    code, out, errors = typed(capsys, "get", "-o", "wide", "node")
    assert (code, errors) == (OK, "")
    refused = "labnode.switch_on failed: the BMC refuses [31m"
    assert [re.split(r" {2,}", line) for line in out.splitlines()] == [
        ["ENTITY", "CONDITION", "FOR", "STATE", "ATTRIBUTES", "REASON"],
        ["node:rack1n[1-2]", "converged", "1.5 s", "power=on", "rack=1", "-"],
        ["node:rack1n3", "stuck", "12 s", "power=on", "rack=1", refused],
    ]


def test_get_tells_of_what_is_alike_in_one_line(cluster, capsys):
    stuck(cluster)
    cluster.do(cluster.backend.say, N1, since_ms=90_000)
    assert columns(typed(capsys, "get", "node")[1]) == [
        ["node:rack1n[1-2]", "converged", "1.5 s to 1 min", "power=on"],
        ["node:rack1n3", "stuck", "12 s", "power=on"],
    ]


def test_get_takes_the_name_of_a_node_as_other_commands_do(cluster, capsys):
    both = typed(capsys, "get", "rack1n1")
    assert both == typed(capsys, "get", "rack1n1,rack1n1")
    assert [name for name, *_ in columns(both[1])] == ["node:rack1n1", "service:web@rack1n1"]


def test_get_takes_selectors_and_prints_what_it_found_as_one(cluster, capsys):
    stuck(cluster)
    for selector, name in [
        ("node:* and condition!=stuck", "node:rack1n[1-2]"),
        ("service:web", "service:web@rack1n1"),
    ]:
        assert columns(typed(capsys, "get", selector)[1])[0][0] == name
    found = typed(capsys, "get", "-o", "name", "condition!=stuck")
    assert found == (OK, "node:rack1n[1-2] or service:web@rack1n1\n", "")
    assert typed(capsys, "get", "-o", "name", found[1].strip()) == found
    assert typed(capsys, "status", "-o", "name") == (
        OK,
        "node:rack1n[1-3] or service:web@rack1n1\n",
        "",
    )
    assert typed(capsys, "why", "-o", "name")[1] == "node:rack1n3\n"
    assert typed(capsys, "get", "rack1n[1-2] and power=hung") == (
        REFUSED,
        "",
        "error: nothing is rack1n[1-2] and power=hung\n  see what there is: haptera status\n",
    )


def test_what_never_means_anything_is_told_with_its_place(cluster, capsys):
    for command in ("status", "why", "retry", "get"):
        assert typed(capsys, command, "node:* and powr=on") == (
            REFUSED,
            "",
            "error: nothing has a 'powr'\n  selector 'node:* and powr=on', character 12\n"
            f"  {POWR}\n",
        )


POWR = nearest("powr", {*(name for kind in KINDS.values() for name in kind.names), "condition"})


def test_answers_for_programs_are_json_or_yaml(cluster, capsys):
    assert json.loads(typed(capsys, "get", "node:rack1n1", "-o", "json")[1])["kind"] == "node"
    assert "kind: node\n" in typed(capsys, "get", "node:rack1n1", "-o", "yaml")[1]
    assert len(json.loads(typed(capsys, "status", "-o", "json")[1])["entities"]) == 4


def test_plan_groups_equal_chains_and_marks_what_disrupts(cluster, capsys, tmp_path):
    for node in (N2, N3):
        cluster.do(cluster.backend.say, node, condition=Condition.ACTING, chain=CHAIN)
    (tmp_path / "site.yaml").write_text(SITE)
    code, out, errors = typed(capsys, "plan", str(tmp_path / "site.yaml"))
    assert (code, re.sub("plan [0-9a-f]{12}", "plan …", out), errors) == (
        OK,
        "1 change (1 set) at revision 8\n"
        "\n"
        "node on rack1n[2-3] (2)\n"
        "  power=off -> power=on\n"
        "  1. brings power to on  (labnode.switch_on on the parent)\n"
        "  2. looks at agent, expecting up  (labnode.look_agent on the node)\n"
        "  3. brings power to off  (labnode.reset on the parent)  DISRUPTIVE\n"
        "  costs 3; duration unknown: labnode.switch_on, labnode.look_agent, labnode.reset"
        " not yet measured\n"
        "\n"
        "disrupts up to 0 of 3 nodes\n"
        "plan …\n",
        "",
    )
    assert cluster.backend.revision() == 8


def test_apply_writes_once_and_a_dry_run_not_at_all(cluster, capsys, tmp_path):
    path = str(tmp_path / "site.yaml")
    (tmp_path / "site.yaml").write_text(SITE)
    assert typed(capsys, "apply", path, "--dry-run")[1] == (
        "1 change (1 set) would be written (revision 8)\n"
        "  set service:web@rack1n1 command=serve rack1n1\n"
    )
    (tmp_path / "off.yaml").write_text(SITE.replace("power: on", "power: off"))
    assert typed(capsys, "apply", str(tmp_path / "off.yaml"), "--dry-run")[1] == (
        "4 changes (4 set) would be written (revision 8)\n"
        "  set node:rack1n[1-3] power=off\n"
        "  set service:web@rack1n1 command=serve rack1n1\n"
    )
    assert typed(capsys, "apply", path)[1] == "1 change (1 set) written (revision 9)\n"
    assert typed(capsys, "apply", path)[1] == "0 changes written (revision 9)\n"


def test_apply_tells_which_modules_need_a_restart_of_the_parent(cluster, capsys, tmp_path):
    path = tmp_path / "site.yaml"
    path.write_text(f"{SITE}modules: [slurm]\n")
    _, _, told = typed(capsys, "apply", str(path), "--dry-run")
    assert told == (
        "not in use: slurm: the parent started without;"
        " restart it with this site (haptera serve --site)\n"
    )


def test_a_bad_site_file_is_told_line_by_line(cluster, capsys, tmp_path):
    path = tmp_path / "site.yaml"
    path.write_text(SITE.replace("power: on", "powr: on") + "foo: 1\n")
    assert typed(capsys, "apply", str(path)) == (
        REFUSED,
        "",
        "error: a node has no variable 'powr'\n"
        f"  {path}:5:23\n"
        "  did you mean power? there are agent, bootable, booted, busy, minos, netboot, power,"
        " slurm.state, slurm.use\n"
        "error: unknown key foo\n"
        f"  {path}:7:1\n"
        "  there are budgets, cluster, controllers, defaults, desired, entities, fault_groups,"
        " groups, include, lab, modules, nodes, policies, profiles, services\n",
    )


def test_refusals_have_their_exit_codes(cluster, capsys, monkeypatch, tmp_path):
    assert typed(capsys, "get", "node:none")[0] == REFUSED
    assert typed(capsys, "status", "n[1-")[0] == REFUSED
    assert typed(capsys, "nothing")[0] == USAGE
    assert typed(capsys, "status", "-o", "xml")[0] == USAGE
    point_at(cluster.url, "read-token", monkeypatch, tmp_path)
    code, _, errors = typed(capsys, "apply", os.devnull)
    assert (code, errors.partition("\n")[0]) == (
        REFUSED,
        "error: this needs a token of scope write, eve's allows read",
    )
    point_at(cluster.url, "wrong-token", monkeypatch, tmp_path)
    assert typed(capsys, "status")[2].startswith("error: no valid token\n")


def test_a_parent_that_is_not_there_is_told(capsys, monkeypatch, tmp_path):
    with serving() as one:
        url = one.url
    point_at(url, "read-token", monkeypatch, tmp_path)
    assert typed(capsys, "status") == (
        UNREACHABLE,
        "",
        "error: cannot reach the parent: Connection refused\n"
        f"  {url}\n"
        "  check that it runs, and that the client file has its address\n",
    )


def test_the_client_file_is_found_above_and_warned_of_where_others_can_read_it(
    cluster, capsys, monkeypatch, tmp_path
):
    (tmp_path / ".haptera").mkdir()
    path = point_at(cluster.url, "read-token", monkeypatch, tmp_path / ".haptera", mode=0o644)
    monkeypatch.delenv("HAPTERA_CLIENT")
    (tmp_path / "a" / "b").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "a" / "b")
    code, _, errors = typed(capsys, "status")
    assert (code, errors) == (OK, f"warning: {path} can be read by others; chmod 600 it\n")


def test_no_client_file_is_told(capsys, monkeypatch, tmp_path):
    monkeypatch.delenv("HAPTERA_CLIENT", raising=False)
    monkeypatch.chdir(tmp_path)
    code, _, errors = typed(capsys, "status")
    assert code == UNREACHABLE
    assert errors.startswith("error: no .haptera/client.json here or in a folder above\n")


def test_watch_tells_each_change_until_it_is_interrupted(cluster, tmp_path):
    command = [sys.executable, "-m", "haptera", "watch"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            first = [process.stdout.readline() for _ in range(4)]
            stuck(cluster)
            cluster.do(cluster.backend.publish, N1)  # only grown older: no news
            news = process.stdout.readline()
        finally:
            process.send_signal(signal.SIGINT)
        assert process.wait(WITHIN_S) == OK
        assert process.stdout.read() == ""
    assert first[0] == "node:rack1n1              converged  power=on\n"
    assert news == (
        "node:rack1n3              stuck      power=on"
        "  labnode.switch_on failed: the BMC refuses [31m\n"
    )


def test_watch_tells_only_what_was_asked_for(cluster):
    command = [sys.executable, "-m", "haptera", "watch", "node:rack1n[2-3]", "--type", "condition"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            first = [process.stdout.readline().split()[0] for _ in range(2)]
            cluster.do(cluster.backend.write, SetDesired(N2, "power", "off", "site"))
            cluster.do(cluster.backend.say, N1, why="not asked for")
            stuck(cluster)
            news = process.stdout.readline().split()[:2]
        finally:
            process.send_signal(signal.SIGINT)
        assert process.wait(WITHIN_S) == OK
        assert process.stdout.read() == ""
    assert first == ["node:rack1n2", "node:rack1n3"]
    assert news == ["node:rack1n3", "stuck"]


def test_watch_tells_what_has_left(cluster):
    stuck(cluster)
    command = [sys.executable, "-m", "haptera", "watch", "condition=stuck"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            first = process.stdout.readline().split()[:2]
            cluster.do(cluster.backend.say, N3, condition=Condition.CONVERGED)
            news = process.stdout.readline().split()
        finally:
            process.send_signal(signal.SIGINT)
        assert process.wait(WITHIN_S) == OK
    assert first == ["node:rack1n3", "stuck"]
    assert news == ["node:rack1n3", "left"]


def test_watch_refuses_what_is_no_selector(cluster, capsys):
    code, _, errors = typed(capsys, "watch", "node:n1@n2")
    assert code == REFUSED
    assert errors.startswith("error: a node is on itself\n  selector 'node:n1@n2', character 8\n")


def test_no_token_is_ever_written_out(cluster, capsys):
    for arguments in (["status"], ["why"], ["get", "node:none"], ["apply", "none.yaml"]):
        _, out, errors = typed(capsys, *arguments)
        assert not any(token in out + errors for token in TOKENS)


@pytest.mark.parametrize("command", [["lint"], ["module", "lint"], ["site", "check"]])
def test_examples_in_the_help_stand_on_lines_of_their_own(command, capsys):
    assert run([*command, "--help"]) == OK
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert lines[lines.index("Examples:") + 1].startswith(f"haptera {' '.join(command)} ")


@pytest.mark.parametrize(
    "words",
    [
        ("submit", "a\udcff"),
        ("submit", "--name", "a\udcff", "true"),
        ("exec", "n1", "--", "a\udcff"),
        ("freeze", "n1", "--reason", "a\udcff"),
    ],
)
def test_an_argument_that_is_no_text_is_refused_in_words(capsys, tmp_path, words):
    client = tmp_path / "client.json"
    client.write_text('{"url": "http://127.0.0.1:1", "token": "hp1.a.b"}')
    client.chmod(0o600)

    assert run(["--client", str(client), *words]) == REFUSED
    said = capsys.readouterr().err
    assert said == "error: 'a\\udcff' is not text\n  write it in UTF-8\n"
