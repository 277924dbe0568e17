"""`haptera job` as it is typed: by the exit codes and words that a batch system sees."""

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from haptera.keeping.gate import JobsGate, gate_path
from haptera.sdk import Refused
from tests.cli.rig import command, environment, told, typed

pytestmark = pytest.mark.net


@pytest.fixture
def gate(tmp_path: Path) -> JobsGate:
    made = JobsGate(tmp_path)
    made.release()
    return made


@pytest.fixture
def job(gate: JobsGate, tmp_path: Path) -> Iterator["subprocess.Popen[str]"]:
    """A job that has begun; it is over with the test."""
    shell = "echo in; exec sleep 60"
    with subprocess.Popen(
        command("job", "--gate", gate_path(tmp_path), "sh", "-c", shell),
        stdout=subprocess.PIPE,
        text=True,
        env=environment(),
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "in\n"
        yield process
        process.kill()


def test_a_job_runs_as_itself_and_its_exit_code_is_the_commands(
    gate: JobsGate, tmp_path: Path
) -> None:
    shell = "echo said; echo wrong >&2; exit 7"
    answer = typed("job", "--gate", gate_path(tmp_path), "sh", "-c", shell, folder=tmp_path)

    assert answer == (7, "said\n", "wrong\n")


def test_a_node_with_a_job_is_busy_until_the_job_is_killed(
    gate: JobsGate, job: "subprocess.Popen[str]"
) -> None:
    with pytest.raises(Refused, match=rf"1 job runs \(locked by {job.pid}\)"):
        gate.hold()
    os.kill(job.pid, signal.SIGKILL)
    job.wait()

    gate.hold()


def test_a_closed_gate_lets_no_job_begin(gate: JobsGate, tmp_path: Path) -> None:
    gate.hold()
    path = gate_path(tmp_path)
    answer = typed("job", "--gate", path, "touch", "begun", folder=tmp_path)

    assert answer == (75, "", told("the node admits no jobs now", path, "come back later"))
    assert not (tmp_path / "begun").exists()


@pytest.mark.parametrize(
    ("line", "code", "what"),
    [
        (("no-such-command",), 127, "cannot be run: No such file or directory"),
        (("/",), 126, "cannot be run: Permission denied"),
    ],
)
def test_what_cannot_be_run_is_told_as_by_a_shell(
    gate: JobsGate, tmp_path: Path, line: tuple[str, ...], code: int, what: str
) -> None:
    answer = typed("job", "--gate", gate_path(tmp_path), *line, folder=tmp_path)

    assert answer == (code, "", told(what, line[0]))
    assert not gate.in_use


def test_a_gate_that_cannot_be_used_is_not_called_closed(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    path = tmp_path / "file" / "gate"

    assert typed("job", "--gate", path, "true", folder=tmp_path) == (
        1,
        "",
        told(
            "the gate cannot be used: Not a directory",
            path,
            "run jobs as the user that runs the agent, or as root",
        ),
    )


def test_a_job_is_ended_by_a_pipe_that_nobody_reads_as_anywhere_else(
    gate: JobsGate, tmp_path: Path
) -> None:
    (code, output, _) = typed(
        "job", "--gate", gate_path(tmp_path), "sh", "-c", "kill -PIPE $$; echo on", folder=tmp_path
    )

    assert (code, output) == (-signal.SIGPIPE, "")


@pytest.mark.parametrize("above", [".", "/"])
def test_a_gate_that_nobody_keeps_is_not_one_that_is_closed(tmp_path: Path, above: str) -> None:
    path = tmp_path / above / "nope"
    code, out, errors = typed("job", "--gate", path, "true", folder=tmp_path)
    assert (code, out, errors.splitlines()[0]) == (1, "", "error: there is no job gate here")
