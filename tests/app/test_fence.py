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


@pytest.mark.parametrize(
    "content", [b"0" * 30, b"7", b"-7\n", b"1_0", b"x" * 32, b"\xff", b"\0" * 32]
)
def test_a_damaged_fence_lets_nobody_pass(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "epoch").write_bytes(content)

    refused = pytest.raises(ValueError, match="does not hold an epoch")
    with refused, Fence(tmp_path / "epoch").passed(9):
        pytest.fail("it acted")


def test_a_fence_that_is_emptied_does_not_go_back_for_who_has_passed(tmp_path: Path) -> None:
    fence = Fence(tmp_path / "epoch")
    with fence.passed(7):
        pass
    (tmp_path / "epoch").write_bytes(b"")

    with pytest.raises(StaleEpochError), fence.passed(6):
        pytest.fail("it acted")
