"""Slurm's scripts of contrib in an environment that a hostile user has chosen."""

import os
import subprocess
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="a /run of its own needs root"),
]
CONTRIB = Path(__file__).resolve().parents[2] / "contrib/slurm"
# In a /run of its own, with programs that say that they were called. After each script: its status,
# and whether the gate is held; then what lies where nothing of it should.
ONE_JOB = """
mount -t tmpfs none /run
gate=/run/haptera/jobs/open/gate
mkdir -p "${gate%/*}" /run/own
: >"$gate"
for one in cat date flock kill mkdir rm scontrol setsid sh sleep xargs haptera rc; do
    printf '#!/bin/sh\\necho "$0" >>/run/planted\\n' >/run/own/$one
done
chmod 755 /run/own/*
umask 0
held() { if flock -n "$gate" true; then echo free; else echo held; fi; }
env -i "$@" "$0/prolog"
echo $?
held
find /run/haptera-jobs -perm /022
env -i "$@" "$0/epilog"
echo $?
flock -w 60 "$gate" true && held
rm -r /run/own /run/haptera
rmdir /run/haptera-jobs
cd /run && find . -mindepth 1
"""
HOSTILE = {
    "PATH": "/run/own",
    "IFS": "/0123456789-",
    "ENV": "/run/own/rc",
    "BASH_ENV": "/run/own/rc",
    "LD_PRELOAD": "/run/own/none.so",
    "CDPATH": "/run/own",
    "PS4": "$(/run/own/rc)",
    "SHELLOPTS": "xtrace",
    "SLURM_JOB_NAME": "a\n; /run/own/rc; `/run/own/rc` $(/run/own/rc)",
    "SLURM_JOB_USER": "-rf /",
    "SLURM_NODELIST": "*\n../../run",
    **dict.fromkeys(("gate", "holders", "holder", "job", "pid", "tries"), "/run/own/rc"),
}


def said(job: str) -> list[str]:
    variables = [f"{name}={value}" for name, value in {**HOSTILE, "SLURM_JOB_ID": job}.items()]
    own = ["unshare", "--mount", "--propagation", "private", "sh", "-c", ONE_JOB]
    ran = subprocess.run([*own, CONTRIB, *variables], capture_output=True, text=True, timeout=120)
    return ran.stdout.split()


def test_whatever_the_environment_holds_a_job_holds_its_gate_until_its_epilog() -> None:
    assert said("7") == ["0", "held", "0", "free"]


@pytest.mark.parametrize(
    "job",
    ["", "../own", "/run/x", "7/../../x", "7\n8", "7;/run/own/rc", "$(/run/own/rc)", "-1", "*"],
)
def test_what_is_no_number_of_a_job_begins_nothing_and_ends_nothing(job: str) -> None:
    assert said(job) == ["1", "free", "1", "free"]


# As the system's init, whose output is a file that others write to as well.
FORGOTTEN = """
mount -t tmpfs none /run
mount -t tmpfs none /usr/local/bin
mkdir -p /run/haptera/jobs/open
: >/run/haptera/jobs/open/gate
printf '#!/bin/sh\\necho "slurm_load_jobs error: Invalid job id specified"\\nexit 1\\n' \
    >/usr/local/bin/scontrol
chmod 755 /usr/local/bin/scontrol
echo what was there >&2
HAPTERA_HOLDER_EVERY=0.1 SLURM_JOB_ID=7 "$0/prolog" || exit
flock -w 60 /run/haptera/jobs/open/gate true
"""


def test_the_line_about_a_forgotten_job_stands_below_what_the_inits_output_has(
    tmp_path: Path,
) -> None:
    own = ["unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--mount-proc"]
    with (tmp_path / "console").open("w") as console:
        ran = subprocess.run([*own, "sh", "-c", FORGOTTEN, CONTRIB], stderr=console, timeout=120)
    assert (ran.returncode, (tmp_path / "console").read_text()) == (
        0,
        "what was there\n"
        "haptera: job 7 has ended without its epilog, and lets go of the gate:"
        " Slurm does not know it any more\n",
    )
