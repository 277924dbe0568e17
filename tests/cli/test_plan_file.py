"""Plans in files: what is read is what was saved, and whatever else a file has is refused."""

from pathlib import Path
from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from haptera.cli.input.plan_file import PlanFile, parse_plan, read_plan, save_plan
from haptera.model.errors import Code, HapteraError
from haptera.rest.schemas import SiteBody, SiteFile
from tests.core.test_preview import cluster, previewed

SITE = SiteBody([SiteFile("site.yaml", "cluster: a\n")], {"python": "/usr/bin/python3"})


def plan_file(random: Random) -> PlanFile:
    table, changes = cluster(random, 3)
    plan = previewed(table, *changes)
    if random.random() < 1 / 2:
        return PlanFile(plan, 1, revert=random.randrange(1, 99))
    return PlanFile(plan, 1, site=SITE, take=random.random() < 1 / 2)


@given(st.randoms(use_true_random=False))
def test_what_is_read_is_what_was_saved(random: Random) -> None:
    file = plan_file(random)
    assert parse_plan(msgspec.json.encode(file)) == file


def test_a_file_is_saved_in_place_of_another(tmp_path: Path) -> None:
    path = tmp_path / "a.plan"
    path.write_text("something longer than any plan" * 10_000)
    file = plan_file(Random(2))
    save_plan(path, file)
    assert read_plan(path) == file


@given(st.binary() | st.text().map(str.encode) | st.just(b"[" * 100_000))
def test_what_is_no_plan_is_refused(text: bytes) -> None:
    with pytest.raises(HapteraError, match="is not a plan"):
        parse_plan(text)


@given(st.randoms(use_true_random=False), st.data())
def test_a_plan_with_a_byte_altered_is_refused_or_says_the_same(
    random: Random, data: st.DataObject
) -> None:
    file = plan_file(random)
    text = bytearray(msgspec.json.encode(file))
    text[data.draw(st.integers(0, len(text) - 1))] = data.draw(st.integers(0, 255))
    try:
        read = parse_plan(bytes(text))
    except HapteraError:
        return
    assert read.plan.digest == file.plan.digest


@pytest.mark.parametrize(
    "part", [{"site": None, "revert": None}, {"revert": 3}, {"haptera_plan": 2}, {"more": 1}]
)
def test_what_fits_no_plan_is_refused(part: dict[str, object]) -> None:
    file = msgspec.structs.replace(plan_file(Random(2)), site=SITE, revert=None)
    told = msgspec.to_builtins(file) | part
    with pytest.raises(HapteraError, match="is not a plan"):
        parse_plan(msgspec.json.encode(told))


def test_what_cannot_be_read_or_written_is_told_with_its_place(tmp_path: Path) -> None:
    with pytest.raises(HapteraError, match="cannot be read: No such file or directory"):
        read_plan(tmp_path / "none.plan")
    with pytest.raises(HapteraError, match="cannot be written: Is a directory") as refused:
        save_plan(tmp_path, plan_file(Random(2)))
    assert refused.value.code == Code.FILE_UNWRITABLE
