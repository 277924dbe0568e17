"""The gate of a node's jobs: with real processes and locks, and against a plainer model."""

import asyncio
import contextlib
import fcntl
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest

from haptera.keeping.gate import PIDS_TOLD_MAX, JobsGate, enter, gate_path, holders
from haptera.kinds.node import Busy
from haptera.model.parts import Context, Look, Manifest, Requirement
from haptera.modules.jobs.module import look_busy, module, watch_busy
from haptera.sdk import Refused
from tests.lab.rig import wait_for

ROOT = Path(__file__).resolve().parents[2]
WAIT_S = 60
ROUNDS = 20
HISTORIES = 200
ACTS = 40
# In a /run of its own. As slurmd does, what is left in the process group of a prolog that has ended
# is killed; then whether the gate is locked is told, and again after the epilog.
ONE_JOB = """
mount -t tmpfs none /run
gate=/run/haptera/jobs/open/gate
mkdir -p "${gate%/*}"
: >"$gate"
export SLURM_JOB_ID=7
setsid sh -c 'echo $$; exec "$0"' "$0/prolog" >/run/group </dev/null
echo $?
read -r group </run/group
kill -KILL "-$group" 2>/dev/null
flock -n "$gate" true
echo $?
"$0/epilog"
flock -w 60 "$gate" true
echo $?
"""
Start = Callable[[str], "subprocess.Popen[str]"]
# Of a lock whose locker has ended, /proc/locks tells the first PID namespace alone (proc_pid_init).
INIT_PIDS = "pid:[4026531836]"
NAMES_HOLDERS = pytest.mark.skipif(
    os.readlink("/proc/self/ns/pid") != INIT_PIDS,
    reason="in a PID namespace the kernel names nobody whose locker has ended",
)


@pytest.fixture
def gate(tmp_path: Path) -> JobsGate:
    """A gate that is open, as it is once the agent has let jobs begin."""
    made = JobsGate(tmp_path)
    made.release()
    return made


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts shell lines in which $G is the gate; none of them outlives the test."""
    started: list[subprocess.Popen[str]] = []

    def begin(line: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            ["sh", "-c", line],
            env={**os.environ, "G": str(gate_path(tmp_path))},
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        started.append(process)
        return process

    yield begin
    for process in started:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


@dataclass
class Jobs:
    """Jobs that are nothing but descriptors; all are over with the test."""

    path: Path
    inside: list[int] = field(default_factory=list)

    def come(self) -> bool:
        """Whether the gate lets another job in."""
        job = enter(self.path)
        self.inside += [] if job is None else [job]
        return job is not None

    def end(self) -> None:
        """One of them is over."""
        os.close(self.inside.pop())


@pytest.fixture
def jobs(tmp_path: Path) -> Iterator[Jobs]:
    made = Jobs(gate_path(tmp_path))
    yield made
    while made.inside:
        made.end()


def said(process: "subprocess.Popen[str]") -> str:
    """The next line that it writes."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


def refusal(gate: JobsGate) -> str:
    with pytest.raises(Refused) as raised:
        gate.hold()
    return str(raised.value)


def test_it_declares_one_look_and_is_a_gate() -> None:
    up = (Requirement("agent", ("up",)),)
    look = Look("jobs", "look_busy", "node", "busy", ("free", "busy"), up, watched=True)

    assert module.manifest() == Manifest("jobs", "1", Context.SELF, (look,), (), gate=True)


def test_a_node_boots_closed_and_free(tmp_path: Path, jobs: Jobs) -> None:
    gate = JobsGate(tmp_path)

    assert not jobs.come()
    assert asyncio.run(look_busy(gate)) is Busy.FREE
    gate.hold()
    assert list(tmp_path.iterdir()) == []


def test_a_released_gate_lets_jobs_in_and_a_node_with_a_job_is_busy(
    gate: JobsGate, jobs: Jobs
) -> None:
    assert jobs.come()
    assert asyncio.run(look_busy(gate)) is Busy.BUSY
    jobs.end()
    assert asyncio.run(look_busy(gate)) is Busy.FREE


def test_a_held_gate_lets_nobody_in_until_it_is_released(gate: JobsGate, jobs: Jobs) -> None:
    gate.hold()
    gate.hold()
    assert not jobs.come()
    gate.release()
    gate.release()
    assert jobs.come()


@pytest.mark.net
def test_a_gate_with_jobs_refuses_says_how_many_and_stays_open(
    gate: JobsGate, start: Start
) -> None:
    line = 'exec flock -s -n "$G" sh -c "echo in; exec sleep 60"'
    jobs = [start(line), start(line)]
    assert [said(job) for job in jobs] == ["in", "in"]

    told = refusal(gate)
    assert told.startswith("2 jobs run (locked by ")
    assert {int(pid) for pid in re.findall(r"\d+", told)[1:3]} == {job.pid for job in jobs}
    third = start(line)
    assert said(third) == "in"


@pytest.mark.net
def test_a_job_that_is_killed_is_over(gate: JobsGate, start: Start) -> None:
    job = start('exec flock -s -n -o "$G" sh -c "echo in; exec sleep 60"')
    assert said(job) == "in"
    assert gate.in_use
    os.killpg(job.pid, signal.SIGKILL)
    job.wait(WAIT_S)

    gate.hold()
    assert not gate.in_use


@pytest.mark.net
@NAMES_HOLDERS
def test_what_a_job_has_started_keeps_the_node_busy_though_the_job_was_killed(
    gate: JobsGate, start: Start
) -> None:
    job = start('exec 9<"$G"; flock -s -n 9 || exit 75; sleep 60 & echo $!; wait')
    child = int(said(job))
    os.kill(job.pid, signal.SIGKILL)
    job.wait(WAIT_S)

    assert refusal(gate).startswith("1 job runs")
    os.kill(child, signal.SIGKILL)
    wait_for(lambda: not gate.in_use)
    gate.hold()


AS_NOBODY = """
import encodings.ascii, os, sys  # nobody may not read where Python is
from pathlib import Path
from haptera.keeping.gate import holders
os.setuid(65534)
print(*holders(Path(sys.argv[1])))
"""


@pytest.mark.net
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be somebody else")
def test_who_holds_the_gate_is_named_where_its_open_files_cannot_be_seen() -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        JobsGate(Path(folder)).release()
        path = gate_path(Path(folder))
        with path.open() as file:
            fcntl.flock(file, fcntl.LOCK_SH)
            ask = [sys.executable, "-c", AS_NOBODY, str(path)]
            told = subprocess.run(ask, capture_output=True, text=True, check=True).stdout
    assert told == f"{os.getpid()}\n"


@pytest.mark.net
def test_flock_finds_no_gate_that_is_held_and_makes_none(
    gate: JobsGate, start: Start, jobs: Jobs
) -> None:
    gate.hold()
    assert start('exec flock -s -n "$G" echo in 2>&1').wait(WAIT_S) != 0
    assert not jobs.come()


@pytest.mark.net
@NAMES_HOLDERS
def test_a_job_stopped_between_finding_the_gate_and_locking_it_is_seen(
    gate: JobsGate, start: Start
) -> None:
    job = start('exec 9<"$G"; echo found; kill -STOP $$; flock -s -n 9 && echo in; exec sleep 60')
    assert said(job) == "found"
    os.waitid(os.P_PID, job.pid, os.WSTOPPED | os.WNOWAIT)

    assert refusal(gate) == "a job runs, or is about to"
    os.kill(job.pid, signal.SIGCONT)
    assert said(job) == "in"
    assert refusal(gate).startswith("1 job runs")


def test_a_module_that_died_while_it_closed_the_gate_leaves_it_closed_and_sees_the_job_later(
    gate: JobsGate, jobs: Jobs, tmp_path: Path
) -> None:
    assert jobs.come()
    died(tmp_path)

    assert not jobs.come()
    assert JobsGate(tmp_path).in_use
    assert refusal(JobsGate(tmp_path)).startswith("1 job runs")
    assert jobs.come()  # what refuses to hold is open


def test_a_module_that_died_before_a_new_gate_was_whole_makes_it_whole(
    jobs: Jobs, tmp_path: Path
) -> None:
    (tmp_path / "jobs" / "new").mkdir(parents=True)

    JobsGate(tmp_path).release()
    assert jobs.come()


def test_without_leases_locks_are_seen(jobs: Jobs, tmp_path: Path) -> None:
    """A directory can be locked but not leased, as nothing can on some file systems."""
    gate_path(tmp_path).mkdir(parents=True)
    gate = JobsGate(tmp_path)

    assert jobs.come()
    assert gate.in_use
    assert refusal(gate).startswith("1 job runs")
    jobs.end()
    gate.hold()


def test_a_job_waits_while_the_gate_is_looked_at(gate: JobsGate, jobs: Jobs) -> None:
    """Where there are no leases, a look locks the gate for a moment."""
    look = os.open(jobs.path, os.O_RDONLY)
    fcntl.flock(look, fcntl.LOCK_EX)
    with subprocess.Popen(["sleep", "0.05"], pass_fds=[look]):
        os.close(look)
        assert jobs.come()


def test_a_gate_that_closes_while_a_job_enters_keeps_it_out(
    gate: JobsGate, jobs: Jobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job has locked the gate after it was closed: it must see that, for nobody sees it."""
    lock = fcntl.flock

    def close_then_lock(descriptor: int, how: int) -> None:
        if how & fcntl.LOCK_SH:
            died(tmp_path)
        lock(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", close_then_lock)
    assert not jobs.come()
    assert not gate.in_use


def test_a_job_that_enters_while_the_gate_closes_is_seen(
    gate: JobsGate, jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename = Path.rename

    def enter_then_rename(place: Path, target: Path) -> Path:
        monkeypatch.undo()
        assert jobs.come()
        return rename(place, target)

    monkeypatch.setattr(Path, "rename", enter_then_rename)
    assert refusal(gate).startswith("1 job runs")
    assert jobs.come()


def test_a_busy_gate_is_not_closed_even_for_a_moment(
    gate: JobsGate, jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert jobs.come()
    monkeypatch.delattr(Path, "rename")

    assert refusal(gate).startswith("1 job runs")


async def test_the_watch_tells_when_a_node_becomes_busy_and_free(
    gate: JobsGate, jobs: Jobs
) -> None:
    seen = watch_busy(gate)
    async with asyncio.timeout(WAIT_S):
        assert await anext(seen) is Busy.FREE
        assert jobs.come()
        assert await anext(seen) is Busy.BUSY
        jobs.end()
        assert await anext(seen) is Busy.FREE


def test_a_lock_is_counted_by_its_file(gate: JobsGate, jobs: Jobs, tmp_path: Path) -> None:
    assert [jobs.come() for _ in range(3)] == [True] * 3
    with (tmp_path / "other").open("w") as other:
        fcntl.flock(other, fcntl.LOCK_SH)

        assert holders(jobs.path) == [os.getpid()] * 3
    assert holders(tmp_path / "none") == []


def test_many_jobs_are_counted_but_not_all_named(gate: JobsGate, jobs: Jobs) -> None:
    count = PIDS_TOLD_MAX + 1
    assert all(jobs.come() for _ in range(count))

    pids = ", ".join([str(os.getpid())] * PIDS_TOLD_MAX)
    assert refusal(gate).startswith(f"{count} jobs run (locked by {pids}, …): ")


@pytest.mark.net
@pytest.mark.slow
def test_while_the_gate_is_held_no_job_runs_however_many_try(
    gate: JobsGate, start: Start, tmp_path: Path
) -> None:
    """Each job leaves a mark while it runs; they start as fast as they can, in two shells."""
    inside, begun = tmp_path / "inside", tmp_path / "begun"
    inside.mkdir()
    begun.touch()
    job = 'test -e "$G" || exit 75; : > inside/$$; echo >> begun; rm inside/$$'
    for _ in range(2):
        start(f'while :; do flock -s -n "$G" sh -c {shlex.quote(job)}; done 2>/dev/null')
    held = refused = 0
    while held < ROUNDS or refused < ROUNDS:
        try:
            gate.hold()
        except Refused:
            refused += 1
            continue
        held += 1
        for _ in range(20):
            assert list(inside.iterdir()) == []
        so_far = begun.stat().st_size
        gate.release()
        wait_for(lambda so_far=so_far: begun.stat().st_size > so_far)


class Plain:
    """What a gate is, without files: open or not, and who is inside."""

    def __init__(self) -> None:
        self.open = False
        self.inside: list[int] = []

    def hold(self) -> bool:
        self.open = bool(self.inside)
        return not self.inside


def test_the_gate_is_as_a_plain_model_through_random_histories(tmp_path: Path) -> None:
    seen: Counter[str] = Counter()
    for seed in range(HISTORIES):
        seen += history(Random(seed), tmp_path / str(seed))

    # Most that can come of an act did, often.
    assert {name: count for name, count in seen.items() if count < HISTORIES // 2} == {}
    assert set(seen) == {"let in", "kept out", "held", "refused", "died", "ended", "released"}


def history(rng: Random, run_dir: Path) -> Counter[str]:
    """Random acts on a gate and on its model, compared after each."""
    seen: Counter[str] = Counter()
    plain, path = Plain(), gate_path(run_dir)
    for _ in range(ACTS):
        gate = JobsGate(run_dir)  # a module's process that was started anew
        match rng.choice(
            ["find", "enter", "enter", "end", "end", "hold", "hold", "release", "die"]
        ):
            case "find" | "enter" as how:
                job = found(path) if how == "find" else enter(path)
                assert (job is not None) is plain.open
                plain.inside += [job] if job is not None else []
                seen["kept out" if job is None else "let in"] += 1
            case "end" if plain.inside:
                os.close(plain.inside.pop(rng.randrange(len(plain.inside))))
                seen["ended"] += 1
            case "hold":
                held = plain.hold()
                assert held_by(gate) is held
                seen["held" if held else "refused"] += 1
            case "release":
                gate.release()
                plain.open = True
                seen["released"] += 1
            case "die" if plain.open:
                died(run_dir)
                plain.open = False
                seen["died"] += 1
        assert path.exists() is plain.open
        assert gate.in_use is bool(plain.inside)
    for job in plain.inside:
        os.close(job)
    return seen


def held_by(gate: JobsGate) -> bool:
    try:
        gate.hold()
    except Refused:
        return False
    return True


def found(path: Path) -> int | None:
    """A job that has found the gate and not locked it yet."""
    try:
        return os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return None


def died(run_dir: Path) -> None:
    """The module is killed while it holds: the gate is closed, and nobody has looked inside."""
    (run_dir / "jobs" / "open").rename(run_dir / "jobs" / "closed")


def test_who_runs_is_told_by_what_it_was_called_with(gate: JobsGate, start: Start) -> None:
    waiting = start('exec flock -s -n "$G" sh -c "echo in; exec sleep 60"')
    assert waiting.stdout is not None
    waiting.stdout.readline()

    assert refusal(gate).endswith(": sh -c echo in; exec sleep 60")


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="a /run of its own needs root")
def test_a_job_of_slurm_holds_the_gate_from_its_prolog_to_its_epilog() -> None:
    scripts = ROOT / "contrib/slurm"
    command = ["unshare", "--mount", "--propagation", "private", "sh", "-c", ONE_JOB, scripts]

    ran = subprocess.run(command, capture_output=True, text=True)

    assert (ran.stdout.split(), ran.stderr) == (["0", "1", "0"], "")


@NAMES_HOLDERS
def test_a_lock_whose_taker_has_ended_is_known_by_its_heir(
    gate: JobsGate, start: Start, tmp_path: Path
) -> None:
    holder = start('exec 9<"$G"; flock -s -n 9; echo in; exec sleep 60')
    assert said(holder) == "in"

    assert holders(gate_path(tmp_path)) == [holder.pid]
    assert refusal(gate) == f"1 job runs (locked by {holder.pid}): sleep 60"


# As an agent in a container: the processes of the gate's jobs are none that it has a number for.
ELSEWHERE = """\
import sys
from pathlib import Path

from haptera.keeping.gate import JobsGate
from haptera.sdk import Refused

gate = JobsGate(Path(sys.argv[1]))
try:
    gate.hold()
    print("held")
except Refused as error:
    print(gate.in_use, error)
"""


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="a PID namespace of its own needs root")
@pytest.mark.parametrize("line", ["exec flock -s -n 9 sleep 60", "flock -s -n 9; exec sleep 60"])
def test_from_another_pid_namespace_a_job_keeps_the_gate_open_and_nobody_else_is_named(
    gate: JobsGate, start: Start, tmp_path: Path, line: str
) -> None:
    ask = ["unshare", "--pid", "--fork", "--mount-proc", sys.executable, "-c", ELSEWHERE, tmp_path]
    job = start(f'exec 9<"$G"; flock -s -n 9; echo in; {line}')
    assert said(job) == "in"
    told = subprocess.run(ask, capture_output=True, text=True, check=True).stdout
    assert told == "True a job runs, or is about to\n"
    assert gate_path(tmp_path).exists()
    os.killpg(job.pid, signal.SIGKILL)
    job.wait()
    assert subprocess.run(ask, capture_output=True, text=True, check=True).stdout == "held\n"


# In a /run of its own, with a scontrol that says of the job what is in /run/slurm. A line a step:
# whether the gate is held.
FORGOTTEN = """
mount -t tmpfs none /run
gate=/run/haptera/jobs/open/gate
mkdir -p "${gate%/*}" /run/bin
: >"$gate"
printf '#!/bin/sh\ncat /run/slurm; echo >>/run/asked\n' >/run/bin/scontrol
chmod 755 /run/bin/scontrol
: >/run/asked
say() { echo "$1" >/run/slurm; }
asked() { until [ "$(wc -l </run/asked)" -gt "$1" ]; do sleep 0.1; done; }
held() { if flock -n "$gate" true; then echo free; else echo held; fi; }
sed "s|^PATH=|PATH=/run/bin:|" "$0/prolog" >/run/bin/prolog
chmod 755 /run/bin/prolog
env -i HAPTERA_HOLDER_EVERY=0.1 SLURM_JOB_ID=7 /run/bin/prolog
say 'JobId=7 JobState=RUNNING Reason=None'
asked 3 && held
say 'Unable to contact slurm controller (connect failure)'
asked 9 && held
SLURM_JOB_ID=7 sleep 600 &
process=$!
SLURM_JOB_ID=77 sleep 600 &
other=$!
say 'slurm_load_jobs error: Invalid job id specified'
sleep 1
held
kill $process
flock -w 60 "$gate" true && held
kill $other
[ -e /run/haptera-jobs/7 ] || echo gone
"""


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="a /run of its own needs root")
def test_a_job_that_slurm_forgot_holds_the_gate_until_nothing_of_it_runs() -> None:
    scripts = ROOT / "contrib/slurm"
    command = ["unshare", "--mount", "--propagation", "private", "sh", "-c", FORGOTTEN, scripts]

    ran = subprocess.run(command, capture_output=True, text=True)

    assert (ran.stdout.split(), ran.stderr) == (["held", "held", "held", "free", "gone"], "")
