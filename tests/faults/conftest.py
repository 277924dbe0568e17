"""One real parent and one real lab serve all tests of this folder that name them."""

from collections.abc import Iterator

import pytest

from tests.faults.rig import Child, Parent, enrolled, parent
from tests.faults.seen import healed
from tests.kills.rig import Lab


@pytest.fixture(scope="package")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Parent]:
    with parent(tmp_path_factory.mktemp("faults")) as one:
        yield one


@pytest.fixture(scope="package")
def joined(serving: Parent) -> Iterator[Child]:
    with enrolled(serving) as one:
        yield one


@pytest.fixture
def served(serving: Parent) -> Parent:
    """A parent of four nodes whose BMCs are in the test's hands, declared as at its start."""
    status, answer = serving.apply(serving.site(*serving.bmcs))
    assert status == 200, answer
    return serving


@pytest.fixture
def child(served: Parent, joined: Child) -> Child:
    """Its node n1, which is the test itself."""
    served.hears(joined)
    return joined


@pytest.fixture(scope="package")
def running_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    lab = Lab(tmp_path_factory.mktemp("lab"))
    with lab.running():
        yield lab


@pytest.fixture
def lab(running_lab: Lab) -> Iterator[Lab]:
    """Six nodes with a web server each, all as desired, before the test and after it."""
    healed(running_lab)
    yield running_lab
    healed(running_lab)
