"""A module's process takes over from the one before it, with the parts that it declares now."""

from haptera.core.answers import Answers
from haptera.core.catalog import Catalog
from haptera.core.rows.table import Table
from haptera.core.side import Side
from haptera.core.supervise import Supervisor
from haptera.core.sync.links import Links
from haptera.core.turn import Turn
from haptera.model.errors import HapteraError
from haptera.model.events import Ready
from haptera.model.packing import schema_digest
from haptera.model.parts import Manifest


class Takeover:
    """Lets a process serve that is what it should be; `here` is what this side looks at."""

    def __init__(
        self,
        side: Side,
        catalog: Catalog,
        table: Table,
        supervisor: Supervisor,
        answers: Answers,
        links: Links,
        here: set[tuple[str, str]],
    ) -> None:
        self._side = side
        self._catalog = catalog
        self._table = table
        self._supervisor = supervisor
        self._answers = answers
        self._links = links
        self._here = here

    def ready(self, turn: Turn, event: Ready) -> None:
        """A process can serve: new calls go to it, unless it was ended meanwhile, or is wrong."""
        if not self._supervisor.awaits(event):
            return
        problem = self._supervisor.mismatch(event) or self._replan(event.manifest)
        if problem is not None:
            self._supervisor.refuse(turn, event.module, problem)
            return
        replaced = self._supervisor.serves(turn, event)
        if replaced is not None:
            self._answers.move_watches(turn, event.module, replaced)
            for row in self._table:
                row.reconsider(event.module)

    def _replan(self, manifest: Manifest | None) -> str | None:
        """Plan with what a module declares now, or say why that cannot be.

        Neighbours are told, and both sides wait until they plan with the same.
        """
        if manifest is None or manifest == self._catalog.manifests[manifest.name]:
            return None
        try:
            self._catalog.replace(manifest)
        except HapteraError as error:
            return f"declares what cannot be: {error}"
        self._here.clear()
        self._here.update(self._catalog.looked_at(self._side.context))
        kinds = self._catalog.kinds.values()
        self._links.schema = schema_digest(kinds, self._catalog.parts())
        return None
