"""A module's process takes over from the one before it, with the parts that it declares now."""

from dataclasses import dataclass
from typing import Final

from haptera.core.modules.calls import Calls
from haptera.core.modules.catalog import Catalog
from haptera.core.modules.supervise import Supervisor
from haptera.core.state.side import Side
from haptera.core.state.table import EntityTable
from haptera.core.state.turn import Turn
from haptera.core.sync.neighbours import Neighbours
from haptera.model.declared.packing import schema_digest
from haptera.model.errors import HapteraError
from haptera.model.events import Ready
from haptera.model.parts import Manifest
from haptera.planner.domain.pieces import Pieces

# Work, in moves that a search could try: planning with a part from now on.
DECLARING: Final = 200


@dataclass(frozen=True, slots=True)
class Candidate:
    """A process that is to serve once what it declares is judged."""

    event: Ready
    manifest: Manifest
    judging: Pieces[None]


class Takeover:
    """Lets a process serve that is what it should be; `here` is what this side looks at."""

    def __init__(
        self,
        side: Side,
        catalog: Catalog,
        table: EntityTable,
        supervisor: Supervisor,
        neighbours: Neighbours,
        calls: Calls,
        here: set[tuple[str, str]],
    ) -> None:
        self._side = side
        self._catalog = catalog
        self._table = table
        self._supervisor = supervisor
        self._neighbours = neighbours
        self._calls = calls
        self._here = here
        self._candidates: dict[str, Candidate] = {}

    @property
    def waits(self) -> bool:
        """Whether a process waits for its parts to be judged, for which a turn had no time."""
        return bool(self._candidates)

    def ready(self, turn: Turn, event: Ready) -> None:
        """A process can serve: new calls go to it, unless it was ended meanwhile, or is wrong.

        One that declares other parts waits until these are judged.
        """
        if not self._supervisor.awaits(event) or self._supervisor.declines(turn, event):
            return
        manifest = event.manifest
        if manifest is None or manifest == self._catalog.manifests[manifest.name]:
            self._serve(turn, event)
        else:
            self._candidates.pop(event.module, None)
            self._candidates[event.module] = Candidate(
                event, manifest, self._catalog.judge(manifest)
            )
            self.advance(turn)

    def advance(self, turn: Turn) -> None:
        """Go on judging what processes declare, one after the other, while there is time."""
        while self._candidates and turn.allowance.has_time:
            name, one = next(iter(self._candidates.items()))
            try:
                if self._supervisor.awaits(one.event):
                    turn.allowance.spend(next(one.judging))
                    continue
            except StopIteration:
                self._take_over(turn, one)
            except HapteraError as error:
                self._refuse(turn, name, error)
            del self._candidates[name]

    def _take_over(self, turn: Turn, one: Candidate) -> None:
        try:
            self._replan(turn, one.manifest)
        except HapteraError as error:
            self._refuse(turn, one.event.module, error)
        else:
            self._serve(turn, one.event)

    def _refuse(self, turn: Turn, module: str, error: HapteraError) -> None:
        self._supervisor.refuse(turn, module, f"declares a contradiction: {error}")

    def _serve(self, turn: Turn, event: Ready) -> None:
        if self._supervisor.serves(turn, event):
            for row in self._table:
                row.reconsider(event.module)

    def _replan(self, turn: Turn, manifest: Manifest) -> None:
        """Plan with what a module declares now.

        Neighbours are informed, and both sides wait until they plan with the same.
        """
        self._catalog.replace(manifest)
        turn.allowance.spend(DECLARING * len(self._catalog.parts()))
        self._calls.slots.relimit(manifest.name)
        self._here.clear()
        self._here.update(self._catalog.looked_at(self._side.context))
        kinds = self._catalog.kinds.values()
        self._neighbours.replan(schema_digest(kinds, self._catalog.parts()))
