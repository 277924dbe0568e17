"""Recorded answers of a system: what a declared module finds and sends when it is answered so."""

from collections.abc import Iterator, Mapping
from inspect import iscoroutinefunction
from typing import Any, Final

import msgspec

from haptera.modules.declared.exchange import ApiRequest, PlatformAnswer, PlatformError
from haptera.modules.declared.module import made
from haptera.modules.declared.parts import AskedEntity
from haptera.modules.declared.terms import Declaration
from haptera.sdk import EntityId, HapteraError, Refused, Setup, Target
from haptera.sdk.commands import Program, ProgramResult

# The digest of the desired state in these tests: a look that finds it says `current`.
DIGEST: Final = "current"


class RecordedAnswer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An answer of an API (`status`, `headers`, `body`), or what a program came to."""

    status: int | None = None
    headers: dict[str, str] = {}
    body: Any = None
    out: str = ""
    errors: str = ""


class RecordedCase(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A look or a step of an entity, the answers to what is asked, and what comes of it.

    `answers` are by request, `GET /path`, or by a command's words; several are given in order.
    """

    entity: str
    look: str | None = None
    step: str | None = None
    attributes: dict[str, str] = {}
    values: dict[str, str | int] = {}
    answers: dict[str, RecordedAnswer | list[RecordedAnswer]] = {}
    finds: str | None = None
    sends: Any = None
    fails: str | None = None

    def __str__(self) -> str:
        return f"{self.look or self.step} of {self.entity}"


async def faults_of(case: RecordedCase, name: str, terms: Declaration, setup: Setup) -> list[str]:
    """The differences from what the case expects; none where it passes.

    Raises:
        HapteraError: the module has no such part.
    """
    player = _Player(case.answers, "" if terms.http is None else terms.http.url)
    module = made(name, terms, player.ask, player.run)
    parts: Mapping[str, Any] = {**module.lookers, **module.steppers}
    part = case.look or case.step or ""
    if (part in module.lookers) != (case.look is not None) or part not in parts:
        do = f"it has {', '.join(parts)}"
        raise HapteraError(f"module {name} has no look or step {part!r}", do=do)
    found, error = None, None
    async with module.alive(setup) as session:
        target = Target(
            _entity(case.entity, terms.kind),
            attributes=case.attributes,
            values=case.values,
            digest=DIGEST,
            settings=setup.settings,
            session=session,
        )
        try:
            is_for_many = part in module.together
            found = await _called(parts[part], AskedEntity(target), is_for_many=is_for_many)
        except (HapteraError, PlatformError, Refused) as failure:
            error = str(failure)
    return [*_faults(case, found, error, player)]


async def _called(function: Any, asked: AskedEntity, *, is_for_many: bool) -> str | None:
    assert iscoroutinefunction(function)
    if not is_for_many:
        found = await function(asked)
        return None if found is None else str(found)
    told = (await function({asked.target.entity: asked}))[asked.target.entity]
    if isinstance(told, Exception):
        raise told
    return str(told)


def _faults(
    case: RecordedCase, found: str | None, error: str | None, player: "_Player"
) -> Iterator[str]:
    if case.fails is None and error is not None:
        yield f"it fails: {error}"
    elif case.fails is not None and case.fails not in (error or ""):
        yield f"it should fail with {case.fails!r}: {error or 'it does not fail'}"
    if case.finds is not None and found != case.finds:
        yield f"it finds {found!r}, not {case.finds!r}"
    if case.sends is not None and case.sends not in player.sent:
        yield f"it sends {player.sent}, not {case.sends!r}"
    if unasked := sorted(player.unasked()):
        yield f"it does not ask for {', '.join(unasked)}"


class _Player:
    """Gives the recorded answers, each to its request; the last one of a request again."""

    def __init__(
        self, answers: Mapping[str, RecordedAnswer | list[RecordedAnswer]], url: str
    ) -> None:
        self._answers = {
            asked: [*said] if isinstance(said, list) else [said] for asked, said in answers.items()
        }
        self._base = "/" + url.partition("://")[2].partition("/")[2].rstrip("/")
        self._asked: set[str] = set()
        self.sent: list[Any] = []

    async def ask(self, request: ApiRequest) -> PlatformAnswer:
        path = request.path.removeprefix(self._base.rstrip("/"))
        if request.body is not None:
            self.sent.append(msgspec.json.decode(request.body))
        said = self._said(f"{request.method} {path}")
        headers = {name.lower(): value for name, value in said.headers.items()}
        status = 200 if said.status is None else said.status
        return PlatformAnswer(status, headers, msgspec.json.encode(said.body))

    async def run(self, program: Program, within_s: float) -> ProgramResult:
        del within_s
        said = self._said(" ".join(program.words))
        return ProgramResult(said.status or 0, said.out.encode(), said.errors.encode())

    def unasked(self) -> set[str]:
        return self._answers.keys() - self._asked

    def _said(self, asked: str) -> RecordedAnswer:
        self._asked.add(asked)
        if not (left := self._answers.get(asked)):
            raise PlatformError(f"no answer is recorded to {asked}")
        return left.pop(0) if len(left) > 1 else left[0]


def _entity(text: str, kind: str) -> EntityId:
    name, _, node = text.removeprefix(f"{kind}:").partition("@")
    return EntityId(kind, name, node or (name if kind == "node" else None))
