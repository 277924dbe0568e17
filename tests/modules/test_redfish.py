"""What only the redfish module has; what each module of BMCs has to do is in test_power.py."""

import asyncio
import re
from collections import Counter
from pathlib import Path

import pytest

from haptera.lab.machine_bmc import certify
from haptera.lab.redfish_bmc import CERTIFICATE, SESSIONS_MAX, SESSIONS_PATH
from haptera.model.entity import node_id
from haptera.modules.redfish import module
from haptera.modules.redfish.bmc import RedfishBmc, end_sessions
from haptera.modules.redfish.exchange import RedfishError, ServiceAddress
from haptera.sdk import HapteraError, Target
from tests.modules.ipmi_rig import PASSWORD, USER
from tests.modules.redfish_rig import HOST, PORT, bmc_of, service


@pytest.mark.parametrize("text", ["http://10.0.0.1", "10.0.0.1:port", ":443", "10.0.0.1:0", "/x"])
def test_what_is_no_address_is_told(text: str) -> None:
    with pytest.raises(HapteraError, match="is not the address of a Redfish service"):
        ServiceAddress.parse(text)


@pytest.mark.parametrize(
    ("text", "host", "port", "path"),
    [
        ("2001:db8::21", "2001:db8::21", 443, ""),
        ("https://[2001:db8::21]:8443/redfish/v1/Systems/1", "2001:db8::21", 8443,
         "/redfish/v1/Systems/1"),
    ],
)  # fmt: skip
def test_an_address_of_ipv6_is_read_and_written(text: str, host: str, port: int, path: str) -> None:
    one = ServiceAddress.parse(text)
    assert one == ServiceAddress(host, port, path)
    assert ServiceAddress.parse(str(one)) == one


def test_a_node_without_a_bmc_is_told_what_to_write() -> None:
    settings = module.settings({"user": USER, "password": PASSWORD})
    with pytest.raises(HapteraError, match="has no attribute bmc"):
        RedfishBmc(Target(node_id("n01"), settings=settings))


def test_a_list_of_authorities_is_for_who_verifies() -> None:
    with pytest.raises(HapteraError, match="ca_file is for `trust: verified`"):
        module.settings({"user": USER, "password": PASSWORD, "ca_file": "/ca.pem"})


def test_a_list_of_authorities_that_others_may_write_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").touch(mode=0o600)
    (tmp_path / "ca.pem").chmod(0o606)
    given = {"user": USER, "password": PASSWORD, "trust": "verified"}
    settings = module.settings({**given, "ca_file": str(tmp_path / "ca.pem")})
    target = Target(node_id("n01"), settings=settings, attributes={"bmc": HOST})
    with pytest.raises(HapteraError, match="others than its owner may write"):
        RedfishBmc(target)


@pytest.mark.net
@pytest.mark.campaign
async def test_of_several_systems_one_has_to_be_named(tmp_path: Path) -> None:
    with service(tmp_path, systems=2) as one:
        with pytest.raises(HapteraError, match="has 2 systems"):
            await bmc_of(tmp_path, one.address).status()
        await bmc_of(tmp_path, one.of_system(1)).power_on()
        assert await bmc_of(tmp_path, one.of_system(0)).status() == "off"


@pytest.mark.net
@pytest.mark.campaign
def test_a_system_that_is_not_there_is_no_power(tmp_path: Path) -> None:
    with service(tmp_path) as one, pytest.raises(RedfishError, match="answers 404"):
        asyncio.run(bmc_of(tmp_path, f"{one.address}/redfish/v1/Systems/other").status())


@pytest.mark.net
@pytest.mark.campaign
def test_another_certificate_than_before_gets_no_password(tmp_path: Path) -> None:
    with service(tmp_path) as one:
        assert asyncio.run(bmc_of(tmp_path, one.address).status()) == "off"
    with service(tmp_path) as one:  # As if somebody stood in its place.
        with pytest.raises(HapteraError, match="has another certificate than before: sha256"):
            asyncio.run(bmc_of(tmp_path, one.address).status())
        assert "GET /redfish" not in (tmp_path / "log").read_text()


@pytest.mark.net
@pytest.mark.campaign
def test_a_certificate_may_have_to_be_vouched_for(tmp_path: Path) -> None:
    with service(tmp_path) as one:
        known = {"trust": "verified", "ca_file": str(tmp_path / CERTIFICATE)}
        assert asyncio.run(bmc_of(tmp_path, one.address, **known).status()) == "off"
        with pytest.raises(RedfishError, match=f"BMC at {HOST}:{PORT} is not trusted"):
            asyncio.run(bmc_of(tmp_path, one.address, trust="verified").status())
        certify(tmp_path, HOST)
        with pytest.raises(RedfishError, match="is not trusted"):
            asyncio.run(bmc_of(tmp_path, one.address, **known).status())


IN_SESSION = {"auth": "session"}


@pytest.mark.net
@pytest.mark.campaign
def test_one_session_serves_all_calls_and_is_ended(tmp_path: Path) -> None:
    with service(tmp_path) as one:
        for _ in range(SESSIONS_MAX + 1):  # Each leaves none behind, or the last is not let in.
            for _ in range(2):
                assert asyncio.run(bmc_of(tmp_path, one.address, **IN_SESSION).status()) == "off"
            asyncio.run(end_sessions())
        assert asked(tmp_path) == {
            f"POST {SESSIONS_PATH} ": SESSIONS_MAX + 1,
            f"DELETE {SESSIONS_PATH}/": SESSIONS_MAX + 1,
        }


@pytest.mark.net
@pytest.mark.campaign
def test_the_systems_of_one_bmc_share_a_session(tmp_path: Path) -> None:
    with service(tmp_path, systems=2) as one:
        for number in range(2):
            address = one.of_system(number)
            assert asyncio.run(bmc_of(tmp_path, address, **IN_SESSION).status()) == "off"
        asyncio.run(end_sessions())
        assert asked(tmp_path) == {f"POST {SESSIONS_PATH} ": 1, f"DELETE {SESSIONS_PATH}/": 1}


@pytest.mark.net
@pytest.mark.campaign
def test_a_session_that_the_bmc_forgot_is_opened_anew(tmp_path: Path) -> None:
    known = {"trust": "verified", "ca_file": str(tmp_path / CERTIFICATE), **IN_SESSION}
    with service(tmp_path) as one:
        assert asyncio.run(bmc_of(tmp_path, one.address, **known).status()) == "off"
    with service(tmp_path) as one:  # A BMC that was restarted knows none.
        asyncio.run(bmc_of(tmp_path, one.address, **known).boot_from_network_once())
        assert asked(tmp_path)[f"POST {SESSIONS_PATH} "] == 1
        asyncio.run(end_sessions())


def asked(folder: Path) -> Counter[str]:
    """How often sessions were opened and ended, by the emulator's log."""
    found = re.findall(rf"(?:POST|DELETE) {SESSIONS_PATH}[ /]", (folder / "log").read_text())
    return Counter(found)
