"""No byte of a request goes over a connection whose certificate was not checked."""

import ast
import asyncio
from pathlib import Path

import pytest

from haptera.lab.redfish_bmc import SESSIONS_PATH
from haptera.sdk import HapteraError
from tests.modules.redfish.fake_service import Asked, Told, fake_service, system, usual

SOURCE = Path(__file__).resolve().parents[3] / "src" / "haptera"


@pytest.mark.net
@pytest.mark.parametrize("auth", ["basic", "session"])
def test_a_connection_that_is_made_again_is_checked_again(tmp_path: Path, auth: str) -> None:
    def close_each(asked: Asked) -> Told:
        service.certify_anew()
        told = usual(asked, system())
        session = {"X-Auth-Token": "t", "Location": f"{SESSIONS_PATH}/1"}
        return Told(told.status, told.body, {"Connection": "close", **session})

    with fake_service(tmp_path, close_each) as service:
        with pytest.raises(HapteraError, match="has another certificate than before"):
            asyncio.run(service.bmc(auth=auth).status())
        assert len(service.asked) == 1


# Each client of ours that trusts by more than the authority's signature, and where it looks.
CHECKED = {
    "sdk/https.py": "CheckedConnection: in `connect`, which http.client calls for each connection",
    "modules/redfish/exchange.py": "CheckedConnection: the pin",
    "images/parent.py": "CheckedConnection: the URI of the parent",
    "runtime/network/tls.py": "the contexts of the three below",
    "runtime/network/peer_client.py": "one connection a request, `party.owns` before it is sent",
    "runtime/enrolment/enrol.py": "one connection a claim, `is_parent` before it is sent",
    "client/aio.py": "ssl itself, by the authority and the name",
    "client/bare.py": "ssl itself, by the authority and the name; one connection a call",
    "modules/declared/exchange.py": "ssl itself, by the authority and the name",
    "client/blocking.py": "ssl itself, by the authority and the name",
}
OPENERS = {"HTTPSConnection", "wrap_socket", "wrap_bio", "start_tls", "urlopen"}


def test_each_client_over_tls_is_known_with_the_place_of_its_check() -> None:
    """Whoever adds one says here where each of its connections is checked."""
    found = {
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*.py")
        if opens_tls(path.read_text())
    }
    assert found == set(CHECKED)


def opens_tls(source: str) -> bool:
    """Whether it makes connections over TLS, or turns the usual checks off."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Attribute(attr=name) | ast.Name(id=name) if name in OPENERS:
                return True
            case ast.Call(
                func=ast.Attribute(attr="open_connection" | "create_connection"), keywords=given
            ) if any(one.arg == "ssl" for one in given):
                return True
            case ast.Attribute(attr="check_hostname" | "CERT_NONE"):
                return True
    return False
