"""What a module can do: its looks and steps, as values that both sides of a chain compile."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from haptera.model.errors import DeclarationError
from haptera.model.policy import LOOKING, STEPPING, Policy
from haptera.model.reading import Reading

# `from` of a change: any state but known `to` (semantics.md, Step).
ANY: Final = "*"
# The version of the frames, and of what `haptera.sdk` offers: raised where something new comes in.
API: Final = 1
# How long a gate may take to hold or to release.
GATE_WITHIN_MS: Final = 2_000
# How long a gate drains its node at most, a week, as the longest jobs are allowed; the node is let
# go of then, and for so long nobody drains it again.
DRAIN_S_MAX: Final = 7 * 86_400
DRAIN_REST_S: Final = 3_600
# How long any look or step may take, and so a process that is replaced: its last call, a day.
WITHIN_MS_MAX: Final = 86_400_000
# The shortest period of a sampler.
SAMPLED_EVERY_MS_MIN: Final = 1_000
# How many calls a module takes at once that does not say it.
AT_ONCE: Final = 256
AT_ONCE_MAX: Final = 10_000


class Context(StrEnum):
    """Where a part runs: on the node itself, or at its nearest ancestor that has the module."""

    SELF = "self"
    PARENT = "parent"


@dataclass(frozen=True, slots=True)
class Requirement:
    """A variable, attribute or borrowed variable (`node.agent`), and the values it may have."""

    name: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Look:
    """How one variable is learnt; `at` and `outcomes` are semantics.md's v and O(l).

    `every_ms` is how old a reading may grow before it is looked at again, `within_ms` how long
    one look may take. With `watched`, the module also reports changes unasked. `policy` says
    what its failures come to.
    """

    module: str
    name: str
    kind: str
    at: str
    outcomes: tuple[str, ...]
    requires: tuple[Requirement, ...] = ()
    excludes: tuple[Requirement, ...] = ()
    cost: int = 1
    context: Context = Context.SELF
    every_ms: int = 10_000
    within_ms: int = 5_000
    watched: bool = False
    policy: Policy = LOOKING

    @property
    def path(self) -> str:
        return f"{self.module}.{self.name}"


@dataclass(frozen=True, slots=True)
class Change:
    """One variable's part in a step: the states it starts from and where it leads.

    `sources` holds values, the unknown among them, or is `(ANY,)`. With `expected` the target is
    `x?`: what should come of the step but only a look can tell.
    """

    variable: str
    sources: tuple[str, ...]
    target: str
    expected: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """How variables are changed (semantics.md, Step), and what running it may take and do.

    `within_ms` is how long the call may take; `late_ms` how long after it was begun it may still
    take effect; `fails_to` what its time-out lets one infer of its first variable; `disruptive`
    that it may harm what runs; `enrols` that it boots a node, which then needs a token; `policy`
    what its failures come to; `stoppable` that it hears where it is not wanted any more;
    `ends_with_call` that nothing of it comes later than `late_ms` after its call or process ended.
    """

    module: str
    name: str
    kind: str
    changes: tuple[Change, ...]
    requires: tuple[Requirement, ...] = ()
    excludes: tuple[Requirement, ...] = ()
    cost: int = 1
    context: Context = Context.SELF
    within_ms: int = 60_000
    late_ms: int = 60_000
    fails_to: str | None = None
    disruptive: bool = False
    enrols: bool = False
    policy: Policy = STEPPING
    stoppable: bool = False
    ends_with_call: bool = False

    @property
    def path(self) -> str:
        return f"{self.module}.{self.name}"


Part = Look | Step


@dataclass(frozen=True, slots=True)
class Sampler:
    """The periodic measurement of each entity of a kind, apart from all looks.

    It is no part of a chain. `requires` names attributes only.
    """

    module: str
    name: str
    kind: str
    readings: tuple[Reading, ...]
    requires: tuple[Requirement, ...] = ()
    every_ms: int = 10_000
    within_ms: int = 5_000

    @property
    def path(self) -> str:
        return f"{self.module}.{self.name}"


class SettingType(StrEnum):
    """What a setting can be, as JSON has it."""

    TEXT = "text"
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    ANY = "any"


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting that a module takes; a secret one is given by reference only.

    `secrets` are the paths of those below it: `*` is each item, `strips.*.password` one of each.
    `code` are those of what is run or opened (`haptera.model.declared.meaning`); "" is all of it.
    """

    name: str
    type: SettingType = SettingType.ANY
    required: bool = False
    secret: bool = False
    secrets: tuple[str, ...] = ()
    code: tuple[str, ...] = ()

    def __str__(self) -> str:
        marks = [word for word in ("secret", "required") if getattr(self, word)]
        marks += [f"secret in {path}" for path in self.secrets]
        marks += [f"code in {path}" if path else "code" for path in self.code]
        return f"{self.name}: {', '.join([self.type, *marks])}"


class Privilege(StrEnum):
    """What a module's process may do beyond the least: read, ask others, write its own folder.

    `PORTS`: serve at TCP ports, those below 1024 too. `RAW_SOCKETS`: send and take whole packets.
    `DEVICES`: what is below /dev, but for disks. `ROOT`: be its daemon's own user, and where that
    is root, have root's power over files, users and processes. `NAMESPACES`: where that is root,
    have it in namespaces of its own, and mount what containers mount, seen by nobody else.
    `MOUNTS`: the power of `ROOT`, and to mount file systems for all to see, which nobody may from
    whom files are hidden: so none is hidden from it.
    """

    PORTS = "ports"
    RAW_SOCKETS = "raw-sockets"
    DEVICES = "devices"
    ROOT = "root"
    NAMESPACES = "namespaces"
    MOUNTS = "mounts"


class EnrolmentLevel(StrEnum):
    """How a one-time token reaches the node that it was made for: who could have got it instead.

    `WINDOW`: over the network that the node boots from, while its boot is under way; whoever is on
    that network can be faster. `SIGNED`: the same, to a boot loader that takes nothing but what
    is signed. `OUT_OF_BAND`: through its BMC, hypervisor or cloud, never over that network.
    """

    WINDOW = "window"
    SIGNED = "signed"
    OUT_OF_BAND = "out-of-band"


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a module declares of itself before any of it runs.

    A `gate` answers for its node being busy: it holds, so that nothing begins on the node that
    must not be disturbed, or refuses where something runs; and it releases. A `controller` has no
    parts: it is not called but asks, so it runs from the start on. `settings` are those that it
    takes, None where it does not say which. `api` is the version of the frames that it needs.
    `at_once` is how many looks and steps it may have under way in all, `per_device` how many of
    those for one value of the attribute `device`; the rest waits its turn. Of an `exclusive` one
    no two processes run beside each other: the old one ends before the next is started. Of the
    attributes in `unique` no two nodes that it serves may have the same value. Its processes may
    do what it `needs`, and write below the paths that it `writes`, besides the least. `enrolment`
    is how what its steps that enrol are given reaches the node. Its `samplers` measure numbers.

    Raises:
        HapteraError: a limit or a path that cannot be.
    """

    name: str
    version: str
    context: Context
    looks: tuple[Look, ...]
    steps: tuple[Step, ...]
    gate: bool = False
    controller: bool = False
    settings: tuple[Setting, ...] | None = None
    api: int = 1
    at_once: int = AT_ONCE
    device: str | None = None
    per_device: int = 1
    exclusive: bool = False
    unique: tuple[str, ...] = ()
    needs: tuple[Privilege, ...] = ()
    writes: tuple[str, ...] = ()
    enrolment: EnrolmentLevel = EnrolmentLevel.WINDOW
    samplers: tuple[Sampler, ...] = ()

    @property
    def beyond(self) -> str:
        """What it needs beyond the least, in words; nothing where that is enough."""
        return ", ".join([*self.needs, *(f"to write {one}" for one in self.writes)])

    def __post_init__(self) -> None:
        for path in self.writes:
            if not path.startswith("/") or ".." in path.split("/"):
                raise DeclarationError(
                    f"`writes` names {path!r}",
                    where=f"module {self.name}",
                    do="write a path from the root, such as /srv/boot",
                )
        for name in ("at_once", "per_device"):
            if not 1 <= getattr(self, name) <= AT_ONCE_MAX:
                raise DeclarationError(
                    f"`{name}` is {getattr(self, name)}",
                    where=f"module {self.name}",
                    do=f"choose from 1 to {AT_ONCE_MAX}",
                )
        for path, what, value_ms, least in self._durations():
            if not least <= value_ms <= WITHIN_MS_MAX:
                raise DeclarationError(
                    f"`{what}` of {path} is {value_ms / 1_000:g} s",
                    where=f"module {self.name}",
                    do=f"choose from {least / 1_000:g} s to {WITHIN_MS_MAX // 1_000} s, a day",
                )

    def _durations(self) -> Iterator[tuple[str, str, int, int]]:
        """Of whom, which, how long, and the least that it may be."""
        for one in (*self.parts, *self.samplers):
            yield one.path, "within", one.within_ms, 1
        for step in self.steps:
            yield step.path, "late", step.late_ms, 0
        for sampler in self.samplers:
            yield sampler.path, "every", sampler.every_ms, SAMPLED_EVERY_MS_MIN

    @property
    def parts(self) -> tuple[Part, ...]:
        return (*self.looks, *self.steps)
