"""Entities in words, for terminals: what they want, what is known, and what stands between."""

import re
from collections.abc import Iterator, Mapping
from itertools import zip_longest
from typing import Final

from haptera.kinds import KINDS
from haptera.model.answers.explained import Alternative, Explained
from haptera.model.answers.views import (
    CONTESTED,
    SETTLED,
    Condition,
    DoingView,
    EntityDetail,
    EntityView,
    LinkView,
    ReadingView,
)
from haptera.model.parts import EnrolmentLevel
from haptera.model.walltime import duration, utc_text
from haptera.runtime import clock

COLOURS = {
    Condition.IDLE: "bright_black",
    Condition.CONVERGED: "green",
    Condition.ACTING: "yellow",
    Condition.WAITING: "blue",
    Condition.STUCK: "red",
}

# A part that is under way for so many times as long as usual, and this more, is said to be.
SLOW_FACTOR = 2
SLOW_MS = 1_000

# Parts of another chain that are shown.
PARTS_SHOWN_MAX = 6


# A terminal's control sequences (ECMA-48): colours, and where the cursor goes.
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[@-Z\\-_])")

# How a node's token came to it; a later version may know other levels.
_BY_LEVEL: Final[Mapping[str, str]] = {
    EnrolmentLevel.WINDOW: ", its token came over the network that it booted from",
    EnrolmentLevel.SIGNED: ", its token came to a signed boot loader",
    EnrolmentLevel.OUT_OF_BAND: ", its token came through its BMC, hypervisor or cloud",
}

# What runs the cluster is of interest where it does not run.
_BEHIND = ("module", "freeze", "policy", "budget")


def in_front(kind: str, condition: Condition) -> bool:
    """Whether a person counts it: nodes, services, and of what runs them what does not."""
    return kind not in _BEHIND or condition not in SETTLED


def unescaped(text: str) -> str:
    """A printable line of what was written for a terminal: without colours, and the like."""
    return printable(_ESCAPES.sub("", text))


def printable(text: str) -> str:
    """The text in one line, without what would steer a terminal: modules' words come from afar."""
    return "".join(one if one.isprintable() else " " for one in text)


def values(view: EntityView) -> str:
    """What is known of each variable that is desired, or else of all, and what is wanted."""
    names = view.desired.keys() & view.observed.keys() or view.observed.keys()
    return " ".join(_value(view, name) for name in sorted(names)) or "-"


def standing(condition: Condition, frozen: str | None) -> str:
    """Where something stands in a word; and that it is frozen, if it is."""
    return condition.value if frozen is None else f"{condition}, frozen"


def held(view: EntityView) -> str:
    """What holds it, behind a sentence that does not say so: a freeze."""
    return "" if view.frozen in (None, view.why) else f"; {printable(view.frozen or '')}"


def sentence(view: EntityView) -> str:
    """One entity in one line: where it stands and on what, and what it is frozen by."""
    match view.condition:
        case Condition.CONVERGED:
            return f"{view.entity} is as desired{held(view)}"
        case Condition.IDLE if view.kind == "group" and (says := view.desired.get("says")):
            return f"{view.entity}: {printable(str(says.value))}{held(view)}"
        case Condition.IDLE:
            return f"{view.entity}: nothing is desired of it{held(view)}"
        case condition:
            reason = printable(_contested(view) or view.why or "no reason is known")
            slow = "" if view.doing is None or not _is_slow(view.doing) else _lasting(view.doing)
            slow = slow.removeprefix(f", for {duration(view.since_ms)}")  # That is said already.
            more = f"{reason}{slow}{held(view)}"
            return f"{view.entity} is {condition} for {duration(view.since_ms)}: {more}"


def of_group(view: EntityView, leases: list[EntityView]) -> Iterator[str]:
    """Why a replica is where it is, and who leads its group, since when."""
    if view.kind == "replica" and (placed := view.attributes.get("placed")):
        yield f"placed: it {printable(placed)}"
    for lease in leases:
        if (line := _led_by(view, lease)) is not None:
            yield line


def _led_by(view: EntityView, lease: EntityView) -> str | None:
    """Of a lease that is held, whose it is and since when, as far as it concerns the view."""
    state, rank = lease.observed.get("state"), lease.desired.get("rank")
    if rank is None or state is None or not state.known or state.value != "held":
        return None
    epoch, whose = lease.name.rpartition(".")[2], f"rank {rank.value} on {lease.node}"
    if view.kind == "replica":
        leads = (view.name.rpartition(".")[2], view.node) == (str(rank.value), lease.node)
        whose = "it leads" if leads else f"it is on standby: {whose} leads"
    else:
        whose = f"{whose} leads"
    return f"{whose} under epoch {epoch}, for {duration(lease.since_ms)}"


def details(view: EntityView) -> Iterator[str]:
    """Below the sentence: what is wanted, what is known and by whom, the chain, the last error."""
    for name, desired in view.desired.items():
        yield f"wants  {name}={printable(str(desired.value))}, says {desired.owner}"
    for name, seen in view.observed.items():
        how = seen.method if seen.known else f"remembered, {seen.method}"
        age = duration(seen.age_ms)
        line = f"knows  {name}={printable(seen.value)}, {how} {age} ago by {printable(seen.by)}"
        yield line if seen.contested is None else f"{line}, but {_read(seen.contested)}"
    if view.enrolment is not None:
        yield f"enrol  {printable(view.enrolment)}{_BY_LEVEL.get(view.enrolment, '')}"
    if view.doing is not None:
        yield f"doing  {view.doing.part}{_lasting(view.doing)}"
    yield from (f"chain  {line}" for line in chain_lines(view.chain, view.explained))
    yield from (f"{label:<6} {line}" for label, line in explained_lines(view.explained))
    if view.error is not None:
        yield f"error  {printable(view.error)}"
    if view.told_by is not None:
        yield f"says   the agent of {view.told_by}"
    yield from outlook(view)


def outlook(view: EntityView) -> Iterator[str]:
    """What was seen besides, what would let it go on, and when that is tried by itself."""
    for name, seen in view.observed.items():
        if seen.known and seen.note is not None and seen.note not in (view.why or ""):
            yield f"noted  {name}: {printable(seen.note)}"
    waits = view.condition is Condition.WAITING and view.again_in_ms is not None
    if view.unblock is not None:
        yield f"needs  {printable(view.unblock)}{_at(view.again_in_ms) if waits else ''}"
    if view.again_in_ms is not None and not waits:
        yield f"again  in {duration(view.again_in_ms)}; at once: haptera retry {view.entity}"


def _at(in_ms: int | None) -> str:
    """When something comes that is waited for."""
    if in_ms is None:
        return ""
    return f", in {duration(in_ms)}: {utc_text(int(clock.wall_s()) + in_ms // 1_000)}"


def told(view: EntityDetail) -> Iterator[str]:
    """The word of the agent on what it does itself, or why that could not be had."""
    if view.unasked is not None:
        yield printable(view.unasked)
    if view.agent is not None:
        yield sentence(view.agent)
        yield from tried_lines(view.agent)
        yield from outlook(view.agent)


def tried_lines(view: EntityView) -> Iterator[str]:
    """The attempts of the side that gives this view, a line each step, oldest first."""
    for one in view.tried:
        yield f"{duration(one.ago_ms)} ago  {one.part}: {printable(one.outcome)}"


def chain_lines(chain: list[LinkView], explained: Explained | None = None) -> Iterator[str]:
    """A chain, a numbered line each link, with what it is for where that was asked."""
    purposes = [] if explained is None else explained.so_that
    for number, (link, purpose) in enumerate(zip_longest(chain, purposes), start=1):
        expect = "" if link.expect is None else f", expecting {link.expect}"
        where = "on the node" if link.where == "self" else f"on the {link.where}"
        mark = "  DISRUPTIVE" if link.disruptive else ""
        why = "" if purpose is None else f", {purpose}"
        yield f"{number}. {link.does}{expect}  ({link.part} {where}){mark}{why}"


def explained_lines(explained: Explained | None) -> Iterator[tuple[str, str]]:
    """What else there is to say of a chain, or of there being none, each with its label."""
    if explained is None:
        return
    if explained.cost:
        yield "costs", f"{explained.cost}{_cheaper(explained.cheaper)}"
    if explained.runner_up is not None:
        other = explained.runner_up
        yield "else", f"{other.cost} {other.text}: {_parts(other.parts)}"
    if explained.no_other:
        yield "else", "there is no other way"
    if explained.nearest is not None:
        near = explained.nearest
        values = " and ".join(f"{name}={value}" for name, value in near.values.items())
        yield "reach", f"{values} can be had, for {near.cost}: {_parts(near.parts)}"
    yield from (("offer", text) for text in explained.offers)
    if explained.cut_short:
        yield "more", "would take too long to find out"


def _cheaper(other: Alternative | None) -> str:
    if other is None:
        return ""
    return f"; it would be {other.cost} by {_parts(other.parts)}, but {other.text}"


def _parts(parts: list[str]) -> str:
    """The first of them, where they are many."""
    more = len(parts) - PARTS_SHOWN_MAX
    shown = ", ".join(parts[:PARTS_SHOWN_MAX])
    return f"{shown} and {more} more" if more > 0 else shown


def _is_slow(doing: DoingView) -> bool:
    return doing.usual_ms is not None and doing.since_ms > SLOW_FACTOR * doing.usual_ms + SLOW_MS


def _lasting(doing: DoingView) -> str:
    usual = "" if doing.usual_ms is None else f" (usually {duration(doing.usual_ms)})"
    return f", for {duration(doing.since_ms)}{usual}"


def _contested(view: EntityView) -> str | None:
    """The reason, where it is that readings contradict each other: each with its age."""
    if view.why is None or not view.why.startswith(CONTESTED):
        return None
    readings: list[ReadingView] = []
    for name, seen in view.observed.items():
        if seen.contested is not None:
            readings.append(seen.contested)
            if seen.contested.variable == name:
                readings.append(ReadingView(name, seen.value, seen.by, seen.age_ms))
    readings.sort(key=lambda one: one.variable)
    return CONTESTED + ", ".join(_read(one) for one in readings)


def _read(one: ReadingView) -> str:
    said = f"{one.by} says {one.variable} {one.value}"
    return f"{printable(said)} ({duration(one.age_ms)} ago)"


def as_read(kind: str, name: str, desired: str | int) -> str:
    """The reading of a variable once this desired value has come about.

    >>> as_read("node", "work", "draining"), as_read("node", "power", "on")
    ('drained', 'on')
    """
    declared = KINDS.get(kind)
    variable = None if declared is None else declared.variable(name)
    return str(desired if variable is None else variable.goal(str(desired)))


def _value(view: EntityView, name: str) -> str:
    seen = view.observed[name]
    text = seen.value if seen.known else f"{seen.value}?"
    desired = view.desired.get(name)
    if desired is None or text == as_read(view.kind, name, desired.value):
        return printable(f"{name}={text}")
    return printable(f"{name}={text}→{desired.value}")
