"""One real parent and one real lab serve all tests of this folder that name them."""

from collections.abc import Iterator

import pytest

from tests.faults.rig import Child, Parent, enrolled, parent
from tests.kills.processes import wait_for
from tests.kills.rig import Lab
from tests.kills.writer import Api

HEALED_WITHIN_S = 40


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Parent]:
    """A parent of four nodes whose BMCs are in the test's hands."""
    with parent(tmp_path_factory.mktemp("faults")) as one:
        yield one


@pytest.fixture(scope="session")
def child(served: Parent) -> Iterator[Child]:
    """Its node n1, which is the test itself."""
    with enrolled(served) as one:
        yield one


@pytest.fixture(scope="session")
def running_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    lab = Lab(tmp_path_factory.mktemp("lab"))
    with lab.running():
        yield lab


@pytest.fixture
def lab(running_lab: Lab) -> Iterator[Lab]:
    """Six nodes with a web server each, all as desired, before the test and after it."""
    _await_healed(running_lab)
    yield running_lab
    _await_healed(running_lab)


def _await_healed(lab: Lab) -> None:
    api = Api(lab.root / "client.json")
    try:
        wait_for("all is as desired", lambda: not lab.unhealed(api), HEALED_WITHIN_S)
    finally:
        api.close()
