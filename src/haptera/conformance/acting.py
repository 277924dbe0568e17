"""Checks of calls that change something: steps and gates, taken only where the subject `acts`."""

import asyncio
from collections.abc import Sequence
from typing import Final

from haptera.conformance.asking import found
from haptera.conformance.exam import MS, Exam
from haptera.conformance.report import CheckFailed, Skipped, quoted
from haptera.conformance.talk import SLACK_S, ModuleTalk
from haptera.model.effects import Work
from haptera.model.events import Answered, Ended, Failed
from haptera.model.parts import ANY, GATE_WITHIN_MS, Change, Look, Step
from haptera.runtime import clock

# How long between the looks for what a step brings about.
LOOK_EACH_S: Final = 0.05
# No call has this number.
_NO_CALL: Final = 4_000_000
_ACT: Final = "use --act with a device that may be switched"


async def refuses_late_steps(exam: Exam) -> str:
    """A step that is too late is not taken: nobody waits for its outcome any more."""
    _must_act(exam)
    if not exam.manifest.steps:
        raise Skipped("it has no step")
    async with exam.talk() as talk:
        for part in exam.manifest.steps:
            await exam.refuses_late(talk, part)
        return "steps whose deadline had passed were refused"


async def steps(exam: Exam) -> str:
    """Each step that a state leads to is taken, and a look then finds what it declares."""
    _must_act(exam)
    if not exam.manifest.steps:
        raise Skipped("it has no step")
    async with exam.talk() as talk:
        left = list(exam.manifest.steps)
        taken: list[str] = []
        while (part := await _next(exam, talk, left)) is not None:
            left.remove(part)
            taken.append(part.name)
            await _take(exam, talk, part)
        if left:
            names = ", ".join(one.name for one in left)
            do = "start with the device in a state in which a step is possible"
            raise Skipped(f"ran: {', '.join(taken) or 'none'}; not possible: {names}", do)
        return f"ran, with the declared results: {', '.join(taken)}"


async def heeds_stops(exam: Exam) -> str:
    """A step that is stopped is answered all the same, and `refused` only where it did nothing."""
    _must_act(exam)
    async with exam.talk() as talk:
        talk.stop(_NO_CALL)
        await talk.ping()
        left = [one for one in exam.manifest.steps if one.stoppable]
        stopped: list[str] = []
        while (part := await _next(exam, talk, left)) is not None:
            left.remove(part)
            stopped.append(part.name)
            await _stop(exam, talk, part)
        if not stopped:
            do = "start with the device in a state in which a step is possible"
            raise Skipped("no stoppable step is possible in the present state", do)
        return f"stopped, and answered: {', '.join(stopped)}"


async def holds_and_releases(exam: Exam) -> str:
    _must_act(exam)
    async with exam.talk() as talk:
        held = [await _gate(exam, talk, Work.HOLD) for _ in range(2)]
        released = [await _gate(exam, talk, Work.RELEASE) for _ in range(2)]
        for answer in released:
            if not isinstance(answer, Ended):
                raise CheckFailed(
                    f"a request to release was answered {quoted(answer)}", "release, held or not"
                )
        for answer in held:
            if isinstance(answer, Answered) or (isinstance(answer, Failed) and not answer.refused):
                do = "hold and answer `ended`, or change nothing and answer `refused`"
                raise CheckFailed(f"a request to hold was answered {quoted(answer)}", do)
        await talk.ping()
        return "two requests to hold and two to release were answered"


async def _stop(exam: Exam, talk: ModuleTalk, part: Step) -> None:
    before = {one.variable: await _now(exam, talk, part, one.variable) for one in part.changes}
    call = exam.ask(talk, part)
    talk.stop(call)
    await talk.ping()
    answer = await talk.answer(call, part.within_ms / 1_000)
    if isinstance(answer, Answered):
        raise CheckFailed(
            f"{part.name} was answered {quoted(answer.value)}", "answer steps with `ended`"
        )
    for variable, value in before.items():
        now = await _now(exam, talk, part, variable)
        if isinstance(answer, Failed) and answer.refused and now != value:
            seen = f"{part.name} was `refused`, and {variable} is {quoted(now)}, not {value!r}"
            raise CheckFailed(seen, "answer `refused` only if nothing was or will be changed")


def _must_act(exam: Exam) -> None:
    if not exam.subject.acts:
        raise Skipped("steps and gates were not requested", _ACT)


async def _gate(exam: Exam, talk: ModuleTalk, work: Work) -> Answered | Ended | Failed:
    deadline = clock.now_ns() + GATE_WITHIN_MS * MS
    call = talk.call(exam.subject.gate_call(talk.number(), work, exam.name, deadline))
    return await talk.answer(call, GATE_WITHIN_MS / 1_000)


async def _next(exam: Exam, talk: ModuleTalk, left: Sequence[Step]) -> Step | None:
    """A step that starts from what is now and leads elsewhere."""
    for part in left:
        now = {one.variable: await _now(exam, talk, part, one.variable) for one in part.changes}
        if all(_starts(change, now[change.variable]) for change in part.changes):
            return part
    return None


def _starts(change: Change, value: str | None) -> bool:
    """Whether this change may be made from here; where no look tells, from where it will."""
    if value is None:
        return True
    sources = change.sources
    return value != change.target and (sources == (ANY,) or value in sources)


async def _take(exam: Exam, talk: ModuleTalk, part: Step) -> None:
    call = exam.ask(talk, part)
    await talk.ping()
    answer = await talk.answer(call, part.within_ms / 1_000)
    if isinstance(answer, Answered):
        raise CheckFailed(
            f"{part.name} was answered {quoted(answer.value)}", "answer steps with `ended`"
        )
    if isinstance(answer, Failed):
        do = "fix the step, or find out what the device needs"
        raise CheckFailed(f"{part.name} failed: {quoted(answer.text)}", do)
    for change in part.changes:
        if not change.expected:
            await _came(exam, talk, part, change)


async def _came(exam: Exam, talk: ModuleTalk, part: Step, change: Change) -> None:
    """Look until the change is there, as long as it may come late."""
    until = clock.now_ns() + part.late_ms * MS + round(SLACK_S * 1_000) * MS
    value = await _now(exam, talk, part, change.variable)
    while value not in (None, change.target):
        if clock.now_ns() > until:
            seen = f"after {part.name} {change.variable} is {quoted(value)}, not {change.target!r}"
            raise CheckFailed(seen, "the step must have its declared result, within its late_ms")
        await asyncio.sleep(LOOK_EACH_S)
        value = await _now(exam, talk, part, change.variable)


async def _now(exam: Exam, talk: ModuleTalk, part: Step, variable: str) -> str | None:
    """What a look finds, or nothing where none looks there."""
    look = _look_at(exam, part.kind, variable)
    return None if look is None else (await found(exam, talk, look))


def _look_at(exam: Exam, kind: str, variable: str) -> Look | None:
    return next((one for one in exam.looks if (one.kind, one.at) == (kind, variable)), None)
