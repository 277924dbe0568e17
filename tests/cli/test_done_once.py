"""An idempotency key over the death of a real parent: what was written is not written again."""

import http.client
import json
import signal
from urllib.parse import urlsplit

import pytest

from tests.cli.rig import SITE, client_of, served
from tests.lab.rig import WAIT_S_MAX
from tests.network import NETWORK

pytestmark = [pytest.mark.net, pytest.mark.slow]
ADDRESS = f"{NETWORK}.46.1"


def asked(home, key, rack):
    """What a parent answers to a patch with a key."""
    client = json.loads(client_of(home).read_text())
    connection = http.client.HTTPConnection(urlsplit(client["url"]).netloc, timeout=WAIT_S_MAX)
    headers = {"Authorization": f"Bearer {client['token']}", "Idempotency-Key": key}
    body = json.dumps({"patches": [{"entity": "node:n1", "attributes": {"rack": rack}}]})
    connection.request("POST", "/v1/bulk?take=1", body, headers)
    answer = connection.getresponse()
    told = answer.status, answer.headers["idempotency-replayed"], json.loads(answer.read())
    connection.close()
    return told


def test_the_next_parent_knows_what_a_killed_one_did_with_a_key(tmp_path):
    (tmp_path / "site.yaml").write_text(SITE)
    site = ("--site", tmp_path / "site.yaml")
    with served(tmp_path, *site, address=ADDRESS, ending=signal.SIGKILL):
        status, replayed, first = asked(tmp_path, "k", "7")
    assert (status, replayed) == (200, None)
    with served(tmp_path, address=ADDRESS):
        assert asked(tmp_path, "k", "7") == (200, "true", first)
        status, _, other = asked(tmp_path, "k", "8")
        assert (status, other["what"]) == (422, "this key was sent with another request")
        status, _, second = asked(tmp_path, "k2", "7")
        assert (status, second["revision"]) == (200, first["revision"])  # it was so already
