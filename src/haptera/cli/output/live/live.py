"""The cluster live in a terminal: cells by rack, counts, what is stuck; or plain lines."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from haptera.cli.output.live.cells import Board, Cell
from haptera.cli.output.live.watching import follow
from haptera.cli.output.printing import is_terminal, say
from haptera.cli.output.words import in_front, sentence
from haptera.client import Access, Arrived, calls
from haptera.model.answers.views import Condition, EntityView
from haptera.model.errors import HapteraError
from haptera.model.text import shown
from haptera.model.walltime import duration
from haptera.rest.schemas import Event

if TYPE_CHECKING:
    from rich.text import Text

REDRAW_EVERY_S: Final = 0.1
STUCK_SHOWN_MAX: Final = 3
CELLS_PER_LINE_MAX: Final = 24

_STYLES: Final = {
    Cell.STUCK: "bold red",
    Cell.ACTING: "yellow",
    Cell.WAITING: "blue",
    Cell.GREEN: "green",
    Cell.DARK: "bright_black",
}
_SIGNS: Final = {  # distinct without colours too
    Cell.STUCK: "✖",
    Cell.ACTING: "◐",
    Cell.WAITING: "◌",
    Cell.GREEN: "■",
    Cell.DARK: "·",
}


async def show(access: Access) -> None:
    """Show the cluster until cancelled; redrawn ten times a second at most.

    Raises:
        HapteraError: the API refuses the token.
    """
    screen = Screen(asyncio.get_running_loop().time)
    try:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(_draw(screen) if is_terminal() else _tell(screen))
            tasks.create_task(_take(access, screen))
    except ExceptionGroup as group:
        raise group.exceptions[0] from None  # the other task was cancelled for it


class Screen:
    """What is known by now; `news` is set where it changed since it was last drawn."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.cluster = ""
        self.board = Board({})
        self.broken: str | None = None
        self.news = asyncio.Event()
        self._now = now
        self._began = now()
        self._arrived: dict[str, float] = {}

    @property
    def shown_s(self) -> float:
        """How long the cluster is shown."""
        return self._now() - self._began

    def lasting(self) -> str:
        """How long what acts does so, the longest of it; or since when all rests."""
        views = self.board.views
        if not views:
            return ""
        ms = {name: one.since_ms + self._aged_ms(name) for name, one in views.items()}
        acting = [ms[name] for name, one in views.items() if one.condition is Condition.ACTING]
        if acting:
            return f"acting for {duration(max(acting))}"
        return f"at rest for {duration(min(ms.values()))}"

    def _aged_ms(self, name: str) -> int:
        return int((self._now() - self._arrived[name]) * 1000)

    def take(self, event: Event, *, fresh: bool) -> None:
        self.broken = None
        self.cluster = event.cluster
        self.board.take(event.entities, event.gone, fresh=fresh)
        self._arrived.update((view.entity, self._now()) for view in event.entities)

    def counts(self) -> str:
        views = self.board.views.values()
        found = [one.condition for one in views if in_front(one.kind, one.condition)]
        told = [f"{found.count(one)} {one.value}" for one in Condition if one in found]
        return ", ".join(told) or "nothing declared"

    def stuck(self) -> list[EntityView]:
        views = [view for _, view in sorted(self.board.views.items())]
        return [view for view in views if view.condition is Condition.STUCK]


async def _take(access: Access, screen: Screen) -> None:
    def arrived(one: Arrived) -> None:
        screen.take(one.event, fresh=one.fresh)
        screen.news.set()

    def broken(error: HapteraError) -> None:
        screen.broken = error.what
        screen.news.set()

    await follow(access, calls.events(), arrived, broken)


async def _draw(screen: Screen) -> None:
    from rich.live import Live  # slow to import, and only here

    with Live(_text(screen), auto_refresh=False) as live:
        while True:
            live.update(_text(screen), refresh=True)
            await asyncio.sleep(REDRAW_EVERY_S)


def _text(screen: Screen) -> "Text":
    from rich.text import Text

    text = Text(no_wrap=True, overflow="ellipsis")
    text.append(f"{screen.cluster or 'haptera'}  ", "bold")
    text.append(f"{screen.lasting()}  {screen.counts()}\n", "dim")
    for rack, cells in screen.board.racks().items():
        for begin in range(0, len(cells), CELLS_PER_LINE_MAX):
            text.append(f"\n{'' if begin else rack:>8}  ", "dim")
            for _, one in cells[begin : begin + CELLS_PER_LINE_MAX]:
                text.append(f"{_SIGNS[one]} ", _STYLES[one])
    stuck = screen.stuck()
    for view in stuck[:STUCK_SHOWN_MAX]:
        text.append(f"\n\n{shown(sentence(view))}", "red")
    if len(stuck) > STUCK_SHOWN_MAX:
        text.append(f"\n\nand {len(stuck) - STUCK_SHOWN_MAX} more: haptera why", "red")
    if screen.broken is not None:
        text.append(f"\n\n{shown(screen.broken)}; trying again", "yellow")
    return text


async def _tell(screen: Screen) -> None:
    """Without a terminal: a line whenever the counts changed, and one for each that is stuck."""
    told: set[str] = set()
    last = ""
    while True:
        await screen.news.wait()
        screen.news.clear()
        counts = screen.broken or screen.counts()
        if counts != last:
            last = counts
            say(f"{screen.shown_s:6.1f} s  {counts}")
        stuck = {view.entity: sentence(view) for view in screen.stuck()}
        for entity in sorted(stuck.keys() - told):
            say(f"          {stuck[entity]}")
        told = set(stuck)
        await asyncio.sleep(REDRAW_EVERY_S)
