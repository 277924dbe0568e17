"""All checks, by their names and in their order, and what comes of them for one module."""

import asyncio
from collections.abc import Callable, Collection, Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from haptera.conformance import acting, asking, ending, speaking
from haptera.conformance.exam import Check, Exam
from haptera.conformance.report import CheckFailed, CheckResult, CheckVerdict, Report, Skipped
from haptera.conformance.subject import CheckedModule
from haptera.model.parts import Manifest
from haptera.runtime.processes.forking import PRELOAD, LoopZygote, exec_zygote


async def keeps_secrets(exam: Exam) -> str:
    """Asked last: all messages before had no secret; this one has."""
    async with exam.talk() as talk:
        await talk.answer(exam.harmless(talk), exam.harmless_within_s)
    if exam.said_canary is not None:
        raise CheckFailed(
            f"a secret is in {exam.said_canary}",
            "do not print or answer settings, `boot` or whole frames",
        )
    return "no secret is in its output or answers"


# What each check is called, and what it runs; those of looks and watches are run for each part.
CHECKS: Final[dict[str, Check]] = {
    "begins": speaking.begins,
    "waits-for-begin": speaking.waits_for_begin,
    "can-be-planned-with": speaking.can_be_planned_with,
    "declares-again": speaking.declares_again,
    "answers-pings": speaking.answers_pings,
    "takes-frames-cut-anywhere": speaking.takes_frames_cut_anywhere,
    "takes-a-full-frame": speaking.takes_a_full_frame,
    "skips-unknown-keys": speaking.skips_unknown_keys,
    "two-at-once": speaking.two_at_once,
    "refuses-unknown-parts": asking.refuses_unknown_parts,
    "refuses-late-looks": asking.refuses_late_looks,
    "serves-side-by-side": asking.serves_side_by_side,
    "tells-entities-apart": asking.tells_entities_apart,
    "forgets-what-is-cancelled": asking.forgets_what_is_cancelled,
    "skips-unknown-cancels": asking.skips_unknown_cancels,
    "refuses-late-steps": acting.refuses_late_steps,
    "takes-steps": acting.steps,
    "heeds-stops": acting.heeds_stops,
    "holds-and-releases": acting.holds_and_releases,
    "ends-before-it-began": ending.ends_before_it_began,
    "ends-with-its-link": ending.ends_with_its_link,
    "ends-with-its-link-at-work": ending.ends_with_its_link_at_work,
    "ends-on-another-beginning": ending.ends_on_another_beginning,
    "ends-on-rubbish": ending.ends_on_rubbish,
    "ends-on-what-is-no-map": ending.ends_on_what_is_no_map,
    "ends-on-a-frame-too-large": ending.ends_on_a_frame_too_large,
    "ends-on-an-unknown-op": ending.ends_on_an_unknown_op,
    "ends-on-a-broken-call": ending.ends_on_a_broken_call,
    "keeps-secrets": keeps_secrets,
}
FIRST: Final = "begins"
# What the checks of single looks begin with; the look's name follows.
OF_PARTS: Final = ("look", "watch")
# What some checks are of; those of other modules are not made at all.
_ONLY_OF: Final[dict[str, Callable[[Manifest], bool]]] = {
    "heeds-stops": lambda known: any(one.stoppable for one in known.steps),
    "holds-and-releases": lambda known: known.gate,
}
_BEFORE_ACTING: Final = "refuses-late-steps"


def check_module(
    subject: CheckedModule,
    told: Callable[[CheckResult], object] = lambda _: None,
    *,
    only: Collection[str] = (),
) -> Report:
    """Check a module by talking to processes of it; `told` is called with each check as it is done.

    With `only`, the checks of these names and no others, besides the first.
    """
    with TemporaryDirectory(prefix="haptera-check-") as folder:
        return asyncio.run(_checked(subject, Path(folder), told, only))


async def _checked(
    subject: CheckedModule,
    folder: Path,
    told: Callable[[CheckResult], object],
    only: Collection[str],
) -> Report:
    zygote = LoopZygote(lambda: exec_zygote(PRELOAD))
    exam = Exam(subject, zygote, folder)
    done: list[CheckResult] = []
    try:
        for name, check in _checks(exam):
            if only and name not in (FIRST, *only):
                continue
            done.append(await _run(name, check, exam))
            told(done[-1])
        for name in [] if exam.known is None else sorted({*only} - {one.name for one in done}):
            done.append(CheckResult(name, CheckVerdict.SKIPPED, "the module has no such part"))
            told(done[-1])
    finally:
        zygote.close()
    return Report(None if exam.known is None else exam.name, tuple(done))


def _checks(exam: Exam) -> Iterator[tuple[str, Check]]:
    """The checks of this module; the first of them names the others."""
    for name, check in CHECKS.items():
        if name == _BEFORE_ACTING:
            yield from _of_looks(exam)
        if name == FIRST or (exam.known is not None and _is_of(name, exam.known)):
            yield name, check


def _is_of(name: str, known: Manifest) -> bool:
    return name not in _ONLY_OF or _ONLY_OF[name](known)


def _of_looks(exam: Exam) -> Iterator[tuple[str, Check]]:
    for look in () if exam.known is None else exam.looks:
        yield f"look {look.name}", partial(asking.look, part=look)
        if look.watched:
            yield f"watch {look.name}", partial(asking.watch, part=look)


async def _run(name: str, check: Check, exam: Exam) -> CheckResult:
    try:
        return CheckResult(name, CheckVerdict.PASSED, await check(exam))
    except Skipped as skipped:
        return CheckResult(name, CheckVerdict.SKIPPED, skipped.seen, skipped.do)
    except CheckFailed as wrong:
        return CheckResult(name, CheckVerdict.FAILED, wrong.seen, wrong.do)
