"""One system on this node, as the parts of the module are handed it."""

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from haptera.kinds.system import SystemLimits, SystemRun, parse_limits
from haptera.modules.system.container import Runtime
from haptera.modules.system.home import ImageRefusal, Staged, SystemHome
from haptera.modules.system.mounts import Root
from haptera.sdk import HapteraError, Refused, Target


@dataclass(frozen=True, slots=True)
class System:
    """One system on this node: what it should be, where it is, and what runs it."""

    target: Target
    home: SystemHome
    runtime: Runtime

    @property
    def image(self) -> str:
        """The image that is desired, by name or digest.

        Raises:
            Refused: none is.
        """
        reference = str(self.target.values.get("image") or "")
        if not reference:
            raise Refused("no image is desired")
        return reference

    @property
    def spare(self) -> str | None:
        """The image that is to be kept ready beside it, if any is."""
        said = self.target.values.get("spare")
        return None if said is None else str(said)

    @property
    def health(self) -> tuple[str, ...]:
        """The command that says whether a system is well; none: whichever runs is."""
        return tuple(shlex.split(str(self.target.values.get("health") or "")))

    @property
    def limits(self) -> SystemLimits:
        """What it may take."""
        said = self.target.values.get("limits")
        return SystemLimits() if said is None else parse_limits(str(said))

    @contextmanager
    def refusing(self, reference: str) -> Iterator[None]:
        """What fails in here is held against the image."""
        try:
            yield
        except (HapteraError, Refused) as error:
            self.home.note_refused(ImageRefusal(reference, self._attempt, str(error)))
            raise

    def is_refused(self, reference: str) -> str | None:
        """Why this image does not run here, where that was found at this attempt."""
        found, started = self.home.refused(), self.home.started()
        if found is not None and (found.reference, found.attempt) == (reference, self._attempt):
            return found.why
        ended = started is not None and self.home.run() is SystemRun.FAILED
        if ended and started is not None and started.reference == reference:
            return self.home.last_words()
        return None

    @property
    def _attempt(self) -> int | None:
        said = self.target.values.get("attempt")
        return None if said is None else int(said)

    @property
    def ready(self) -> tuple[Root, Staged]:
        """What was staged for what is desired.

        Raises:
            Refused: nothing was.
        """
        found = self.home.staged_for(self.image)
        if found is None:
            raise Refused("its image is not staged")
        return found
