"""One controller at work on a simulated cluster: real engines, and a clock of its own."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final, Generic, Self, TypeVar

from haptera.core.state.limits import S
from haptera.model.answers.views import EntityView
from haptera.model.changes import Author, Change
from haptera.model.effects import Reply
from haptera.model.entity import EntityId
from haptera.model.token_scope import Scope
from haptera.modules import load
from haptera.sdk import Controller
from haptera.testing.controlling import SimulatedControllers
from haptera.testing.machine import Machine
from haptera.testing.network import NetworkFaults
from haptera.testing.world import World

Settings = TypeVar("Settings")

MODULES: Final = ("labnode", "service")
CALM: Final = NetworkFaults()


class Desk(Generic[Settings]):
    """Runs a controller against a whole simulated cluster; nothing waits, and all is seen.

    The nodes are simulated machines, off at first, whose `refuses` and `trouble` make them bad;
    `declare` gives them to the cluster. Time passes only in `run` and `until`: for the cluster,
    and for what the controller sleeps.
    """

    def __init__(
        self,
        controller: Controller[Settings],
        settings: Mapping[str, object],
        nodes: Iterable[str],
        *,
        seed: int = 0,
    ) -> None:
        self.world = World(seed, nodes, [load(name).manifest() for name in MODULES], CALM)
        self._controllers = SimulatedControllers(self.world, [(controller, settings)])
        self._controllers.begin()

    @property
    def machines(self) -> Mapping[str, Machine]:
        return self.world.machines

    def propose(self, *changes: Change) -> Reply:
        """Write as somebody else, and let time pass until that is answered."""
        return self._controllers.loop.run_until_complete(
            self._controllers.source.propose(changes, None, Author("user:else", may=Scope.ADMIN))
        )

    def entity(self, entity: EntityId) -> EntityView | None:
        """How it is now."""
        return self._controllers.source.entity(entity)

    def run(self, seconds: float) -> None:
        """Let time pass; what the controller raises is raised."""
        self.until(lambda: False, within_s=seconds)

    def until(self, done: Callable[[], bool], *, within_s: float) -> bool:
        """Let time pass until it is so; tells whether it came to that."""
        return self._controllers.pass_until(done, self.world.clock.now + int(within_s * S))

    def close(self) -> None:
        self._controllers.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
