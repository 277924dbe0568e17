"""Stays with one service to its end and writes down how that ended; a program of its own.

`main` runs in the service's directory, with the service's environment, and ends once the service
runs or cannot run. The process that it leaves behind is the keeper. It has no parent-death signal
and no tie to the module, the agent or the zygote; these come and go, and find it in `state`.

Executed rather than forked from the module, because it is there for as long as the service: as a
copy it would hold on to the module's memory, and an interpreter without site packages or asyncio
costs 3 MB of its own. It therefore imports next to nothing, and of haptera only what stands beside
it here and needs no more.
"""

import fcntl
import os
import resource
import signal
import sys

from haptera.keeping import procfs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from haptera.keeping.limits_keeper import Kept

ALREADY_RUNS = 75
NOT_EXECUTED = 127
COMM_BYTES_MAX = 15
# So often is looked for what a service left behind: it may have forked meanwhile.
KILLS_MAX = 10
# Imported, not run as a script: compiling it anew would cost each keeper another megabyte.
PROGRAM = """
import sys
sys.path.append(sys.argv.pop(1))
from haptera.keeping.keeper import main
main()
"""
LOCK, STATE, STATUS, STOP, OUTPUT = "lock", "state", "status", "stop", "output.log"
# A command with a lease is a job: it runs once, and `job_keeper` sees to the rest.
LEASE, BOUNDS = "lease", "bounds"
# A service with limits: `limits_keeper` sees to them, and writes down what was too much.
LIMITS, EXCEEDED = "limits", "exceeded"


def command_line(digest: str, command: list[str]) -> list[str]:
    """What to execute so that the command is kept."""
    place = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
    return [sys.executable, "-I", "-S", "-c", PROGRAM, place, digest, *command]


def main() -> None:
    """Keep the command in `sys.argv`, after the digest of what it was started for."""
    digest, command = sys.argv[1], sys.argv[2:]
    # A module's process is bounded; the service is the site's own.
    for limit in (resource.RLIMIT_AS, resource.RLIMIT_CORE):
        hard = resource.getrlimit(limit)[1]
        resource.setrlimit(limit, (hard, hard))
    # Put there by this interpreter; the service gets what the module gave.
    os.environ.pop("LC_CTYPE", None)
    lock = os.open(LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        # Held by the keeper, so that a service is not started twice.
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        sys.exit(ALREADY_RUNS)
    if _runs_without_keeper() or (os.path.exists(LEASE) and os.path.exists(STATE)):
        sys.exit(ALREADY_RUNS)
    reading, writing = os.pipe()
    if os.fork() > 0:
        os.close(writing)
        _leave(_read_all(reading))
    os.close(reading)
    _keep(digest, command, writing)


class KeptService:
    """A command that goes on until it is stopped; what it began in its session ends with it."""

    def prepare(self) -> None:
        """Nothing, in the keeper."""

    def enter(self) -> None:
        """Write where people look, in the process that becomes the service."""
        output = os.open(OUTPUT, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
        os.dup2(output, 1)
        os.dup2(output, 2)

    def await_end(self, pid: int) -> int:
        """Its status; what it leaves in its session goes with it, or would hold its port."""
        # Not reaped yet, so the session's number is still its own.
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        for _ in range(KILLS_MAX):
            if not _kill_session(pid):
                break
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def read_state(path: str) -> dict[str, list[str]]:
    """The words of each line, by the first one; empty where nothing was started yet."""
    try:
        lines = procfs.read_text(path).splitlines()
    except FileNotFoundError:
        return {}
    return {words[0]: words[1:] for line in lines if (words := line.split(" "))}


def _kill_session(leader: int) -> bool:
    """Whether there was anything to kill in the session of a dead leader that is not reaped."""
    found = False
    for pid in procfs.in_session(leader):
        if pid == leader:
            continue
        try:
            descriptor = os.pidfd_open(pid)
            if os.getsid(pid) == leader:  # it is still that process
                signal.pidfd_send_signal(descriptor, signal.SIGKILL)
                found = True
            os.close(descriptor)
        except OSError:
            pass  # it has ended, or is not ours to kill
    return found


def _runs_without_keeper() -> bool:
    """Whether a service that was started before has lost its keeper, but not its life."""
    state = read_state(STATE)
    if state.get("boot") != [procfs.boot_id()]:
        return False
    pid, started = map(int, state["service"])
    return procfs.start_time(pid) == started


def _leave(fault: str) -> None:
    """Tell the module what came of it; the keeper goes on alone."""
    sys.stderr.write(fault)
    sys.exit(NOT_EXECUTED if fault else 0)


def _kept() -> "Kept":
    """How what is here is kept."""
    if os.path.exists(LIMITS):
        from haptera.keeping import limits_keeper  # as below

        return limits_keeper.KeptWithinLimits(read_state(LIMITS), KeptService())
    if not os.path.exists(LEASE):
        return KeptService()
    # Not above: it costs memory that services need not have.
    from haptera.keeping import job_keeper

    return job_keeper.KeptJob(read_state(BOUNDS), OUTPUT)


def _keep(digest: str, command: list[str], report: int) -> None:
    os.setsid()
    kept = _kept()
    kept.prepare()
    _rename(f"keeper {os.path.basename(os.getcwd())}")
    for name in (STATUS, STOP, EXCEEDED):
        if os.path.exists(name):
            os.unlink(name)
    starts = int(read_state(STATE).get("starts", ["0"])[0]) + 1
    os.environ["HAPTERA_STARTS"] = str(starts)
    pid, gate, fault = _fork_service(command, kept)
    service, keeper = (f"{one} {procfs.start_time(one)}" for one in (pid, os.getpid()))
    # Before the service does anything: one that nobody has written down must not run.
    who = f"service {service}\nkeeper {keeper}\ndigest {digest}\nstarts {starts}\n"
    _write(STATE, f"boot {procfs.boot_id()}\n{who}")
    os.write(gate, b"go")
    os.close(gate)
    os.write(report, _read_all(fault).encode())
    os.close(report)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    os.close(nowhere)
    _write(STATUS, f"{kept.await_end(pid)}\n")


def _fork_service(command: list[str], kept: "Kept") -> tuple[int, int, int]:
    """A process that becomes the service once it reads from its gate: its pid, gate and fault.

    Where the keeper dies first, the gate closes, and nothing begins.
    """
    gate, opener = os.pipe()
    fault, faulty = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(opener)
        _become(command, kept, gate, faulty)
    os.close(gate)
    os.close(faulty)
    return pid, opener, fault


def _become(command: list[str], kept: "Kept", gate: int, fault: int) -> None:
    try:
        os.setsid()
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # the interpreter ignores it
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        kept.enter()
        if os.read(gate, 2) == b"go":
            os.execvp(command[0], command)
    except OSError as error:
        said = f"{command[0]}: {error.strerror}"
        os.write(fault, said.encode())
        os.write(2, f"{said}\n".encode())  # in its own output, too, where people look for it
    finally:
        os._exit(NOT_EXECUTED)


def _write(path: str, text: str) -> None:
    draft = f"{path}.new"
    procfs.write_text(draft, text)
    os.replace(draft, path)


def _rename(name: str) -> None:
    """Show this name in ps, where all keepers look alike otherwise."""
    with open("/proc/self/comm", "wb") as file:
        file.write(name.encode()[:COMM_BYTES_MAX])


def _read_all(descriptor: int) -> str:
    with os.fdopen(descriptor, "rb") as file:
        return file.read().decode(errors="replace")
