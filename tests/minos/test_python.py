"""What a minOS leaves out of the standard library is nothing that an agent imports."""

import subprocess
import sys

# As in a minOS, where these are not there.
PROGRAM = """
import sys
from haptera.minos.python import _LEFT_OUT
sys.modules.update({name: None for name in _LEFT_OUT})
import haptera.daemon.agent
from haptera.modules import BUNDLED, load
for name in BUNDLED:
    load(name).manifest()
print("all of them")
"""


def test_an_agent_knows_all_bundled_modules_without_what_is_left_out() -> None:
    command = [sys.executable, "-c", PROGRAM]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.stdout == "all of them\n", ran.stderr
