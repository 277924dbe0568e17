"""Checks of calls that change nothing: looks, watches, refusals, and calls side by side."""

import asyncio
from typing import Final

from haptera.conformance.exam import QUIET_S, Exam
from haptera.conformance.report import CheckFailed, Skipped, quoted
from haptera.conformance.talk import ModuleTalk
from haptera.kinds import KINDS
from haptera.model.declared.schema import Applied, digest_fault
from haptera.model.events import Answered, Ended, Failed
from haptera.model.parts import AT_ONCE, Look
from haptera.runtime import clock

# A time that is so much smaller is in another unit.
UNITS_APART: Final = 500


async def look(exam: Exam, part: Look) -> str:
    """What a look finds is one of its outcomes, and from a time of the clock that calls go by."""
    async with exam.talk() as talk:
        value = await found(exam, talk, part)
        await talk.ping()
        if talk.blocked is not None:
            do = "await it, or write a plain function, which runs in a thread"
            raise CheckFailed(talk.blocked, do)
        return f"it found {quoted(value)}"


async def found(exam: Exam, talk: ModuleTalk, part: Look) -> str:
    """What a look finds, a ping being answered meanwhile.

    Raises:
        CheckFailed: what it said cannot be. Skipped: it cannot tell here.
    """
    begun = clock.now_ns()
    call = exam.ask(talk, part)
    await talk.ping()
    answer = await talk.answer(call, part.within_ms / 1_000)
    match answer:
        case Answered(value=value, at=at):
            check_reading(part, value)
            # A reading may be older than the call; one that counts in microseconds seems far older.
            if not begun // UNITS_APART <= at <= clock.now_ns():
                do = (
                    "set `at_ns` to the start of the look, or to the time of the reading, in"
                    " nanoseconds of CLOCK_BOOTTIME"
                )
                raise CheckFailed(f"`at_ns` is {at}, but the look was requested at {begun}", do)
            return value
        case Failed(text=text):
            seen = f"it failed: {quoted(text)}"
            if exam.subject.acts:
                raise CheckFailed(seen, "fix the look, or find out what it needs")
            do = "run the check where it can look: use --attribute and --setting"
            raise Skipped(f"{seen}; its reading was not checked", do)
        case Ended():
            raise CheckFailed(
                "a look was answered `ended`", "answer looks with `answered`, or `failed`"
            )


def check_reading(part: Look, value: str) -> None:
    """Raises CheckFailed where a look may not find this."""
    if _is_applied(part):
        if (fault := digest_fault(value)) is not None:
            raise CheckFailed(f"it found {fault}", "answer with the given digest")
    elif value not in part.outcomes:
        do = f"answer one of {', '.join(part.outcomes)}, or `failed` if it cannot tell"
        raise CheckFailed(f"it found {quoted(value)}, which is not one of its outcomes", do)


async def watch(exam: Exam, part: Look) -> str:
    async with exam.talk() as talk:
        call = exam.ask(talk, part, watch=True)
        await talk.ping()
        await asyncio.sleep(QUIET_S)
        await talk.ping()
        for sighted in talk.sighted:
            check_reading(part, sighted.value)
        talk.cancel(call)
        await talk.ping()
        talk.forget(call)
        await asyncio.sleep(QUIET_S)
        await talk.ping()
        return f"{len(talk.sighted)} reported, and none after the watch was cancelled"


async def refuses_late_looks(exam: Exam) -> str:
    if not exam.looks:
        raise Skipped("it has no look")
    async with exam.talk() as talk:
        for part in exam.looks:
            await exam.refuses_late(talk, part)
        return "looks whose deadline had passed were refused"


async def refuses_unknown_parts(exam: Exam) -> str:
    async with exam.talk() as talk:
        answer = await talk.answer(exam.ask(talk, exam.unknown_part()), exam.subject.patience_s)
        if not isinstance(answer, Failed) or not answer.refused:
            do = "answer a call of an undeclared part with `failed` and `refused`"
            raise CheckFailed(f"a call of an undeclared part was answered {quoted(answer)}", do)
        await talk.ping()
        return "a call of an undeclared part was refused"


async def serves_side_by_side(exam: Exam) -> str:
    """As many calls at once as it declares that it takes, each answered once."""
    count = min(exam.manifest.at_once, AT_ONCE)
    async with exam.talk() as talk:
        calls = [exam.harmless(talk) for _ in range(count)]
        await talk.ping()
        for call in calls:
            await talk.answer(call, exam.harmless_within_s)
        await talk.ping()
        return f"{count} simultaneous calls were answered, each exactly once"


async def tells_entities_apart(exam: Exam) -> str:
    """What a look finds of an entity, it finds beside others too, which may not be there."""
    if not exam.looks:
        raise Skipped("it has no look")
    part = exam.looks[0]
    async with exam.talk() as talk:
        await found(exam, talk, part)
        first = exam.ask_beside(talk, part, 1)
        own = exam.ask(talk, part)
        last = exam.ask_beside(talk, part, 2)
        await talk.ping()
        answers = [await talk.answer(one, part.within_ms / 1_000) for one in (first, own, last)]
        if not isinstance(answers[1], Answered):
            do = "answer for each entity separately: an error of one must not affect others"
            raise CheckFailed(
                f"with two other calls at the same time, the answer was {quoted(answers[1])}", do
            )
        check_reading(part, answers[1].value)
        return "calls of other entities do not change what it finds"


async def forgets_what_is_cancelled(exam: Exam) -> str:
    async with exam.talk() as talk:
        call = exam.harmless(talk)
        talk.cancel(call)
        await talk.ping()
        # What it said before it read the cancel was said.
        talk.forget(call)
        await talk.answer(exam.harmless(talk), exam.harmless_within_s)
        await talk.ping()
        return "a cancelled call was not answered, and the next call was"


async def skips_unknown_cancels(exam: Exam) -> str:
    async with exam.talk() as talk:
        talk.cancel(4_000_000)
        await talk.ping()
        return "cancelling an unknown call had no effect"


def _is_applied(part: Look) -> bool:
    kind = KINDS.get(part.kind)
    variable = None if kind is None else kind.variable(part.at)
    return variable is not None and variable.values is Applied
