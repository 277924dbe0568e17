"""As whom Slurm's commands run, and by which configuration: it may have them load plug-ins."""

import asyncio
import os
import pwd
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from haptera.daemon.queue.bounds import job_user, unprivileged
from haptera.modules.slurm.commands import SlurmAwayError, SlurmCommands
from haptera.sdk import HapteraError

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
    program.write_text('#!/bin/sh\necho "$(id -u) $(id -G) $SLURM_CONF"\ncat\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    conf = folder / "slurm.conf"
    conf.touch(mode=0o644)
    return conf


def test_a_configuration_that_others_may_change_is_not_used(conf: Path) -> None:
    asyncio.run(SlurmCommands(str(conf), 10).run("squeue"))
    conf.chmod(0o666)
    with pytest.raises(HapteraError, match="others than its owner may write"):
        asyncio.run(SlurmCommands(str(conf), 10).run("squeue"))


@ROOT
def test_a_parent_that_is_root_asks_as_one_without_rights(conf: Path, tmp_path: Path) -> None:
    script = tmp_path / "hidden/script"
    script.parent.mkdir(mode=0o700)
    script.write_text("the script")
    commands = SlurmCommands(str(conf), 10, lambda: job_user(None))
    told = asyncio.run(commands.run("squeue", given=script)).decode()
    account = unprivileged()
    groups = " ".join(map(str, os.getgrouplist(account.pw_name, account.pw_gid)))
    assert told.split("\n") == [f"{account.pw_uid} {groups} {conf}", "the script"]
    assert account.pw_uid != 0


def test_a_backend_says_as_whom_its_jobs_run(conf: Path) -> None:
    me = pwd.getpwuid(os.geteuid()).pw_name
    told = asyncio.run(SlurmCommands(str(conf), 10, lambda: job_user(me)).run("squeue"))
    assert told.decode().startswith(f"{os.geteuid()} ")
    with pytest.raises(SlurmAwayError, match="there is no user nobody_of_that_name"):
        asyncio.run(SlurmCommands(None, 10, lambda: job_user("nobody_of_that_name")).run("squeue"))
