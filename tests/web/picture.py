"""Makes the documents' picture of the page, of the quickstart: python -m tests.web.picture."""

import json
import signal
import subprocess
import tempfile
from pathlib import Path

from tests.cli.rig import client_of, command
from tests.lab.rig import ROOT
from tests.web.chromium import browsing

PICTURE = ROOT / "docs" / "explain" / "page.png"
SITE = ROOT / "examples" / "quickstart" / "site.yaml"
STUCK = "rack3n2"  # its BMC refuses
SIZE = {"width": 1280, "height": 800, "deviceScaleFactor": 1, "mobile": False}
# The lab tells on its output when there is something to see.
TOLD = "status page: "
UP = "document.getElementById('counts')?.textContent === '15 converged1 stuck'"


def main():
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        process = subprocess.Popen(
            command("lab", "--dir", home, "--site", SITE), stdout=subprocess.PIPE, text=True
        )
        try:
            while not process.stdout.readline().startswith(TOLD):
                assert process.poll() is None, "the lab ended"
            link = json.loads(client_of(home).read_text())["page"]
            with browsing(home) as page:
                page.ask("Emulation.setDeviceMetricsOverride", **SIZE)
                page.go(f"{link}&node={STUCK}")
                page.await_(UP)
                page.await_("document.querySelectorAll('#causes button').length === 2")
                page.screenshot(PICTURE)
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate()


if __name__ == "__main__":
    main()
