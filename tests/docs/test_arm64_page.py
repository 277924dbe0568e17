"""The tutorial of arm64, typed from its first command to its last: real boots of another machine.

Loader, kernel and programs are those of Debian, and so are the emulated machine and its firmware.
"""

import os
import shutil
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


# Of the machine's arguments, before which more go.
BEFORE = "        - -netdev\n"
BY_HTTP_ONLY = "".join(
    f"        - -fw_cfg\n        - name=opt/org.tianocore/{one}PXESupport,string=no\n"
    for one in ("IPv4", "IPv6")
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the page's first command puts what its machine boots; it takes packages from afar."""
    lacking = subprocess.run([ROOT / "tools/need", *NEEDED], capture_output=True, text=True)
    if (why := lacking.stderr.strip() if lacking.returncode else why_no_networks()) is not None:
        pytest.skip(why)
    # The path of a socket is short.
    place = tmp_path_factory.mktemp("a")
    first, *_ = typed(place)
    ended = subprocess.run(first.command.split(), cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    return place


def typed(place: Path) -> list[Quoted]:
    """The commands of the page, with another place for its own."""
    return [
        Quoted(command.replace(PLACE, str(place)), output)
        for command, output in sessions(ROOT / PAGE)[PAGE]
    ]


@pytest.mark.parametrize("firmware", ["PXE", "HTTP Boot"])
def test_the_tutorial_of_arm64_answers_what_it_says(made: Path, firmware: str) -> None:
    site = files(PAGE)["site.yaml"].replace(PLACE, str(made))
    assert site.count(BEFORE) == 1
    more = BY_HTTP_ONLY if firmware == "HTTP Boot" else ""
    (made / "site.yaml").write_text(site.replace(BEFORE, more + BEFORE))
    shutil.rmtree(made / ".haptera", ignore_errors=True)
    # What it is made of is there, and no network that it could come from is.
    _, *others = typed(made)
    with shell(made, within=APART) as one:
        one.type("ip link set lo up")
        for quoted in others:
            if quoted.command.startswith("haptera serve"):
                one.begin(quoted.command)
                continue
            code, written = one.type(quoted.command, COMMAND_S_MAX)
            if not as_quoted(quoted, code, written):
                _, told = one.type("haptera why -v arm1; haptera console arm1")
                pytest.fail(f"{quoted.command}: {code}\n{written}\n{told}")
            if quoted.command.startswith("haptera console"):
                _, recorded = one.type("haptera console --lines 10000 arm1")
                assert f">>Start {firmware} over IPv4" in recorded
            if quoted.command.startswith("export"):
                answered(one, Quoted("haptera status", ""), made)
