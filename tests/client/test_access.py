"""Client files, and the addresses in them."""

import json
import socket

import pytest

from haptera.client import Access, find
from haptera.client.address import Host, UnixSocket, parse_address
from haptera.model.errors import HapteraError


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("http://127.0.0.1:4270", Host("127.0.0.1", 4270, secure=False)),
        ("http://127.0.0.1:4270/", Host("127.0.0.1", 4270, secure=False)),
        ("https://cluster", Host("cluster", 443, secure=True)),
        ("http://[::1]:80", Host("::1", 80, secure=False)),
        ("unix:/run/haptera/api.sock", UnixSocket("/run/haptera/api.sock")),
        ("unix:///run/a%20b", UnixSocket("/run/a b")),
    ],
)
def test_a_url_is_a_host_or_a_socket(url, address):
    assert parse_address(url) == address


@pytest.mark.parametrize(
    "url",
    [
        *("", "cluster", "ftp://cluster", "http://", "http://c:x", "http://c:99999", "http://[::1"),
        *("http://c/v1", "http://c?x=y", "http://u:p@c", "unix:api.sock", "unix://host/path"),
    ],
)
def test_what_names_no_address_is_told_with_what_to_write(url):
    with pytest.raises(HapteraError) as told:
        parse_address(url)
    assert told.value.do == "write http://HOST:PORT, https://HOST:PORT or unix:/PATH"


def test_a_token_is_in_no_log():
    assert "secret" not in repr(Access("http://c", "secret", page="http://c/#secret"))


def test_a_client_file_is_found_above_and_one_that_is_named_goes_before(tmp_path, monkeypatch):
    monkeypatch.delenv("HAPTERA_CLIENT", raising=False)
    near, named = tmp_path / ".haptera" / "client.json", tmp_path / "named.json"
    near.parent.mkdir()
    for path, url in ((near, "http://near"), (named, "unix:/named")):
        path.write_text(json.dumps({"url": url}))
        path.chmod(0o600)
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)

    assert find(start=below).access == Access("http://near")
    monkeypatch.setenv("HAPTERA_CLIENT", str(named))
    assert find(start=below).access == Access("unix:/named")
    assert find(near).warning is None
    near.chmod(0o640)
    assert find(near).warning == f"{near} can be read by others; chmod 600 it"


def test_where_no_file_says_otherwise_a_parents_socket_is_asked(tmp_path, monkeypatch):
    monkeypatch.delenv("HAPTERA_CLIENT", raising=False)
    monkeypatch.chdir(tmp_path)
    place = tmp_path / ".haptera" / "api.sock"
    place.parent.mkdir()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(".haptera/api.sock")
        for given in (None, place):
            found = find(given, start=tmp_path)
            assert (found.path, found.warning) == (place, None)
            assert parse_address(found.access.url) == UnixSocket(str(place))
        (tmp_path / ".haptera" / "client.json").write_text('{"url": "http://near"}')
        assert find(start=tmp_path).access == Access("http://near")
