"""Controllers as processes: started like modules, and whatever they do, only they suffer."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from haptera.model.changes import Declare, SetDesired
from haptera.model.effects import Start
from haptera.model.entity import node_id
from haptera.model.events import Event, Exited, Ready
from haptera.runtime.processes.control import VIEWS_PER_FRAME
from haptera.runtime.processes.controllers import ControllerPlace, Controllers
from haptera.runtime.processes.forking import PRELOAD, LoopZygote, exec_zygote
from haptera.runtime.processes.ipc import FrameLink
from haptera.runtime.processes.process import ModuleProcesses
from haptera.selectors.subscription import Subscription
from haptera.wire.ipc import encode_frame
from tests.api.fake_backend import FakeBackend

pytestmark = pytest.mark.net

WAIT_S = 60
N1, N2 = node_id("n1"), node_id("n2")
NAMES = ("plain", "rubbish", "fails", "returns", "counted", "no_controller")

OUTSIDE = """\
import keepers_names
from haptera.sdk import Controller

controller = Controller("any", settings=dict)

@controller.run
async def name_it(cluster):
    await cluster.write({"node:n1": {"power": keepers_names.ON}})
    raise RuntimeError(f"ours: {hasattr(__import__('colorsys'), 'OURS')}")
"""


class Rig:
    """Controllers' processes over a real zygote, and a cluster of two nodes."""

    def __init__(self, folder: Path) -> None:
        self.backend = FakeBackend()
        self.backend.write(Declare(N1, {}, "site"), Declare(N2, {}, "site"))
        self.backend.write(SetDesired(N2, "power", "on", "controller:plain"))
        self.events: asyncio.Queue[Event] = asyncio.Queue()
        places = [self._place(name, "tests.runtime.controllers_forked", name) for name in NAMES]
        outside = ControllerPlace("outside", "keepers:controller", str(folder), {})
        self.zygote = LoopZygote(lambda: exec_zygote(PRELOAD))
        self.processes = ModuleProcesses(
            self.zygote,
            self._deliver,
            places={},
            run_dir=folder,
            log_dir=folder / "log",
            controllers=Controllers([*places, outside], self.backend),
        )

    def _place(self, name: str, module: str, attribute: str) -> ControllerPlace:
        return ControllerPlace(name, f"{module}:{attribute}", "", {"count": "many"})

    def _deliver(self, events: list[Event]) -> None:
        for event in events:
            self.events.put_nowait(event)

    async def start(self, name: str, settings: str = "") -> None:
        self.processes.start(Start(name, settings=settings))

    async def heard(self) -> Event:
        async with asyncio.timeout(WAIT_S):
            return await self.events.get()

    async def until(self, so: Callable[[], bool]) -> None:
        async with asyncio.timeout(WAIT_S):
            listener = self.backend.bus.listen(Subscription(), (news := asyncio.Event()).set)
            while not so():
                while listener.drain(100) is not None:
                    pass
                await news.wait()
                news.clear()
            listener.close()


@asynccontextmanager
async def running(folder: Path) -> AsyncIterator[Rig]:
    rig = Rig(folder)
    try:
        yield rig
    finally:
        rig.processes.close()
        rig.zygote.close()


async def test_a_controller_writes_and_answers_to_changes(tmp_path: Path) -> None:
    async with running(tmp_path) as rig:
        await rig.start("plain")
        assert await rig.heard() == Ready("plain", 1, "1")
        await rig.until(lambda: "power" in rig.backend.store[N1].desired)
        n3 = node_id("n3")
        rig.backend.write(Declare(n3, {}, "site"))
        await rig.until(lambda: "power" in rig.backend.store[n3].desired)
        assert rig.backend.store[n3].desired["power"].owner == "controller:plain"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("rubbish", "it sent a frame 'switch everything off' that is not known"),
        ("fails", "belongs to controller:plain, who wants on (have controller:plain release it)"),
        ("returns", "status 0"),
    ],
)
async def test_one_that_goes_wrong_ends_and_is_told_of_in_its_own_words(
    name: str, words: str, tmp_path: Path
) -> None:
    async with running(tmp_path) as rig:
        await rig.start(name)
        assert await rig.heard() == Ready(name, 1, "1")
        exited = await rig.heard()
        assert isinstance(exited, Exited)
        assert words in exited.text
        assert rig.backend.store[N2].desired["power"].value == "on"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("no_controller", "is no controller"),
        ("counted", "settings of controller counted: Expected `int`, got `str`"),
        ("outside", "No module named 'keepers'"),
    ],
)
async def test_one_that_cannot_begin_says_why(name: str, words: str, tmp_path: Path) -> None:
    async with running(tmp_path) as rig:
        await rig.start(name)
        exited = await rig.heard()
        assert isinstance(exited, Exited)
        assert words in exited.text


async def test_what_is_desired_of_it_goes_before_the_site_files_settings(tmp_path: Path) -> None:
    async with running(tmp_path) as rig:
        await rig.start("counted", settings='{"count": 3}')
        assert await rig.heard() == Ready("counted", 1, "1")


async def test_the_folder_of_the_site_file_is_there_but_never_in_the_way(tmp_path: Path) -> None:
    async with running(tmp_path) as rig:
        (tmp_path / "keepers.py").write_text(OUTSIDE)
        (tmp_path / "keepers_names.py").write_text("ON = 'on'\n")
        (tmp_path / "colorsys.py").write_text("OURS = True\n")
        await rig.start("outside")
        assert await rig.heard() == Ready("outside", 1, "1")
        exited = await rig.heard()
        assert isinstance(exited, Exited)
        assert exited.text == "status 1: RuntimeError: ours: False"
        assert rig.backend.store[N1].desired["power"].owner == "controller:outside"


@pytest.mark.slow
async def test_one_that_asks_and_never_reads_is_given_up_while_others_have_their_turns() -> None:
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    backend = FakeBackend()
    backend.write(*(Declare(node_id(f"n{at}"), {}, "site") for at in range(VIEWS_PER_FRAME)))
    broken: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
    link = FrameLink(ours, lambda frames: [*map(served.take, frames)], broken.set_result)
    served = Controllers([], backend).serve("flood", link)
    flooding = asyncio.ensure_future(flood(theirs))
    turns = 0
    try:
        async with asyncio.timeout(WAIT_S):
            while not broken.done():
                await asyncio.sleep(0)
                turns += 1
    finally:
        served.close()
        flooding.cancel()
        link.close()
        theirs.close()
    assert broken.result() == "it does not read its input"
    assert turns > 1_000


async def flood(link: socket.socket) -> None:
    """Ask for everything as fast as it goes."""
    question = encode_frame({"op": "read", "id": 1, "select": "*", "after": None})
    while True:
        await asyncio.get_running_loop().sock_sendall(link, question * 100)
