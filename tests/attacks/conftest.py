"""A real parent with two enrolled nodes, whose keys and sockets are in the attacker's hands."""

from collections.abc import Iterator

import pytest

from tests.attacks.rig import SECOND_HOST, Attacked
from tests.faults.rig import enrolled, parent
from tests.faults.seen import healed
from tests.kills.rig import Lab


@pytest.fixture(scope="package")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attacked]:
    with parent(tmp_path_factory.mktemp("attacked")) as one:
        one.desire("node:n2", power="on", agent="up")
        with enrolled(one) as first, enrolled(one, "n2", SECOND_HOST) as second:
            yield Attacked(one, first, second)


@pytest.fixture(scope="package")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    one = Lab(tmp_path_factory.mktemp("lab"))
    with one.running():
        healed(one)
        yield one
        healed(one)
