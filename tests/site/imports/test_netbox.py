"""Devices of NetBox: pages of its API become nodes, and none is missing unseen."""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit
from urllib.request import Request, urlopen

import pytest

from haptera.model.errors import HapteraError
from haptera.rest.schemas import SiteFile
from haptera.site.imports.netbox import read_netbox
from tests.site.imports.reading import groups_of, said, site_of

TOKEN = "Token sesame"


def device(name, number, **more):
    """As the API shows one: objects that it refers to are short, what is not set is null."""
    return {
        "id": number,
        "url": f"http://netbox/api/dcim/devices/{number}/",
        "display": name,
        "name": name,
        "role": {"id": 1, "name": "Compute", "slug": "compute"},
        "rack": {"id": 7, "name": "r1", "display": "r1"},
        "status": {"value": "active", "label": "Active"},
        "primary_ip": {"id": 3, "address": f"10.20.1.{number}/24", "family": {"value": 4}},
        "primary_ip4": {"id": 3, "address": f"10.20.1.{number}/24"},
        "primary_ip6": None,
        "oob_ip": {"id": 4, "address": f"10.30.1.{number}/24"},
        "serial": "",
        "tags": [],
        "custom_fields": {},
        "created": "2026-01-01T00:00:00Z",
        "last_updated": "2026-01-01T00:00:00Z",
    } | more


def page(devices, count=None, name="devices.json"):
    count = len(devices) if count is None else count
    told = {"count": count, "next": None, "previous": None, "results": devices}
    return SiteFile(name, json.dumps(told, indent=1))


@contextmanager
def netbox(devices):
    """A server that answers as NetBox does: a page of `limit` devices, with the next one's URL."""

    class Devices(BaseHTTPRequestHandler):
        def do_GET(self):
            url = urlsplit(self.path)
            asked = {key: int(value) for key, [value] in parse_qs(url.query).items()}
            limit, offset = asked.get("limit", 50), asked.get("offset", 0)
            following = f"{base}{url.path}?limit={limit}&offset={offset + limit}"
            told = {
                "count": len(devices),
                "next": following if offset + limit < len(devices) else None,
                "previous": None,
                "results": devices[offset : offset + limit],
            }
            good = self.headers["Authorization"] == TOKEN and url.path == "/api/dcim/devices/"
            self.send_response(200 if good else 403)
            self.end_headers()
            self.wfile.write(json.dumps(told if good else {"detail": "Invalid token"}).encode())

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Devices) as server:
        base = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"{base}/api/dcim/devices/"
        finally:
            server.shutdown()


def fetched(url):
    """All pages, as the documentation says to fetch them."""
    pages = []
    while url:
        with urlopen(Request(url, headers={"Authorization": TOKEN})) as answer:
            pages.append(SiteFile(f"page{len(pages)}.json", answer.read().decode()))
        url = json.loads(pages[-1].text)["next"]
    return pages


@pytest.mark.net
def test_all_pages_of_a_server_become_nodes_and_a_page_that_is_missing_is_told():
    devices = [device(f"n{number:02}", number) for number in range(1, 26)]
    with netbox(devices) as url:
        pages = fetched(f"{url}?limit=10")
    found = read_netbox(pages, {})
    assert (len(pages), len(site_of(found)), said(found)) == (3, 25, [])
    with pytest.raises(HapteraError, match="only 15 of NetBox's 25 devices are named here"):
        read_netbox([pages[0], pages[2]], {})


def test_a_page_that_is_named_twice_stands_for_no_other():
    first = page([device("n01", 1), device("n02", 2)], 4)
    with pytest.raises(HapteraError, match="only 2 of NetBox's 4 devices are named here"):
        read_netbox([first, first], {})
    second = page([device("n02", 2), device("n03", 3), device("n04", 4)], 4)
    found = read_netbox([first, second], {})
    assert (len(site_of(found)), said(found)) == (4, [])


@pytest.mark.parametrize("count", [None, "many", -1, 1e3, True, {}, 10**20])
def test_a_page_that_does_not_count_the_devices_is_refused(count):
    told = {"next": "http://netbox/?offset=1", "results": [device("n01", 1)]}
    counted = {} if count is None else {"count": count}
    with pytest.raises(HapteraError, match="the page has no count of devices"):
        read_netbox([SiteFile("devices.json", json.dumps(told | counted))], {})


def test_a_device_has_its_addresses_its_rack_and_its_role_and_tags_as_groups():
    tags = [{"id": 5, "name": "GPU", "slug": "gpu"}]
    found = read_netbox([page([device("n01", 1, tags=tags), device("n02", 2)])], {})
    assert site_of(found)["n01"] == (
        {
            "address": "10.20.1.1",
            "bmc": "10.30.1.1",
            "rack": "r1",
            "groups": "compute, gpu",
        },
        {},
    )
    assert groups_of(found) == {"compute": {"n01", "n02"}, "gpu": {"n01"}}


def test_what_cannot_stand_in_a_site_is_told_by_its_name_and_never_by_its_value():
    fields = {"batch": "none", "bmc_password": "planted", "owner": None}
    devices = [
        device("n01", 1, serial="planted", custom_fields=fields),
        device("n01", 9),
        device("old", 2, status={"value": "decommissioning", "label": "Decommissioning"}),
        device("a switch", 3),
        device(None, 4),
    ]
    found = read_netbox([page(devices)], {"jobs": "batch"})
    assert site_of(found).keys() == {"n01"}
    assert site_of(found)["n01"][0]["jobs"] == "none"
    told = [(sort, what) for sort, what, *_ in said(found)]
    assert told[0] == ("conflict", "another device has this name, and was used")
    assert ("secret", "custom field bmc_password") in told
    assert ("left out", "field serial") in told
    assert ("left out", "device old: it is decommissioning") in told
    assert ("left out", "a device without a name") in told
    assert any(what.startswith("node 'a switch'") for _, what in told)
    assert "planted" not in str(told)


@pytest.mark.parametrize(
    "text", ["[]", "{}", '{"results": {}}', '{"detail": "Invalid token"}', "{"]
)
def test_what_is_no_page_is_refused(text):
    with pytest.raises(HapteraError):
        read_netbox([SiteFile("devices.json", text)], {})
