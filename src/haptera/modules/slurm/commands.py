"""Slurm's own commands, as people type them: no shell, and each has a limit of time."""

import asyncio
import os
import pwd
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from haptera.sdk import HapteraError
from haptera.sdk.owned_files import owned

ANSWER_BYTES_MAX: Final = 256 << 20
WORDS_MAX: Final = 400
PATH: Final = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"

FindUser = Callable[[], pwd.struct_passwd | None]


def nobody_else() -> None:
    """They run as who asks."""


class SlurmAwayError(HapteraError):
    """Slurm does not answer; what it was asked may have been done."""


class SlurmMissingError(SlurmAwayError):
    """One of its commands is not installed."""


class SlurmRefusedError(HapteraError):
    """Slurm says no, in its own words."""


@dataclass(frozen=True, slots=True)
class SlurmCommands:
    """Asks one Slurm; `conf` is its configuration, where it is not at its usual place.

    It names plug-ins that Slurm's commands load, so nobody else may have changed it. They run as
    `user` then is, and wait for its controller by themselves, for longer than `within_s` allows.
    """

    conf: str | None
    within_s: float
    user: FindUser = nobody_else

    async def run(self, *command: str, given: Path | None = None) -> bytes:
        """What it prints; it may read the file that is `given`.

        Raises:
            HapteraError: its configuration is not there, or others may change it.
            SlurmAwayError: it cannot be run, or takes too long.
            SlurmMissingError: it is not installed.
            SlurmRefusedError: it failed, with its own words.
        """
        name = command[0]
        if self.conf is not None:
            owned(self.conf)
        process = await self._started(command, Path(os.devnull) if given is None else given)
        try:
            async with asyncio.timeout(self.within_s):
                out, wrong = await process.communicate()
        except TimeoutError as error:
            what = f"{name} does not answer within {self.within_s:g} s"
            raise SlurmAwayError(what, do="check whether slurmctld runs") from error
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode != 0:
            text = " ".join(wrong.decode(errors="replace").split())[:WORDS_MAX]
            raise SlurmRefusedError(f"{name}: {text}")
        if len(out) > ANSWER_BYTES_MAX:
            raise SlurmAwayError(f"{name} printed more than {ANSWER_BYTES_MAX} bytes")
        return out

    async def _started(self, command: tuple[str, ...], given: Path) -> asyncio.subprocess.Process:
        user = self._as_user()
        try:
            with given.open("rb") as file:
                return await asyncio.create_subprocess_exec(
                    *command,
                    stdin=file,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=asyncio.subprocess.PIPE,
                    env=self._environment(),
                    **user,
                )
        except OSError as error:
            do = "install slurm-client on the parent"
            raise SlurmMissingError(f"{command[0]}: {error.strerror}", do=do) from error

    def _as_user(self) -> dict[str, Any]:
        try:
            user = self.user()
        except OSError as error:
            do = "create the user, or have the backend name another one"
            raise SlurmAwayError(str(error), do=do) from error
        if user is None or user.pw_uid == os.geteuid():
            return {}
        groups = os.getgrouplist(user.pw_name, user.pw_gid)
        return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": groups}

    def _environment(self) -> dict[str, str]:
        said = {"PATH": os.environ.get("PATH", PATH), "LC_ALL": "C.UTF-8"}
        return said if self.conf is None else {**said, "SLURM_CONF": self.conf}
