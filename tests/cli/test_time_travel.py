"""A real parent's past: what was desired and what was seen, at any time, over its restarts."""

import json
from datetime import UTC, datetime

import pytest

from tests.cli.rig import SITE, client_of, served, typed
from tests.lab.rig import wait_for

pytestmark = [pytest.mark.net, pytest.mark.slow]


def asked(home, *arguments):
    code, out, errors = typed(*arguments, "-o", "json", folder=home, client=client_of(home))
    assert (code, errors) == (0, "")
    return json.loads(out)


def test_what_was_so_before_a_change_and_a_restart_is_told(tmp_path):
    on, off = tmp_path / "on.yaml", tmp_path / "off.yaml"
    on.write_text(SITE)
    off.write_text(SITE.replace("power: on", "power: off"))
    with served(tmp_path, "--site", on):
        # A whole second, later than the first write and before the next.
        first = asked(tmp_path, "history")["changes"][0]
        moment = datetime.fromtimestamp(int(first["at_s"]) + 2, UTC).isoformat()
        wait_for(lambda: asked(tmp_path, "get", "node:n1")["since_ms"] > 2_500)
        asked(tmp_path, "apply", off, "--why", "the hall is too warm")
    with served(tmp_path, "--site", off):
        last = asked(tmp_path, "history", "-n", "1")["changes"][0]
        assert (last["before"], last["after"], last["why"]) == ("on", "off", "the hall is too warm")
        then = asked(tmp_path, "get", "node", "--at", moment)
        assert [(one["entity"], one["desired"]) for one in then] == [
            ("node:n1", {"power": "on"}),
            ("node:n2", {"power": "on"}),
        ]
        assert {one["condition"] for one in then} <= {"waiting", "stuck", "acting"}
        # What happened is gathered for a moment before it is written down.
        wait_for(lambda: _begun(tmp_path) == 2)


def _begun(folder):
    """How often a parent began, as the history tells."""
    (_, happened) = asked(folder, "history", "--all", "-n", "1000")
    return [one["sort"] for one in happened].count("begun")
