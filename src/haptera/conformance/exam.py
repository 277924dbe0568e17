"""What all checks of one module share: what it declared, and new processes to talk to."""

import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from haptera.conformance.report import CheckFailed, quoted
from haptera.conformance.subject import CheckedModule
from haptera.conformance.talk import ModuleTalk
from haptera.model.effects import Work
from haptera.model.events import Failed
from haptera.model.parts import Look, Manifest, Part, Step
from haptera.runtime import clock
from haptera.runtime.processes.forking import LoopZygote
from haptera.sdk.target import Boot

Check = Callable[["Exam"], Awaitable[str]]

MS: Final = 1_000_000
# How long a module is listened to that has nothing to say.
QUIET_S: Final = 0.3
_REFUSE_FIRST = (
    "find the cause; answer a late call with `failed` and `refused` before anything is"
    " opened or done"
)
_SAY_REFUSED = "read the clock before acting: after the deadline, answer `failed` with `refused`"


class Exam:
    """One module under check; each check talks to processes of its own, in folders of their own."""

    def __init__(self, subject: CheckedModule, zygote: LoopZygote, folder: Path) -> None:
        self.subject = subject
        self.known: Manifest | None = None
        self.said_canary: str | None = None
        # Made up anew, so that it can be nowhere but where it was copied to.
        self.canary = f"canary-{secrets.token_hex(12)}"
        self._zygote = zygote
        self._folder = folder
        self._talks = 0

    @property
    def manifest(self) -> Manifest:
        """What it declared; no check that needs it is run before that is known."""
        assert self.known is not None
        return self.known

    @property
    def name(self) -> str:
        """As it declares, and as it is called while it has not declared anything."""
        return self.subject.place.name if self.known is None else self.known.name

    @property
    def looks(self) -> tuple[Look, ...]:
        return self.manifest.looks

    @asynccontextmanager
    async def started(self) -> AsyncIterator[ModuleTalk]:
        """A process that nothing was said to yet."""
        self._talks += 1
        folder = self._folder / str(self._talks)
        folder.mkdir()
        talk = ModuleTalk(self.subject, self.name, folder, self.canary, self.known)
        await talk.start(self._zygote)
        try:
            yield talk
        finally:
            await talk.close()
            printed = "its output" if self.canary.encode() in talk.log.read_bytes() else None
            self.said_canary = self.said_canary or talk.said_canary or printed

    @asynccontextmanager
    async def talk(self) -> AsyncIterator[ModuleTalk]:
        """A process that is ready."""
        async with self.started() as talk:
            await talk.begin()
            yield talk

    def ask_beside(self, talk: ModuleTalk, part: Look, other: int) -> int:
        """Call a look of another entity than all others are asked of."""
        deadline = clock.now_ns() + part.within_ms * MS
        call = self.subject.call(talk.number(), Work.LOOK, self.name, part, deadline, other=other)
        return talk.call(call)

    def ask(self, talk: ModuleTalk, part: Part, *, watch: bool = False, late: bool = False) -> int:
        """Call a part, in time or too late for it, and return the number of the call."""
        work = Work.WATCH if watch else Work.LOOK if isinstance(part, Look) else Work.STEP
        now = clock.now_ns()
        deadline = None if watch else now - 1_000 * MS if late else now + part.within_ms * MS
        call = self.subject.call(talk.number(), work, self.name, part, deadline)
        enrols = isinstance(part, Step) and part.enrols
        return talk.call(call, Boot(self.canary, self.canary, "127.0.0.1") if enrols else None)

    async def refuses_late(self, talk: ModuleTalk, part: Part) -> None:
        """Raises CheckFailed where a call that is too late is not answered by `refused`."""
        answer = await talk.answer(self.ask(talk, part, late=True), self.subject.patience_s)
        if not isinstance(answer, Failed):
            raise CheckFailed(f"{part.name} started after its deadline", _SAY_REFUSED)
        if not answer.refused:
            seen = f"{part.name} was called after its deadline, and failed: {quoted(answer.text)}"
            raise CheckFailed(seen, _REFUSE_FIRST)

    def harmless(self, talk: ModuleTalk) -> int:
        """Call what changes nothing: a look, or, where it has none, a part that is not there."""
        part = self.looks[0] if self.looks else self.unknown_part()
        return self.ask(talk, part)

    @property
    def harmless_within_s(self) -> float:
        """How long a harmless call may take."""
        return self.looks[0].within_ms / 1_000 if self.looks else self.subject.patience_s

    def unknown_part(self) -> Look:
        kind = next((part.kind for part in self.manifest.parts), "node")
        return Look(self.name, "no_such_part", kind, "no_such_variable", ())
