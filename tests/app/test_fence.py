"""What is acted on refuses older epochs, whatever those who act believe."""

from pathlib import Path

import pytest

from haptera.app import Fence, StaleEpochError


def test_a_later_epoch_shuts_earlier_ones_out(tmp_path: Path) -> None:
    fence, acted = Fence(tmp_path / "epoch"), []
    for epoch in (3, 3, 4):
        with fence.passed(epoch):
            acted.append(epoch)

    with pytest.raises(StaleEpochError) as refused, fence.passed(3):
        acted.append(3)

    assert acted == [3, 3, 4]
    assert (refused.value.epoch, refused.value.seen) == (3, 4)


def test_what_passed_is_kept_by_the_file(tmp_path: Path) -> None:
    with Fence(tmp_path / "epoch").passed(7):
        pass

    with pytest.raises(StaleEpochError), Fence(tmp_path / "epoch").passed(6):
        pytest.fail("it acted")
