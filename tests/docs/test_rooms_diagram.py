"""ARCHITECTURE.md draws the rooms as the import contracts have them."""

from tests.docs.rooms_diagram import BLOCK, PAGE, drawn


def test_the_diagram_of_rooms_is_that_of_the_contracts() -> None:
    """Where it is not: python -m tests.docs.rooms_diagram."""
    assert BLOCK.findall(PAGE.read_text(encoding="utf-8")) == [drawn()]


def test_the_diagram_has_each_contract_with_its_lowest_room_last() -> None:
    tables = dict(one.split("\n", 1) for one in drawn().split("\n\n"))

    assert tables["haptera"].splitlines()[-1] == "    model  app"
    assert tables["haptera.core"].splitlines()[-1] == "    state"
