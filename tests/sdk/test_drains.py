"""How long a drain lasts, over processes: files of a real folder, and a wall clock."""

import os
from pathlib import Path

from haptera.sdk.drains import Drains

DAY_S = 86_400
BEGAN_S = 1_000 * DAY_S


def test_a_drain_begins_when_it_is_first_asked_for_and_each_nodes_is_its_own(
    tmp_path: Path,
) -> None:
    drains = Drains(tmp_path / "draining", lambda: BEGAN_S)
    assert drains.lasts_ms("n1") == 0  # not begun in the future, either
    os.utime(tmp_path / "draining" / "n1", (0, BEGAN_S - 3))
    assert (drains.lasts_ms("n1"), drains.lasts_ms("n2")) == (3_000, 0)


def test_what_another_process_began_to_drain_is_told_since_then(tmp_path: Path) -> None:
    Drains(tmp_path, lambda: BEGAN_S).lasts_ms("n1")
    os.utime(tmp_path / "n1", (0, BEGAN_S))
    assert Drains(tmp_path, lambda: BEGAN_S + DAY_S).lasts_ms("n1") == DAY_S * 1_000


def test_a_drain_that_is_over_begins_anew(tmp_path: Path) -> None:
    drains = Drains(tmp_path, lambda: BEGAN_S)
    drains.lasts_ms("n1")
    os.utime(tmp_path / "n1", (0, BEGAN_S - DAY_S))
    drains.over("n1")
    drains.over("n1")
    assert drains.lasts_ms("n1") == 0


def test_where_the_disk_keeps_nothing_a_drain_goes_on(tmp_path: Path) -> None:
    drains = Drains(tmp_path / "not" / "there", lambda: BEGAN_S)
    assert drains.lasts_ms("n1") == 0
    drains.over("n1")
