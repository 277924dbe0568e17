"""The tutorial of arm64, typed from its first command to its last: a real boot of another machine.

Loader, kernel and programs are those of Debian, and so are the emulated machine and its firmware.
"""

import os
import subprocess
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, Quoted, files, sessions
from tests.docs.test_typed_pages import answered, as_quoted
from tests.network import why_no_networks
from tests.shell import shell

PAGE = "docs/tutorial/arm64.md"
# Where the page puts everything.
PLACE = "/srv/arm64"
NEEDED = ("qemu-system-aarch64", "aavmf", "qemu-aarch64-static", "ip", "unshare")
# What is begun in these namespaces ends with them: also a machine, which outlives its parent.
APART = ("unshare", "--net", "--pid", "--fork", "--kill-child", "--mount-proc")
# As long as `haptera wait` waits, and it tells why.
COMMAND_S_MAX = 660

pytestmark = [
    pytest.mark.net,
    pytest.mark.slow,
    pytest.mark.campaign,
    pytest.mark.timeout(900),
    pytest.mark.skipif(os.geteuid() != 0, reason="a machine on a bridge needs root"),
]


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the page's file is, and all that it has made will be."""
    lacking = subprocess.run([ROOT / "tools/need", *NEEDED], capture_output=True, text=True)
    if (why := lacking.stderr.strip() if lacking.returncode else why_no_networks()) is not None:
        pytest.skip(why)
    # The path of a socket is short.
    folder = tmp_path_factory.mktemp("a")
    (folder / "site.yaml").write_text(files(PAGE)["site.yaml"].replace(PLACE, str(folder)))
    return folder


def test_the_tutorial_of_arm64_answers_what_it_says(folder: Path) -> None:
    first, *others = (
        Quoted(command.replace(PLACE, str(folder)), output)
        for command, output in sessions(ROOT / PAGE)[PAGE]
    )
    # Packages come from a network that is not there below.
    made = subprocess.run(first.command.split(), cwd=ROOT, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    with shell(folder, within=APART) as one:
        one.type("ip link set lo up")
        for quoted in others:
            if quoted.command.startswith("haptera serve"):
                one.begin(quoted.command)
                continue
            code, written = one.type(quoted.command, COMMAND_S_MAX)
            if not as_quoted(quoted, code, written):
                _, told = one.type("haptera why -v arm1; haptera console arm1")
                pytest.fail(f"{quoted.command}: {code}\n{written}\n{told}")
            if quoted.command.startswith("export"):
                answered(one, Quoted("haptera status", ""), folder)
