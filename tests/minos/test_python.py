"""A minOS has all of the standard library and of haptera that a node imports."""

import os
import subprocess
import sys
from pathlib import Path

import grimp

import haptera
from haptera.minos.python import own_files

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

# With nothing but the files of a node: the agent, and a process that a zygote forks.
ALONE = """
import haptera.daemon.agent
from haptera.runtime.processes.forking import exec_zygote
zygote = exec_zygote()
print("forked" if zygote.fork("haptera.runtime.processes.fork_targets:module_process", {}) else "")
"""


def test_an_agent_knows_all_bundled_modules_without_what_is_left_out() -> None:
    command = [sys.executable, "-c", PROGRAM]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.stdout == "all of them\n", ran.stderr


def test_a_minos_has_the_files_that_another_reader_of_imports_finds() -> None:
    graph = grimp.build_graph("haptera")
    # Those that are forked by their names in strings.
    forked = {"processes.fork_targets", "search.search_process"}
    rooms = ("app", "cli.commands.node", "kinds", "model", "modules", "sdk")
    starts = {"haptera.__main__", "haptera.daemon.agent"}
    prefixes = tuple(f"haptera.{room}." for room in rooms)
    starts |= {one for one in graph.modules if one.startswith(prefixes)}
    starts |= {f"haptera.runtime.{one}" for one in forked}
    found = starts.union(*map(graph.find_upstream_modules, starts))
    found |= {name[:at] for name in found for at, sign in enumerate(name) if sign == "."}
    home = Path(haptera.__file__).parent
    names = {".".join(path.relative_to(home.parent).parts) for path in own_files(home)}
    ours = {name.removesuffix(".py").removesuffix(".__init__") for name in names}
    assert found <= ours  # grimp takes a name from a package for the package alone
    assert ours - found <= graph.modules
    assert not [one for one in ours if one.startswith(("haptera.api", "haptera.daemon.parent"))]


def test_a_zygote_forks_a_module_where_there_are_only_the_files_of_a_node(tmp_path: Path) -> None:
    home = Path(haptera.__file__).parent
    for path in own_files(home):
        copy = tmp_path / "haptera" / path.relative_to(home)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(path.read_bytes())
    ran = subprocess.run(
        [sys.executable, "-c", ALONE],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stdout == "forked\n", ran.stderr
