"""Groups on real processes, broken in every way; judged by what their payload wrote, and by /proc.

Each test is named after the promise that it holds to: A of supervision, B of replicas and leaders,
R of the parent, N of nodes.
"""

import os
import random
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator

import pytest

from tests.groups.rig import NODES, GroupLab, Start
from tests.kills.processes import Process, kill, read_process

pytestmark = [pytest.mark.net, pytest.mark.campaign, pytest.mark.timeout(300)]

# Of a replica: many more within a minute are a crash loop, which ends stuck.
KILLS = 5
PARENT_KILLS = 50
SEED = 19


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GroupLab]:
    lab = GroupLab(tmp_path_factory.mktemp("groups"))
    with lab.running():
        yield lab


@pytest.fixture
def lab(running: GroupLab) -> Iterator[GroupLab]:
    """Three replicas apart, one of which acts; afterwards the effects are judged."""
    running.settle()
    yield running
    running.settle()
    running.check()


@pytest.fixture
def network() -> None:
    if shutil.which("nft") is None or os.geteuid() != 0:
        pytest.skip("a node is cut off by nft, as root")
    tried = subprocess.run(["nft", "list", "tables"], capture_output=True, text=True)
    if tried.returncode:
        pytest.skip(tried.stderr.strip())


def same(before: list[Start], lab: GroupLab) -> bool:
    return sorted(map(str, before)) == sorted(map(str, lab.living()))


def told_running(lab: GroupLab, one: Start) -> bool:
    seen = lab.view(f"replica:ledger.{one.rank}@{one.node}").get("observed", {}).get("run")
    return seen is not None and seen["known"] and seen["value"] == "running"


def all_told(lab: GroupLab) -> bool:
    return all(told_running(lab, one) for one in lab.living())


def test_a1_a_killed_replica_is_started_again_as_the_next_incarnation(lab: GroupLab) -> None:
    for number in range(KILLS):
        one = sorted(lab.apart(), key=str)[number % 3]
        seen = len(lab.starts())
        os.kill(one.pid, signal.SIGKILL)
        lab.until("it runs again", lambda seen=seen: len(lab.starts()) > seen)
        after = lab.starts()[seen]
        assert (after.rank, after.node) == (one.rank, one.node)
        assert after.incarnation == (one.incarnation[0], one.incarnation[1] + 1)
        assert not one.lives


def test_a2_a_crash_loop_ends_stuck_with_its_reason_and_a_retry_or_a_command_ends_it(
    lab: GroupLab,
) -> None:
    broken = lab.written / "ledger.broken"
    for way_out in ("retry", "command"):
        one = lab.apart()[0]
        name = f"replica:ledger.{one.rank}@{one.node}"
        broken.touch()
        os.kill(one.pid, signal.SIGKILL)
        said = lab.until("it is stuck", lambda name=name: _stuck(lab, name))
        assert "it is broken" in said, said
        assert len(lab.living()) == 2
        broken.unlink()
        if way_out == "retry":
            lab.says("retry", name)
        else:
            command = lab.view("group:ledger")["desired"]["command"]["value"]
            lab.says("set", "group:ledger", f"command={command} again", "--take")
        lab.apart()
        lab.until("it is known to run", lambda: all_told(lab))
    starts = len(lab.starts())
    lab.says("apply", "--take", str(lab.directory / "site.yaml"))
    lab.until("all run the first command again", lambda: len(lab.starts()) == starts + 3)


def test_a5_what_does_not_come_to_run_moves_so_often_and_then_says_where_it_failed(
    lab: GroupLab,
) -> None:
    broken = lab.written / "ledger.broken"
    lab.says("set", "group:ledger", "moves=1")
    one = lab.apart()[0]
    broken.touch()
    os.kill(one.pid, signal.SIGKILL)

    first, second = lab.until("it has failed", lambda: _failed_on(lab, one.rank))

    assert first == one.node != second
    assert lab.view(f"replica:ledger.{one.rank}@{first}")["desired"]["run"]["value"] == "stopped"
    assert len(lab.living()) == 2
    broken.unlink()
    lab.says("retry", f"replica:ledger.{one.rank}@{second}")
    lab.apart()
    lab.until("it is known to run", lambda: all_told(lab))
    lab.says("set", "group:ledger", "--unset", "moves")


def _failed_on(lab: GroupLab, rank: int) -> list[str] | None:
    """The nodes on which the group says that a rank failed."""
    said = lab.view("group:ledger")["desired"]["says"]["value"]
    found = re.search(rf"rank {rank} failed on ([^:]*):", said)
    return None if found is None else found[1].split(", ")


def _stuck(lab: GroupLab, name: str) -> str | None:
    view = lab.view(name)
    return str(view["why"]) if view["condition"] == "stuck" else None


def have_the_command(lab: GroupLab) -> bool:
    """Whether the group's command has come to all, one after another."""
    views = [lab.view(f"replica:ledger.{one.rank}@{one.node}") for one in lab.living()]
    told = {one["desired"]["command"]["value"] for one in views}
    wanted = lab.view("group:ledger")["desired"]["command"]["value"]
    return told == {wanted} and all(one["condition"] == "converged" for one in views)


def test_a3_agents_that_are_killed_leave_all_replicas_as_they_are(lab: GroupLab) -> None:
    lab.until("all have the group's command", lambda: have_the_command(lab))
    before, starts = lab.apart(), len(lab.starts())
    agents = {node: lab.agent(node) for node in NODES}
    for one in agents.values():
        kill(one)

    for node, one in agents.items():
        lab.until(f"the agent of {node} is back", lambda n=node, o=one: _other(lab, n, o))
    lab.until("all are known to run", lambda: all_told(lab))

    assert same(before, lab)
    assert len(lab.starts()) == starts


def _other(lab: GroupLab, node: str, old: Process) -> bool:
    found = lab.agent(node)
    return found is not None and found.pid != old.pid


def test_a4_another_process_of_its_number_is_neither_adopted_nor_killed(lab: GroupLab) -> None:
    one = lab.apart()[0]
    with subprocess.Popen(["sleep", "infinity"]) as other:
        try:
            with lab.frozen(one.node):
                agent, state = lab.agent(one.node), lab.keeper_state(one)
                os.kill(one.pid, signal.SIGKILL)
                lab.until("it is dead", lambda: not one.lives)
                told = state.read_text()
                named = f"service {one.pid} {one.started}"
                assert named in told
                state.write_text(told.replace(named, f"service {other.pid} {one.started}"))
                kill(agent)
            lab.until("it is started again", lambda: _starts_of(one, lab, 0)[-1] != one)
            assert _starts_of(one, lab, 0)[-1].incarnation > one.incarnation
            assert other.poll() is None
        finally:
            other.kill()


def test_a6_over_its_limit_a_replica_is_stopped_with_the_reason_and_started_again(
    lab: GroupLab,
) -> None:
    lab.until("all have the group's command", lambda: have_the_command(lab))
    one, seen = lab.apart()[0], len(lab.starts())
    name = f"replica:ledger.{one.rank}@{one.node}"
    lab.says("set", "group:ledger", "limits=memory 1GB, sentinel beat 1s", "--take")
    try:
        lab.until("it says why", lambda: "beat was not touched for" in lab.says("why", name))
        again = lab.until("it is started again", lambda: _starts_of(one, lab, seen)[1:])[0]
        assert again.incarnation == (one.incarnation[0], one.incarnation[1] + 2)
    finally:
        lab.says("set", "group:ledger", "replicas=3", "--unset", "limits", "--take")
        lab.says("apply", "--take", str(lab.directory / "site.yaml"))
    lab.until("all run without limits", lambda: len(lab.living()) == 3 and without_limits(lab))


def without_limits(lab: GroupLab) -> bool:
    views = [lab.view(f"replica:ledger.{one.rank}@{one.node}") for one in lab.living()]
    unset = all("limits" not in one["desired"] for one in views)
    return unset and all(one["condition"] == "converged" for one in views)


def _starts_of(one: Start, lab: GroupLab, seen: int) -> list[Start]:
    """Those of its rank on its node, of the later ones."""
    return [two for two in lab.starts()[seen:] if (two.rank, two.node) == (one.rank, one.node)]


def test_b2_b7_n1_a_replacement_shares_no_group_with_siblings_and_an_old_leader_s_act_is_refused(
    lab: GroupLab,
) -> None:
    """Its node is frozen after its look at the lease; thawed, it acts no more, and is stopped."""
    old = lab.leads()
    waits = lab.hold_before_act(old.pid)
    with lab.frozen(old.node):
        waits.unlink()
        lab.leads(after=old.epoch)
        lab.apart(without=(old.node,))
    lab.until("its act is refused", lambda: lab.refused(old.pid) == 1)
    lab.until("the old leader is stopped", lambda: read_process(old.pid) is None)
    assert max(one.epoch for one in lab.effects() if one.pid == old.pid) == old.epoch


def test_b6_b8_a_leader_that_is_cut_off_is_followed_and_does_not_lead_once_it_is_back(
    lab: GroupLab, network: None
) -> None:
    old = lab.leads()
    with lab.cut_off(old.node):
        new = lab.leads(after=old.epoch)
        lab.apart(without=(old.node,))
        assert read_process(old.pid) is not None, "nobody could have told it to stop"
    lab.until("the old leader is stopped", lambda: read_process(old.pid) is None)

    assert lab.leads().epoch == new.epoch
    # One, where it was stopped between its look at the lease and the act.
    assert lab.refused(old.pid) <= 1, "its lease ended, it need not have been refused"


def test_b4_each_policy_chooses_and_a_person_overrides_it_and_gives_it_back(
    lab: GroupLab,
) -> None:
    now = lab.leads()
    other = (now.rank + 1) % 3
    lab.says("set", "group:ledger", f"lead={other}", "--take")
    chosen = lab.leads(after=now.epoch)
    assert chosen.rank == other
    lab.says("set", "group:ledger", "leader=lowest", "--unset", "lead", "--take")
    assert lab.leads().epoch == chosen.epoch, "who leads goes on"

    rank = (other + 1) % 3
    lab.says("set", "group:ledger", f"leader=rank {rank}", "--take")
    configured = lab.leads(after=chosen.epoch)
    assert configured.rank == rank

    lab.says("set", "group:ledger", "leader=plug-in", f"choice={other}", "--take")
    plugged = lab.leads(after=configured.epoch)
    assert plugged.rank == other

    lab.says("set", "group:ledger", "leader=none", "--take")
    lab.until("nobody leads", lambda: "nobody leads" in lab.says("why", "group:ledger"))
    effects = len(lab.effects())

    for policy in ("first", "lowest"):
        lab.says("set", "group:ledger", f"leader={policy}", "--unset", "choice", "--take")
        lead = lab.leads(after=plugged.epoch)
        assert next(one.epoch for one in lab.effects()[effects:]) > plugged.epoch
        if policy == "lowest":
            break
        os.kill(lead.pid, signal.SIGKILL)
        assert lab.leads(after=lead.epoch).rank != lead.rank, "the one that runs longest"


def test_r1_a_parent_that_is_killed_again_and_again_starts_and_ends_nothing(
    lab: GroupLab,
) -> None:
    before, starts, leader = lab.apart(), len(lab.starts()), lab.leads()
    for _ in range(PARENT_KILLS):
        old = lab.parent()
        kill(old)
        lab.until("there is another parent", lambda old=old: lab.parent().pid != old.pid)
        lab.until("it knows all", lambda: all_told(lab))
        assert lab.leads().epoch == leader.epoch

    assert same(before, lab)
    assert len(lab.starts()) == starts


def test_r2_what_was_changed_in_the_site_file_is_all_that_a_new_parent_does(
    lab: GroupLab,
) -> None:
    before, starts = lab.apart(), len(lab.starts())
    site = lab.directory / "site.yaml"
    text = site.read_text()
    try:
        site.write_text(text.replace("replicas: 3", "replicas: 2"))
        kill(lab.parent())
        lab.until("it is applied", lambda: "rror" not in lab.says("apply", str(site)))
        lab.until("two are left", lambda: len(lab.living()) == 2)
        lab.until("nothing is left to do", lambda: have_the_command(lab))
        assert {str(one) for one in lab.living()} < {str(one) for one in before}
        assert len(lab.starts()) == starts
    finally:
        site.write_text(text)
        lab.until("it is applied", lambda: "rror" not in lab.says("apply", str(site)))


def test_r4_each_process_that_manages_may_be_killed_at_any_time(lab: GroupLab) -> None:
    before, starts = lab.apart(), len(lab.starts())
    rng = random.Random(SEED)
    for _ in range(12):
        node = rng.choice(NODES)
        match rng.randrange(4):
            case 0:
                kill(lab.parent())
            case 1 if (agent := lab.agent(node)) is not None:
                kill(agent)
            case 2 if (agent := lab.agent(node)) is not None:
                kill(lab.module(agent, "replica"))
            case _:
                kill(lab.zygote(lab.parent(), "labnode"))
        lab.leads()

    lab.until("all are known to run", lambda: all_told(lab))
    assert same(before, lab)
    assert len(lab.starts()) == starts


def test_n2_where_half_of_all_nodes_fall_silent_another_leads_and_nothing_is_placed_for_now(
    lab: GroupLab, network: None
) -> None:
    old = lab.leads()
    there = sorted({one.node for one in lab.apart()} - {old.node})
    free = sorted(set(NODES) - {old.node, *there})
    starts = len(lab.starts())
    with lab.cut_off(old.node, there[0], *free[:2]):
        lab.leads(after=old.epoch)
        held = "4 of 6 nodes fell silent: held for 30 s"
        lab.until("it says so", lambda: held in lab.says("why", "group:ledger"))
        assert len(lab.starts()) == starts
        lab.until("they are replaced after all", lambda: len(lab.starts()) > starts)


def test_n3_a_new_node_is_used_at_the_next_demand(lab: GroupLab) -> None:
    for node in ("n5", "n6"):
        lab.says("power", "off", "--take", node)
    lab.until("both are vacated", lambda: not {"n5", "n6"} & {one.node for one in lab.living()})
    lab.until("three run", lambda: len(lab.living()) == 3)
    lab.says("power", "on", "--take", "n5,n6")

    lab.apart()


def test_n7_a_drained_node_s_replica_leads_until_its_replacement_runs(lab: GroupLab) -> None:
    """Nothing can be started where it is to go, for a while: meanwhile it acts, the node is on."""
    old, living = lab.leads(), lab.apart()
    one = next(start for start in living if start.pid == old.pid)
    free = [node for node in NODES if node not in {start.node for start in living}]
    names = [f"replica:ledger.{one.rank}@{node}" for node in free]
    seen = len(lab.starts())
    # The scenario before this one may just have switched one of them on.
    lab.until("the free nodes are heard", lambda: all(map(lab.is_heard, free)))
    try:
        with lab.frozen(*free):
            lab.says("power", "off", "--take", one.node)
            lab.until("its replacement is declared", lambda: any(map(lab.view, names)))
            acted = len(lab.effects_of(one))
            lab.until("it acts on", lambda: len(lab.effects_of(one)) > acted + 20)
        lab.until("its replacement runs", lambda: len(lab.starts()) > seen)
        new = lab.starts()[seen]
        assert (new.rank, new.incarnation[0]) == (one.rank, one.incarnation[0] + 1)
        lab.until("it ends", lambda: not one.lives)
        lab.until("the node is off", lambda: not lab.agent_pid(one.node))
    finally:
        lab.says("power", "on", "--take", one.node)


def test_n8_of_nodes_that_are_drained_together_only_as_many_lose_a_replica_as_may(
    lab: GroupLab,
) -> None:
    """All but one: nobody can be moved, so only one replica may end."""
    kept = lab.apart()[0].node
    others = [node for node in NODES if node != kept]
    lab.says("power", "off", "--take", ",".join(others))
    try:
        lab.until("one has ended", lambda: len(lab.living()) == 2)
        lab.until(
            "it says what waits",
            lambda: "may be down at once" in lab.says("why", "group:ledger"),
        )
        assert len(lab.living()) == 2
        waiting = next(one.node for one in lab.living() if one.node != kept)
        said = lab.until("its node says why", lambda: _why_held(lab.says("why", f"node:{waiting}")))
        assert "runs here" in said
    finally:
        lab.says("power", "on", "--take", ",".join(others))


def _why_held(text: str) -> str | None:
    return text if "runs here" in text else None
