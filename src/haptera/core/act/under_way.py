"""Words on a step under way, and whether it is still wanted."""

from collections.abc import Mapping
from typing import Final

from haptera.core.act.act import first_step
from haptera.core.state.entity.work import Phase
from haptera.core.state.row import EntityState
from haptera.model.parts import Step

_WORDS: Final = {
    Phase.WRITING: "is about to run",
    Phase.WRITTEN: "is about to run",
    Phase.CALLED: "runs",
    Phase.READING: "its outcome is being read",
}


def doing(row: EntityState) -> str:
    """The phase of the step under way, in words; and how far it is, where it says so."""
    stepping = row.work.stepping
    assert stepping is not None
    words = ""
    if stepping.phase is Phase.CALLED and stepping.progress is not None:
        text, done = stepping.progress
        words = f", {text}" if done is None else f", {text} ({done:.0%})"
    return in_phase(row, stepping.step, stepping.phase, words)


def in_phase(row: EntityState, step: Step, phase: Phase, progress: str = "") -> str:
    """A step in this phase, in words."""
    return f"{step.path}: {_WORDS[phase]}{progress}{row.notes(step)}"


def is_unwanted(row: EntityState, goal: Mapping[str, str]) -> bool:
    """Whether a step that can be stopped would not be begun as things are desired now."""
    stepping = row.work.stepping
    assert stepping is not None
    if stepping.phase is not Phase.CALLED or not stepping.step.stoppable or stepping.unwanted:
        return False
    if stepping.goal is None or goal == stepping.goal:
        return False
    return not goal or (row.stance.plan is not None and first_step(row) != stepping.step)
