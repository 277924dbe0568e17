"""How long a drain lasts, over processes: files of a real folder, and a wall clock."""

import os
from pathlib import Path

from haptera.model.parts import DRAIN_REST_S, DRAIN_S_MAX
from haptera.sdk.drains import Drains

DAY_S = 86_400
BEGAN_S = 1_000 * DAY_S


def drains_at(folder: Path, wall_s: float) -> Drains:
    """What a process of the module that runs then makes of the folder."""
    return Drains(folder, lambda: wall_s)


def begun(folder: Path, node: str, wall_s: float) -> None:
    """The node has been drained since then."""
    drains_at(folder, wall_s).lasts_ms(node)
    os.utime(folder / "draining" / node, (0, wall_s))


def test_a_drain_begins_when_it_is_first_asked_for_and_each_nodes_is_its_own(
    tmp_path: Path,
) -> None:
    drains = drains_at(tmp_path, BEGAN_S)
    assert drains.lasts_ms("n1") == 0  # not begun in the future, either
    os.utime(tmp_path / "draining" / "n1", (0, BEGAN_S - 3))
    assert (drains.lasts_ms("n1"), drains.lasts_ms("n2")) == (3_000, 0)


def test_what_another_process_began_to_drain_is_told_since_then(tmp_path: Path) -> None:
    begun(tmp_path, "n1", BEGAN_S)
    assert drains_at(tmp_path, BEGAN_S + DAY_S).lasts_ms("n1") == DAY_S * 1_000


def test_a_drain_that_is_over_begins_anew(tmp_path: Path) -> None:
    for over in (Drains.held, Drains.released):
        drains = drains_at(tmp_path, BEGAN_S + DRAIN_S_MAX - 1)
        begun(tmp_path, "n1", BEGAN_S)
        over(drains, "n1")
        over(drains, "n1")
        assert (drains.rests("n1"), drains.lasts_ms("n1")) == (False, 0)


def test_a_node_that_was_drained_for_a_week_and_is_held_at_last_does_not_rest(
    tmp_path: Path,
) -> None:
    begun(tmp_path, "n1", BEGAN_S)
    drains = drains_at(tmp_path, BEGAN_S + DRAIN_S_MAX)
    drains.held("n1")
    drains.released("n1")
    assert not drains.rests("n1")


def test_a_node_that_was_drained_for_a_week_without_success_rests_for_an_hour_over_processes(
    tmp_path: Path,
) -> None:
    let_go_s = BEGAN_S + DRAIN_S_MAX
    begun(tmp_path, "n1", BEGAN_S)
    drains_at(tmp_path, let_go_s).released("n1")
    os.utime(tmp_path / "undrained" / "n1", (0, let_go_s))

    late = drains_at(tmp_path, let_go_s + DRAIN_REST_S - 1)
    assert (late.rests("n1"), late.lasts_ms("n1")) == (True, DRAIN_S_MAX * 1_000)
    late.released("n1")  # once more; that makes its rest no longer
    assert not late.rests("n2")
    over = drains_at(tmp_path, let_go_s + DRAIN_REST_S)
    assert (over.rests("n1"), over.lasts_ms("n1")) == (False, 0)


def test_a_clock_that_was_set_back_makes_no_rest_longer(tmp_path: Path) -> None:
    begun(tmp_path, "n1", BEGAN_S)
    drains_at(tmp_path, BEGAN_S + DRAIN_S_MAX).released("n1")
    os.utime(tmp_path / "undrained" / "n1", (0, BEGAN_S))
    assert not drains_at(tmp_path, BEGAN_S - DAY_S).rests("n1")


def test_where_the_disk_keeps_nothing_a_drain_goes_on(tmp_path: Path) -> None:
    drains = drains_at(tmp_path / "not" / "there", BEGAN_S)
    assert drains.lasts_ms("n1") == 0
    drains.held("n1")
    drains.released("n1")
    assert not drains.rests("n1")
