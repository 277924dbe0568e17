"""As whom Slurm's commands run, and by which configuration: it may have them load plug-ins."""

import asyncio
import os
import pwd
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from haptera.daemon.queue.bounds import job_user, unprivileged
from haptera.modules.slurm.commands import (
    SlurmAwayError,
    SlurmCommands,
    SlurmMissingError,
)
from haptera.runtime.processes.confined import confined_words
from haptera.runtime.processes.confinement.confinement import landlock_version
from haptera.sdk import HapteraError
from haptera.sdk.commands import Lesser, no_lesser

ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root runs commands as others")


@pytest.fixture(name="conf")
def _conf(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A configuration, and a `squeue` that tells who it is and by which configuration."""
    with TemporaryDirectory() as folder:  # one that others may be let into
        os.chmod(folder, 0o755)
        yield _slurm(Path(folder), monkeypatch)


def _slurm(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    program = folder / "bin/squeue"
    program.parent.mkdir(mode=0o755)
    program.write_text('#!/bin/sh\necho "$(id -u) $(id -G) $SLURM_CONF"\ncat /dev/stdin\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    conf = folder / "slurm.conf"
    conf.touch(mode=0o644)
    return conf


def as_user(name: str | None, *hidden: Path) -> Lesser:
    return lambda reads: confined_words([*map(str, hidden)], job_user(name), reads)


def test_a_configuration_that_others_may_change_is_not_used(conf: Path) -> None:
    asyncio.run(SlurmCommands(str(conf), 10).run("squeue"))
    conf.chmod(0o666)
    with pytest.raises(HapteraError, match="others than its owner may write"):
        asyncio.run(SlurmCommands(str(conf), 10).run("squeue"))


@ROOT
def test_a_parent_that_is_root_asks_as_one_without_rights(conf: Path, tmp_path: Path) -> None:
    commands = SlurmCommands(str(conf), 10, as_user(None, tmp_path))
    told = asyncio.run(commands.run("squeue", given=b"the script")).decode()
    account = unprivileged()
    groups = " ".join(map(str, os.getgrouplist(account.pw_name, account.pw_gid)))
    assert told.split("\n") == [f"{account.pw_uid} {groups} {conf}", "the script"]
    assert account.pw_uid != 0


def test_a_backend_says_as_whom_its_jobs_run(conf: Path) -> None:
    me = pwd.getpwuid(os.geteuid()).pw_name
    told = asyncio.run(SlurmCommands(str(conf), 10, as_user(me)).run("squeue"))
    assert told.decode().startswith(f"{os.geteuid()} ")
    with pytest.raises(SlurmAwayError, match="there is no user nobody_of_that_name"):
        asyncio.run(SlurmCommands(None, 10, as_user("nobody_of_that_name")).run("squeue"))


HOSTILE = """#!/bin/sh
# What a plug-in that slurm.conf names may do: it runs in the command that has loaded it.
cat KEYS/ca.key 2>&1 | tail -c 20
echo "$(touch KEYS/new 2>/dev/null && echo made)|$(id -u)"
grep -E "NoNewPrivs|CapEff|CapBnd" /proc/self/status
"""


@pytest.mark.skipif(not landlock_version(), reason="this kernel has no Landlock")
@pytest.mark.parametrize("user", [None, pwd.getpwuid(os.geteuid()).pw_name])
def test_what_a_configuration_loads_reaches_nothing_of_the_parents(
    conf: Path, tmp_path: Path, user: str | None
) -> None:
    """As root, too, where an admin has said so; it has no power of root then."""
    keys = tmp_path / "haptera"
    keys.mkdir()
    (keys / "ca.key").write_text("the authority's key")
    keys.chmod(0o777)
    program = conf.parent / "bin/squeue"
    program.write_text(HOSTILE.replace("KEYS", str(keys)))
    told = asyncio.run(SlurmCommands(str(conf), 10, as_user(user, keys)).run("squeue")).decode()
    assert "Permission denied" in told
    assert "authority" not in told
    assert not (keys / "new").exists()
    account = job_user(user)
    uid = os.geteuid() if account is None else account.pw_uid
    assert f"\n|{uid}\n" in told
    assert "NoNewPrivs:\t1" in told
    assert "CapEff:\t0000000000000000" in told


def test_a_command_that_is_not_there_is_missing_however_it_runs(conf: Path) -> None:
    for lesser in (no_lesser, as_user(None)):
        with pytest.raises(SlurmMissingError, match="squeue_of_none: No such file or directory"):
            asyncio.run(SlurmCommands(str(conf), 10, lesser).run("squeue_of_none"))


@ROOT
@pytest.mark.parametrize("closed", ["slurm.conf", "."])
def test_a_configuration_that_its_user_cannot_read_is_named(conf: Path, closed: str) -> None:
    """Slurm's commands would wait for its controller at another place, and say that it is away."""
    place = conf.parent / closed
    place.chmod(0o600 if place.is_file() else 0o700)
    words = f"squeue: user {unprivileged().pw_name} cannot read {conf}, or a folder on the way"
    with pytest.raises(SlurmAwayError, match=words):
        asyncio.run(SlurmCommands(str(conf), 10, as_user(None)).run("squeue"))
