"""What each Slurm since 21.08 prints as JSON, and what is read of it: the same of all of them."""

import asyncio
import json
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest

from haptera.model.foreign import ForeignError
from haptera.modules.slurm.commands import SlurmAwayError, SlurmCommands
from haptera.modules.slurm.controller import listed
from haptera.modules.slurm.jobs import Slurm
from haptera.modules.slurm.shapes import SlurmJob, SlurmNode, jobs_in, nodes_in
from haptera.sdk.backends import BackendTerms

SHAPES = Path(__file__).parent / "slurm_shapes"
VERSIONS = sorted(path.stem for path in SHAPES.glob("*.json"))
NODES = {
    "n1": SlurmNode("n1", frozenset(("IDLE",)), "", False, "gpu,image:a", "gpu,image:a", ("all",)),
    "n2": SlurmNode("n2", frozenset(("MIXED", "DRAIN")), "bad disk", True, "", "", ("all",)),
    "n3": SlurmNode(
        "n3", frozenset(("DOWN", "NOT_RESPONDING")), "Not responding", False, "", "", ("all",)
    ),
    "n4": SlurmNode(
        "n4", frozenset(("IDLE", "MAINTENANCE", "RESERVED")), "", False, "", "", ("all",)
    ),
}
JOBS = [
    SlurmJob(7, "work", "RUNNING", "None", 0, "n2", "all"),
    SlurmJob(8, "bad", "FAILED", "NonZeroExitCode", 3 << 8, "n1", "all"),
    SlurmJob(9, "killed", "COMPLETING", "None", 9, "n[1-2]", "all", "", 2),
    SlurmJob(12, "held", "PENDING", "JobHeldUser", 0, "", "all", "image:b", 2),
]


def printed(version, command):
    told = json.loads((SHAPES / f"{version}.json").read_text())
    return json.dumps(told[command]).encode() if command in told else None


def test_each_version_has_its_shapes():
    assert VERSIONS == ["21.08", "22.05", "23.02", "23.11", "24.05", "24.11", "25.05", "25.11"]


@pytest.mark.parametrize("version", VERSIONS)
def test_nodes_are_read_of_each_version(version):
    for command in ("sinfo", "scontrol"):
        if (told := printed(version, command)) is not None:
            assert nodes_in(command, told) == NODES, command


@pytest.mark.parametrize("version", VERSIONS)
def test_jobs_are_read_of_each_version(version):
    assert jobs_in("squeue", printed(version, "squeue")) == JOBS


def with_member(version, command, member, value):
    """What it prints with one member of its first row changed."""
    told = msgspec.json.decode(printed(version, command))
    (rows,) = [one for one in told.values() if isinstance(one, list) and one]
    rows[0][member] = value
    return msgspec.json.encode(told)


def test_a_shape_that_is_not_known_is_told_with_program_version_and_member():
    with pytest.raises(ForeignError) as failed:
        nodes_in("scontrol", with_member("25.11", "scontrol", "state", {"base": "IDLE"}))
    what = "scontrol of Slurm 25.11.4: nodes[0].state is an object, not a text"
    assert failed.value.what == what
    with pytest.raises(ForeignError, match=r"23\.02\.7: jobs\[0\]\.job_state is absent, not there"):
        jobs_in("squeue", with_member("23.02", "squeue", "job_state", None))
    with pytest.raises(ForeignError, match=r"of an unknown version: sinfo is absent, not there"):
        nodes_in("sinfo", b'{"meta": 7}')
    with pytest.raises(ForeignError, match=r"sinfo: no JSON: .* it begins with 'n1 idle'"):
        nodes_in("sinfo", b"n1 idle\n")


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("odd", [None, True, 7, 0.5, "odd", ["odd"], {"odd": 1}, [[{}]]])
def test_whatever_a_member_is_nothing_fails_but_as_a_shape(version, odd):
    for command, read in (("sinfo", nodes_in), ("scontrol", nodes_in), ("squeue", jobs_in)):
        told = printed(version, command)
        for member in () if told is None else json.loads(told):
            with suppress(ForeignError, SlurmAwayError):
                read(command, msgspec.json.encode({**json.loads(told), member: odd}))
        for member in () if told is None else (*NODES["n1"].__struct_fields__, "job_state", "node"):
            with suppress(ForeignError):
                read(command, with_member(version, command, member, odd))


@pytest.mark.parametrize("version", [one for one in VERSIONS if printed(one, "scontrol")])
def test_a_number_or_a_reason_may_be_an_object_in_any_version(version):
    some = {"set": True, "infinite": False, "number": 3}
    assert nodes_in("scontrol", with_member(version, "scontrol", "alloc_cpus", some))["n1"].has_jobs
    none = {**some, "set": False}
    one = nodes_in("scontrol", with_member(version, "scontrol", "alloc_cpus", none))["n1"]
    assert not one.has_jobs
    told = with_member(version, "scontrol", "reason", {"description": "bad fan"})
    assert nodes_in("scontrol", told)["n1"].reason == "bad fan"


def test_an_unset_number_is_none():
    unset = {"set": False, "infinite": False, "number": 4}
    (job, *_) = jobs_in("squeue", with_member("25.11", "squeue", "node_count", unset))
    assert job.node_count == 1
    unset = {"return_code": {**unset, "number": 0}}
    (job, *_) = jobs_in("squeue", with_member("25.11", "squeue", "exit_code", unset))
    assert job.exit_code is None


def test_without_its_controller_nothing_is_known():
    for read in (nodes_in, jobs_in):
        with pytest.raises(SlurmAwayError, match="slurmctld does not answer"):
            read("it", b'{"jobs": [], "nodes": [], "errors": [{"error": "no contact"}]}')


@pytest.fixture
def commands(tmp_path, monkeypatch):
    """Slurm's commands as programs that print what a version of them printed."""

    def be(version, suspended=""):
        for name in ("scontrol", "sinfo", "squeue"):
            told = printed(version, name)
            text = f"cat {tmp_path / name}.json" if told else "echo unrecognized option >&2; exit 1"
            if name == "squeue":
                text = f"case $* in *--json*) {text};; *) echo '{suspended}';; esac"
            (tmp_path / f"{name}.json").write_bytes(told or b"")
            (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
            (tmp_path / name).chmod(0o755)

    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return be


@pytest.mark.net
@pytest.mark.parametrize("version", VERSIONS)
def test_the_commands_of_each_version_are_asked_as_they_can_be(commands, version, tmp_path):
    commands(version)
    assert asyncio.run(listed(SlurmCommands(None, 60.0))) == NODES
    assert asyncio.run(Slurm(BackendTerms()).jobs()) == []  # none has a name of ours


@pytest.mark.net
def test_a_node_with_a_suspended_job_has_a_job(commands):
    commands("22.05", suspended="n[1,4]\nn3")
    nodes = asyncio.run(listed(SlurmCommands(None, 60.0)))
    assert {name for name, one in nodes.items() if one.has_jobs} == {"n1", "n2", "n3", "n4"}
    assert nodes["n1"].standing.state == "allocated"
    assert nodes["n4"].standing.state == "draining"


@pytest.mark.net
def test_a_scontrol_that_is_missing_or_has_another_shape_leaves_sinfo(commands, tmp_path):
    commands("24.05")
    (tmp_path / "scontrol.json").write_text("{}")
    assert asyncio.run(listed(SlurmCommands(None, 60.0))) == NODES
