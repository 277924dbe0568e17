"""Three levels of real processes whose datagrams come late, twice, and in another order, by a seed.

    unshare --net sh -c 'ip link set lo up && exec python -m tests.cli.late_tree DIRECTORY SEED'

The tree of `lossy_tree.py`, with `relay.py` between all: what is desired is changed again and
again, and has to come about each time; no agent may be taken for lost, by its parents' own record.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from haptera.runtime.clock import wall_s
from tests.cli.lossy_tree import SITE, await_settled, gone, start_below
from tests.cli.relay import LATE_SHARE, TWICE_SHARE
from tests.cli.rig import client_of, lab, typed
from tests.lab.rig import wait_for

ALL = "service:idle@rack[1-2]n[01-25]"
# By turns; the last is as the site has it.
RUNS = ("stopped", "running") * 3


@contextmanager
def relayed(seed: int) -> Iterator[list[int]]:
    """All datagrams go through a relay; at the end, how many there were, late, and twice."""
    counts: list[int] = []
    words = [sys.executable, "-m", "tests.cli.relay", str(seed)]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True) as relay:
        assert relay.stdout is not None
        assert relay.stdout.readline() == "relays\n"
        yield counts
        told, _ = relay.communicate()
        counts += map(int, re.findall(r"\d+", told))
    subprocess.run(["nft", "delete", "table", "ip", "relay"], check=True)


def main(folder: Path, seed: int) -> None:
    (folder / "site.yaml").write_text(SITE)
    with lab(folder), ExitStack() as below:
        root = client_of(folder)
        wait_for(root.exists)
        parents = start_below(below, folder, root)
        await_settled(folder, root)
        since_s = wall_s()
        with relayed(seed) as counts:
            for run in RUNS:
                code, _, errors = typed(
                    "set", ALL, f"run={run}", "--take", folder=folder, client=root
                )
                assert code == 0, errors
                await_settled(folder, root)
        passed, late, twice = counts
        sys.stdout.write(f"of {passed} datagrams {late} came late, {twice} twice\n")
        assert late > LATE_SHARE * passed / 2
        assert twice > TWICE_SHARE * passed / 2
        lost = {str(one): gone(one, since_s) for one in (root, *parents)}
        await_settled(folder, root)
    assert not any(lost.values()), lost


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
