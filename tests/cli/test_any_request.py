"""Whatever is asked of a real parent: no fault, and each answer is as it is described."""

import json
import os

import hypothesis
import pytest
import schemathesis
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.cli.rig import SITE, client_of, served, typed

pytestmark = [pytest.mark.net, pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(600)]

CHECKS = (
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
)
EXAMPLES = 40 if os.environ.get("HYPOTHESIS_PROFILE") == "wide" else 8
# It never ends, so that its answer cannot be read whole: tests/api/test_stream.py has it.
ENDLESS = "/v1/events"
# What no API ever sees of a request: where it is wrong, the server hangs up on its own.
FRAMING = frozenset({"transfer-encoding", "content-length", "connection", "upgrade", "expect"})


@pytest.fixture(scope="module")
def parent(tmp_path_factory):
    home = tmp_path_factory.mktemp("asked")
    (home / "site.yaml").write_text(SITE)
    with served(home, "--site", home / "site.yaml"):
        client = json.loads(client_of(home).read_text())
        typed("freeze", "n1", "-m", "board swap", folder=home, client=client_of(home))
        yield client
        # All that was asked has left it able to answer.
        assert typed("status", folder=home, client=client_of(home))[0] == 0


def operations(client):
    schema = schemathesis.openapi.from_url(f"{client['url']}/v1/openapi.json")
    found = [one.ok() for one in schema.get_all_operations()]
    return [one for one in found if one.path != ENDLESS]


@pytest.mark.parametrize("mode", list(GenerationMode))
def test_every_answer_is_as_described_whatever_is_asked(parent, mode):
    headers = {"Authorization": f"Bearer {parent['token']}"}
    asked, statuses = 0, set()
    for operation in operations(parent):

        @hypothesis.settings(
            max_examples=EXAMPLES,
            deadline=None,
            database=None,
            derandomize=True,
            suppress_health_check=list(hypothesis.HealthCheck),
        )
        @hypothesis.given(case=operation.as_strategy(generation_mode=mode))
        def ask(case):
            nonlocal asked
            hypothesis.assume(FRAMING.isdisjoint(name.lower() for name in case.headers or ()))
            response = case.call(headers=headers)
            case.validate_response(response, checks=CHECKS)
            asked += 1
            statuses.add(response.status_code)

        try:
            ask()
        except hypothesis.errors.Unsatisfiable:
            assert mode is GenerationMode.NEGATIVE, f"nothing to ask of {operation.path}"
    # Files of the page have nothing to ask for otherwise.
    shaped = [one for one in operations(parent) if not one.path.startswith("/page/")]
    assert asked > 5 * len(shaped)
    assert {200, 400, 404} <= statuses
