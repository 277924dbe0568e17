"""Modules of one's own: what they declare is asked of a process of theirs, whatever they are."""

import asyncio
import sys
from pathlib import Path

import pytest

from haptera.model.effects import Start, Stop
from haptera.model.errors import HapteraError
from haptera.model.events import Exited, Ready
from haptera.model.parts import Context, Requirement
from haptera.runtime.processes.forking import PRELOAD, LoopZygote, exec_zygote
from haptera.runtime.processes.own_modules import OwnModule, describe
from haptera.runtime.processes.places import ModulePlace
from haptera.runtime.processes.process import ModuleProcesses

pytestmark = pytest.mark.net

LAMP = str(Path(__file__).with_name("lamp.py"))
OUTLET = """\
from haptera.kinds import node
from haptera.kinds.node import Power
from haptera.sdk import PARENT, Module

module = Module("outlet", connect=lambda target: target, context=PARENT)
power = module.serves(node.power)

@power.look(every_s=30, outcomes=(Power.OFF, Power.ON))
async def look(outlet):
    return Power.ON

number = 7
"""


def lamp(*words, context=Context.PARENT):
    return ModulePlace("lamp", context, "/", command=(sys.executable, "-S", LAMP, *words))


def described(folder, *places, known=()):
    async def whole():
        zygote = LoopZygote(lambda: exec_zygote(PRELOAD))
        try:
            return await describe(zygote, places, known, folder)
        finally:
            zygote.close()

    return asyncio.run(whole())


def test_what_a_module_of_a_folder_and_a_command_declare_is_told(tmp_path):
    (tmp_path / "outlets.py").write_text(OUTLET)
    outlet = ModulePlace("outlet", Context.PARENT, str(tmp_path), place="outlets:module")
    one, other = described(tmp_path, outlet, lamp("parent"))

    assert (one.place, other.place) == (outlet, lamp("parent"))
    assert [part.path for part in one.manifest.parts] == ["outlet.look"]
    assert (other.manifest.version, other.manifest.context) == ("7", Context.PARENT)
    assert [part.path for part in other.manifest.parts] == [
        "lamp.look", "lamp.switch_on", "lamp.switch_off",
    ]  # fmt: skip
    assert other.manifest.looks[0].requires == (Requirement("platform", ("lamp",)),)


@pytest.mark.parametrize(
    ("place", "what"),
    [
        (ModulePlace("outlet", Context.PARENT, ".", place="no_such:module"), "No module named"),
        (ModulePlace("outlet", Context.PARENT, ".", place="outlets:number"), "is no module"),
        (
            ModulePlace("outlet", Context.SELF, ".", place="outlets:module"),
            "runs at context parent",
        ),
        (
            ModulePlace("other", Context.PARENT, ".", place="outlets:module"),
            "the name of another module",
        ),
        (ModulePlace("lamp", Context.PARENT, ".", command=("/no/such",)), "cannot be run"),
        (ModulePlace("lamp", Context.PARENT, ".", command=("false",)), "cannot be run: status 1"),
    ],
)
def test_what_is_not_the_module_that_the_site_names_is_told(tmp_path, place, what):
    (tmp_path / "outlets.py").write_text(OUTLET)
    here = ModulePlace(place.name, place.context, str(tmp_path), place.place, place.command)
    with pytest.raises(HapteraError) as raised:
        described(tmp_path, here)

    assert what in str(raised.value), str(raised.value)
    assert raised.value.do


def test_a_module_that_cannot_be_run_any_more_is_taken_for_what_it_was(tmp_path, caplog):
    (tmp_path / "outlets.py").write_text(OUTLET)
    place = ModulePlace("outlet", Context.PARENT, str(tmp_path), place="outlets:module")
    known = described(tmp_path, place)
    (tmp_path / "outlets.py").write_text("import no_such_thing\n")

    assert described(tmp_path, place, known=known) == known
    assert "module outlet cannot be run" in caplog.text
    elsewhere = ModulePlace("outlet", Context.PARENT, str(tmp_path), place="outlets:other")
    with pytest.raises(HapteraError):
        described(tmp_path, elsewhere, known=[OwnModule(place, known[0].manifest)])


async def test_a_command_is_handed_its_settings_over_its_link_and_ends_with_it(tmp_path):
    zygote = LoopZygote(lambda: exec_zygote(PRELOAD))
    events, more = [], asyncio.Event()

    def receive(some):
        events.extend(some)
        more.set()

    processes = ModuleProcesses(
        zygote, receive, places={"lamp": lamp("self")}, run_dir=tmp_path, log_dir=tmp_path
    )
    processes.start(Start("lamp", 1, '{"folder": "/lamps"}'))
    async with asyncio.timeout(60):
        while not any(isinstance(one, Ready) for one in events):
            more.clear()
            await more.wait()
        processes.stop(Stop("lamp", 1))
        while not any(isinstance(one, Exited) for one in events):
            more.clear()
            await more.wait()
    processes.close()
    zygote.close()
    assert (tmp_path / "lamp.log").read_text() == "begins with ['folder']\n"
