"""The page on the life of a roll: its picture is drawn of what the demo's own roll was told as.

After `make demo DEMO=roll ARGS=--once`, as root: python -m tests.docs.test_roll_page
"""

import shutil

import msgspec

from haptera.cli.output.drawing.roll_picture import roll_picture
from haptera.controllers.roll.timeline import RollPhase, RollTimeline
from tests.docs.pages import ROOT

PAGE = ROOT / "docs/explain/roll.md"
PICTURE = ROOT / "docs/explain/roll.svg"
RECORD = ROOT / "tests/docs/roll.json"
RUN = ROOT / ".haptera/demos/roll/.haptera/roll.json"


def drawn() -> str:
    return roll_picture(msgspec.json.decode(RECORD.read_bytes(), type=RollTimeline))


def test_the_picture_is_drawn_of_the_record() -> None:
    assert PICTURE.read_text(encoding="utf-8") == drawn(), "python -m tests.docs.test_roll_page"
    assert f"]({PICTURE.name})" in PAGE.read_text(encoding="utf-8")


def test_each_phase_is_explained() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert [one for one in RollPhase if f"\n| `{one}` | " not in page] == []


if __name__ == "__main__":
    if RUN.exists():
        shutil.copyfile(RUN, RECORD)
    PICTURE.write_text(drawn(), encoding="utf-8")
