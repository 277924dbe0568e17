"""One browser for all tests that open a page in it anew; what needs its own starts one."""

import pytest

from tests.web.chromium import browsing


@pytest.fixture(scope="package")
def browser(tmp_path_factory):
    with browsing(tmp_path_factory.mktemp("chromium")) as one:
        yield one
