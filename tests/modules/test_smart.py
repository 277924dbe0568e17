"""The health of disks, by answers in the shapes of `smartctl`, and by nonsense."""

import asyncio
from pathlib import Path

import pytest

from haptera.modules.kernel_tree import KernelTree
from haptera.modules.sensors.module import module
from haptera.modules.sensors.smart import DISKS_MAX, smart
from tests.modules.test_sensors import numbers_of

ATA = """{"device":{"name":"/dev/sda","type":"sat"},"smart_status":{"passed":true},
"ata_smart_attributes":{"revision":16,"table":[{"id":5,"name":"Reallocated_Sector_Ct","value":100,
"raw":{"value":12,"string":"12"}},{"id":197,"raw":{"value":3,"string":"3"}},{"id":194,"raw":
{"value":171798691876,"string":"36"}}]},"temperature":{"current":36}}"""
FAILED = '{"smart_status":{"passed":false},"ata_smart_attributes":{"table":[]}}'
NVME = """{"smart_status":{"passed":true,"nvme":{"value":0}},"nvme_smart_health_information_log":
{"critical_warning":0,"temperature":41,"percentage_used":104,"media_errors":2,
"data_units_written":340282366920938463463374607431768211455},"temperature":{"current":41}}"""
SCSI = '{"smart_status":{"passed":true},"scsi_grown_defect_list":7,"temperature":{"current":29}}'
ASLEEP = '{"smartctl":{"exit_status":2,"messages":[{"string":"Device is in STANDBY mode"}]}}'
# Behind a controller that passes no commands on.
OPAQUE = '{"smartctl":{"exit_status":4},"smart_status":null,"ata_smart_attributes":"none"}'


# One member of another shape each, and what is left of it all.
ODD = """{"smart_status":{"passed":"PASSED"},"ata_smart_attributes":{"table":[null,{"id":[]},
{"id":5,"raw":{"value":"12"}},{"id":197,"raw":3}]},"temperature":{"current":36.5},
"nvme_smart_health_information_log":{"percentage_used":true,"media_errors":2}}"""


def measured(
    folder: Path, answers: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> tuple[dict[str, float], list[str]]:
    """The numbers of a machine whose disks answer so, and the words of all calls."""
    program, heard = folder / "bin" / "smartctl", folder / "heard"
    program.parent.mkdir()
    for disk, answer in answers.items():
        (folder / "sys/block" / disk).mkdir(parents=True)
        (folder / f"{disk}.json").write_text(answer)
    program.write_text(
        f'#!/bin/sh\necho "$*" >>{heard}\nfor last; do :; done\n'
        f'cat {folder}/"$(basename "$last")".json\nexit 64\n'
    )
    program.chmod(0o700)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    found = asyncio.run(smart(KernelTree(folder)))
    return numbers_of(module, found), heard.read_text().splitlines() if heard.exists() else []


def test_disks_of_each_sort_say_what_they_have_and_nothing_else_is_made_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = {"sda": ATA, "sdb": FAILED, "sdc": SCSI, "nvme0n1": NVME, "sdk": ODD}
    nested = '{"more":' + "[" * 100_000
    wordless = '{"ata_smart_attributes":{"table":[{"id":5,"raw":{}}]}}'
    silent = {
        "sdi": nested,
        "sdj": wordless,
        "sdd": ASLEEP,
        "sde": OPAQUE,
        "sdf": "",
        "sdg": "[]",
        "sdh": '{"smart_status":',
    }
    numbers, heard = measured(tmp_path, {**answers, **silent}, monkeypatch)

    assert numbers == {
        "smart.failing[sda]": 0, "smart.reallocated[sda]": 12, "smart.pending[sda]": 3,
        "smart.temp[sda]": 36, "smart.failing[sdb]": 1, "smart.failing[sdc]": 0,
        "smart.reallocated[sdc]": 7, "smart.temp[sdc]": 29, "smart.failing[nvme0n1]": 0,
        "smart.worn_percent[nvme0n1]": 104, "smart.media_errors[nvme0n1]": 2,
        "smart.temp[nvme0n1]": 41, "smart.reallocated[sdk]": 12, "smart.temp[sdk]": 36.5,
        "smart.media_errors[sdk]": 2,
    }  # fmt: skip
    assert len(heard) == 12
    assert all("--nocheck=standby" in line for line in heard)


def test_loops_and_partitions_are_no_disks_and_of_too_many_the_first_are_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disks = [f"nvme{number}n1" for number in range(DISKS_MAX + 9)]
    answers = dict.fromkeys([*disks, "loop0", "sda1", "dm-0", "sr0"], ASLEEP)
    numbers, heard = measured(tmp_path, answers, monkeypatch)
    assert numbers == {}
    assert [line.rpartition("/")[2] for line in heard] == disks[:DISKS_MAX]


def test_without_smartctl_nothing_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sys/block/sda").mkdir(parents=True)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert asyncio.run(smart(KernelTree(tmp_path))) == {}
