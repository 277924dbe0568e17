"""A Slurm of three programs: its jobs have ended as soon as they are there."""

import os
from pathlib import Path

import pytest

# FOLDER is where its jobs are, CODE how each of them has ended.
PROGRAMS = {
    "sinfo": "echo 'small|4|4096'",
    "sbatch": """for word; do case $word in --job-name=*) name=${word#*=};; esac; done
echo $name >>FOLDER/names; wc -l <FOLDER/names""",
    "squeue": """printf '{"jobs": ['; at=0
[ ! -e FOLDER/names ] || while read -r name; do at=$((at + 1)); [ $at = 1 ] || printf ,
printf '{"job_id": %d, "name": "%s", "job_state": "COMPLETED", "exit_code": %d}' $at $name CODE
done <FOLDER/names; printf ']}'""",
}


def a_slurm(folder: Path, monkeypatch: pytest.MonkeyPatch, code: int = 0) -> None:
    for name, script in PROGRAMS.items():
        text = script.replace("FOLDER", str(folder)).replace("CODE", str(code))
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
