"""Devices of the Container Device Interface: by what files say of them."""

import json
import os
from pathlib import Path

import pytest

from haptera.daemon.queue.cdi import Edits, edits

NODE = {"path": "/dev/gpu0", "hostPath": "/dev/null"}
LIBRARY = {"hostPath": "/usr/lib/libgpu.so", "containerPath": "/lib/libgpu.so"}
SPEC = {
    "cdiVersion": "0.6.0",
    "kind": "vendor.com/gpu",
    "containerEdits": {
        "env": ["GPU=yes"],
        "mounts": [LIBRARY | {"options": ["ro", "suid", "dev"]}],
    },
    "devices": [
        {"name": "0", "containerEdits": {"deviceNodes": [NODE], "hooks": [{"hookName": "x"}]}},
        {"name": "1", "containerEdits": {"deviceNodes": [{"path": "/dev/gpu1"}]}},
    ],
}


def folders(place: Path, *specs: object) -> list[Path]:
    found = []
    for number, spec in enumerate(specs):
        folder = place / str(number)
        folder.mkdir()
        text = spec if isinstance(spec, str) else json.dumps(spec)
        (folder / "vendor.json").write_text(text)
        found.append(folder)
    return found


def test_a_device_brings_its_file_and_once_what_all_of_its_kind_bring(tmp_path: Path) -> None:
    found = edits(["vendor.com/gpu=0", "vendor.com/gpu=1"], folders(tmp_path, SPEC))
    assert [one for part in found for one in part.env] == ["GPU=yes"]
    binds = [one for part in found for one in part.binds]
    assert [(one["source"], one["destination"]) for one in binds] == [
        ("/usr/lib/libgpu.so", "/lib/libgpu.so"),
        ("/dev/null", "/dev/gpu0"),
        ("/dev/gpu1", "/dev/gpu1"),
    ]


def test_a_mount_gets_no_more_rights_than_any_other(tmp_path: Path) -> None:
    [first, _] = edits(["vendor.com/gpu=0"], folders(tmp_path, SPEC))
    [library] = first.binds
    assert library["options"] == ["bind", "rbind", "ro", "nosuid", "nodev"]


def test_of_two_that_are_alike_the_later_folder_counts(tmp_path: Path) -> None:
    another = {"kind": "vendor.com/gpu", "devices": [{"name": "0"}]}
    [first, _] = edits(["vendor.com/gpu=0"], folders(tmp_path, SPEC, another))
    assert first.env == ()


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "text", ["{", "[]", '{"kind": []}', '{"kind": "a\\u0000b"}', "\0" * 9, '{"x":' + "[" * 200_000]
)
def test_a_file_that_says_nothing_hides_no_other(tmp_path: Path, text: str) -> None:
    known = folders(tmp_path, SPEC, text)
    # Nor does what would have to be waited for.
    os.mkfifo(known[1] / "another.json")
    assert edits(["vendor.com/gpu=1"], known)
    with pytest.raises(OSError, match=r"no device vendor\.com/gpu=2 is known on this node") as told:
        edits(["vendor.com/gpu=2"], known)
    assert str(known[1] / "vendor.json") in str(told.value)


ODD = [
    ("containerEdits", 7, "containerEdits is a number, not an object"),
    ("containerEdits", {"env": {"A": "b"}}, "containerEdits.env is an object, not a text"),
    ("containerEdits", {"mounts": [{"hostPath": "/x"}]}, "containerPath is absent, not there"),
    ("containerEdits", {"deviceNodes": [[]]}, "deviceNodes[0] is a list, not an object"),
    ("containerEdits", {"env": ["A=a\0b"]}, "env[0] is a text with NUL, not a text"),
    ("containerEdits", {"deviceNodes": [{"path": "/\0"}]}, "path is a text with NUL, not a text"),
]


@pytest.mark.parametrize(("member", "value", "says"), ODD)
def test_a_device_that_is_described_oddly_says_so_and_hides_no_other(
    tmp_path: Path, member: str, value: object, says: str
) -> None:
    odd = {**SPEC, "devices": [{"name": "0", member: value}, {"name": []}, None, {"name": 1}]}
    known = folders(tmp_path, odd)
    assert [one.env for one in edits(["vendor.com/gpu=1"], known)] == [("GPU=yes",), ()]
    with pytest.raises(OSError, match=r"vendor\.json: devices\[0\]") as told:
        edits(["vendor.com/gpu=0"], known)
    assert says in str(told.value)


def test_what_is_null_is_not_there_and_a_byte_order_mark_is_no_content(tmp_path: Path) -> None:
    nulls = {**SPEC, "containerEdits": None, "devices": [{"name": "0", "containerEdits": None}]}
    [folder] = folders(tmp_path, "\ufeff" + json.dumps(nulls))
    (folder / "none.json").write_text('{"kind": "vendor.com/none", "devices": null}')
    assert edits(["vendor.com/gpu=0"], [folder]) == [Edits(), Edits()]
