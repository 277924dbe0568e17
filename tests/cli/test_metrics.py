"""A real parent's figures: all that the reference page names, and promtool finds nothing wrong."""

import json
import re
import shutil
import subprocess
import urllib.request

import pytest

from tests.cli.rig import SITE, client_of, served
from tests.lab.rig import ROOT, WAIT_S_MAX

pytestmark = [pytest.mark.net, pytest.mark.slow]


def scraped(home):
    client = json.loads(client_of(home).read_text())
    request = urllib.request.Request(
        f"{client['url']}/metrics", headers={"Authorization": f"Bearer {client['token']}"}
    )
    with urllib.request.urlopen(request, timeout=WAIT_S_MAX) as answer:
        return answer.read()


def test_a_parent_tells_what_the_page_says(tmp_path):
    (tmp_path / "site.yaml").write_text(SITE)
    with served(tmp_path, "--site", tmp_path / "site.yaml"):
        text = scraped(tmp_path).decode()
    page = (ROOT / "docs" / "reference" / "metrics.md").read_text()
    named = set(re.findall(r"^\| `(haptera_\w+)`", page, re.MULTILINE))
    families = set(re.findall(r"^# TYPE (haptera_\w+) ", text, re.MULTILINE))
    assert {one for one in families if not one.endswith("_created")} == named
    assert 'haptera_info{cluster="small",' in text
    assert re.search(r'^haptera_entities{condition="\w+",kind="node"} [12]\.0$', text, re.MULTILINE)
    if shutil.which("promtool") is None:
        pytest.skip("all well, but promtool is not installed to judge the format")
    told = subprocess.run(
        ["promtool", "check", "metrics"],
        input=text.encode(),
        capture_output=True,
        timeout=WAIT_S_MAX,
        check=False,
    )
    assert (told.returncode, told.stdout, told.stderr) == (0, b"", b"")
