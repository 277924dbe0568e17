"""Signing in with a client certificate, which a browser shows over TLS: no token is pasted.

Needs Chromium, certutil (Debian: libnss3-tools) and root, who lays a policy where Chromium has it.
"""

import base64
import json
import os
import shutil
import ssl
import subprocess

import pytest

from tests.cli.rig import SITE, served, typed
from tests.network import NETWORK, ipv6_loopback
from tests.web.chromium import CHROMIUM, browsing
from tests.web.test_acting import TEXT, confirm, press
from tests.web.test_status_page import words

pytestmark = [
    pytest.mark.campaign,
    *CHROMIUM,
    pytest.mark.skipif(os.geteuid() != 0, reason="mounts need root"),
    pytest.mark.skipif(
        shutil.which("certutil") is None,
        reason="certutil is not installed: apt install libnss3-tools",
    ),
]

PAGE = "https://[::1]:4270"
WITH_POLICIES = ("unshare", "-m", "sh", "-c", 'mount --bind "$0" /etc/chromium && exec "$@"')
WHO = "document.getElementById('who')?.textContent"


@pytest.fixture
def home(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    (home / "site.yaml").write_text(SITE)
    options = ("--site", home / "site.yaml", "--api", "::1")
    with ipv6_loopback(), served(home, *options, address=f"{NETWORK}.42.3"):
        yield home


def done(*command):
    subprocess.run(command, check=True, capture_output=True, timeout=60)


def given(folder, home, certificate):
    """A browser's home that has this certificate, and trusts the cluster; its policies."""
    kept = f"sql:{folder / '.pki' / 'nssdb'}"
    (folder / ".pki" / "nssdb").mkdir(parents=True)
    done("certutil", "-N", "-d", kept, "--empty-password")
    bundle = folder / "eve.p12"
    export = ("openssl", "pkcs12", "-export", "-passout", "pass:", "-name", "eve")
    done(*export, "-in", certificate, "-out", bundle)
    done("pk12util", "-i", bundle, "-d", kept, "-W", "")
    authority = (home / ".haptera" / "parent" / "ca.pem").read_text()
    policy = {
        "AutoSelectCertificateForUrls": [json.dumps({"pattern": PAGE, "filter": {}})],
        "CACertificates": [base64.b64encode(ssl.PEM_cert_to_DER_cert(authority)).decode()],
    }
    policies = folder / "chromium" / "policies" / "managed"
    policies.mkdir(parents=True)
    (policies / "policy.json").write_text(json.dumps(policy))
    return folder / "chromium"


def test_a_browser_with_a_certificate_needs_no_token_acts_and_ends_with_it(tmp_path, home):
    certificate, browsers = home / "eve.pem", tmp_path / "browser"
    made = typed("token", "certify", "eve", certificate, "--scope", "write", folder=home)[2]
    browsers.mkdir()
    policies = given(browsers, home, certificate)
    with browsing(browsers, (*WITH_POLICIES, policies)) as page:
        page.go(f"{PAGE}/#node=n1")
        assert page.await_(f"{WHO} !== '' && {WHO}") == "eve: write, by certificate"
        assert page.evaluate("document.getElementById('sign-out').hidden")
        assert page.evaluate("document.getElementById('sign-in').hidden")
        press(page, "freeze")
        confirm(page, "board swap")
        assert page.await_(f"{TEXT}.includes('frozen by user:eve: board swap')")
        asked = [{name.lower() for name in one["headers"]} for one in page.requests]
        assert not any("authorization" in headers for headers in asked)

        typed("token", "revoke", made.partition(":")[0], folder=home)
        assert page.await_(words("has no access"))
        assert page.await_("!document.querySelector('[data-deed]')")
