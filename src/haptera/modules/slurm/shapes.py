"""What Slurm's commands print as JSON, of each version since 21.08: read by shape, not by number.

Until 22.05 a node has one state and a list of flags; since 23.02 one list has both, sinfo prints
rows of its table, and numbers that may be unset are objects, as exit codes are.
"""

from collections.abc import Iterator
from dataclasses import replace

import msgspec

from haptera.modules.slurm.commands import SlurmAwayError
from haptera.modules.slurm.standing import SlurmStanding, standing
from haptera.sdk import Foreign, ForeignError, read_foreign

# The state that decides, where a job has several: it has places until it is complete.
COMPLETING = "COMPLETING"
FLAGS_FIRST = (COMPLETING, "REVOKED")
JOB_STATES = frozenset(
    (
        *("PENDING", "RUNNING", "SUSPENDED", "COMPLETED", "CANCELLED", "FAILED", "TIMEOUT"),
        *("NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "DEADLINE", "OUT_OF_MEMORY"),
    )
)


class SlurmNode(msgspec.Struct, frozen=True):
    """One node: its states, which are its base state and all flags; lists are joined by commas."""

    name: str
    states: frozenset[str]
    reason: str = ""
    has_jobs: bool = False
    features: str = ""
    active_features: str = ""
    partitions: tuple[str, ...] = ()

    @property
    def standing(self) -> SlurmStanding:
        return standing(self.states, self.reason, has_jobs=self.has_jobs)


class SlurmJob(msgspec.Struct, frozen=True):
    """One job; the exit code is a wait status. Of an array, the tasks that wait are one."""

    job_id: int
    name: str
    job_state: str
    state_reason: str = ""
    exit_code: int | None = None
    nodes: str = ""
    partition: str = ""
    features: str = ""
    node_count: int = 1


def nodes_in(command: str, content: bytes) -> dict[str, SlurmNode]:
    """All nodes, by name, from what `scontrol show nodes` or `sinfo` printed.

    Raises:
        ForeignError: it has a shape that is not known.
        SlurmAwayError: its controller does not answer.
    """
    told = _told(command, content)
    # Without its controller sinfo succeeds, with an error and without nodes.
    if told["errors"].items():
        raise SlurmAwayError("slurmctld does not answer", do="check whether it runs")
    found: dict[str, SlurmNode] = {}
    rows = (_node(one) for one in told["nodes"].items())
    if told["nodes"].value is None:
        rows = (node for row in told["sinfo"].need().items() for node in _row(row))
    for one in rows:
        # sinfo has a row for each partition of a node.
        before = found.get(one.name)
        partitions = () if before is None else before.partitions
        found[one.name] = msgspec.structs.replace(one, partitions=partitions + one.partitions)
    if not found:
        raise SlurmAwayError("slurmctld does not answer", do="check whether it runs")
    return found


def jobs_in(command: str, content: bytes) -> list[SlurmJob]:
    """All jobs that `squeue` printed.

    Raises:
        ForeignError: it has a shape that is not known.
        SlurmAwayError: its controller does not answer.
    """
    told = _told(command, content)
    if told["errors"].items():
        raise SlurmAwayError("slurmctld does not answer", do="check whether it runs")
    return [_job(one) for one in told["jobs"].need().items()]


def _told(command: str, content: bytes) -> Foreign:
    told = read_foreign(command, content)
    try:
        meta = told["meta"]
        release = meta["Slurm"]["release"].text() or meta["slurm"]["release"].text()
        version = [(meta["slurm"]["version"])[one].text() for one in ("major", "minor", "micro")]
        named = release or ".".join(one for one in version if one)
    except ForeignError:
        named = ""
    return replace(told, program=f"{command} of Slurm {named or 'of an unknown version'}")


def _node(one: Foreign) -> SlurmNode:
    return SlurmNode(
        one["name"].need().text() or "",
        _states(one["state"].need(), one["state_flags"]),
        _reason(one["reason"]),
        bool(_number(one["alloc_cpus"])),
        ",".join(one["features"].words(",")),
        ",".join(one["active_features"].words(",")),
        one["partitions"].words(","),
    )


def _row(one: Foreign) -> Iterator[SlurmNode]:
    """A row of sinfo's table: nodes that are alike."""
    for name in one["nodes"]["nodes"].need().words(","):
        yield SlurmNode(
            name,
            _states(one["node"]["state"].need(), one["node"]["state_flags"]),
            _reason(one["reason"]),
            bool(_number(one["cpus"]["allocated"])),
            ",".join(one["features"]["total"].words(",")),
            ",".join(one["features"]["active"].words(",")),
            one["partition"]["name"].words(","),
        )


def _reason(told: Foreign) -> str:
    return (told["description"] if isinstance(told.value, dict) else told).text() or ""


def _states(*told: Foreign) -> frozenset[str]:
    return frozenset(one.upper() for each in told for one in each.words("+"))


def _job(one: Foreign) -> SlurmJob:
    return SlurmJob(
        _number(one["job_id"].need()) or 0,
        one["name"].text() or "",
        _job_state(one["job_state"].need()),
        one["state_reason"].text() or "",
        _wait_status(one["exit_code"]),
        one["nodes"].text() or "",
        one["partition"].text() or "",
        one["features"].text() or "",
        _number(one["node_count"]) or 1,
    )


def _job_state(told: Foreign) -> str:
    states = told.words()
    first = [one for one in FLAGS_FIRST if one in states]
    known = [one for one in states if one in JOB_STATES]
    return next(iter([*first, *known, *states]), "")


def _number(told: Foreign) -> int | None:
    """A number, or what says whether there is one: `{"set":true,"infinite":false,"number":5}`."""
    if not isinstance(told.value, dict):
        return told.number()
    if told["set"].value is False or told["infinite"].value is True:
        return None
    return told["number"].number()


def _wait_status(told: Foreign) -> int | None:
    """The status of a process as wait(2) has it."""
    if not isinstance(told.value, dict):
        return told.number()
    signal = _number(told["signal"]["id"]) or _number(told["signal"]["signal_id"])
    code = _number(told["return_code"])
    return signal if signal else None if code is None else code << 8
