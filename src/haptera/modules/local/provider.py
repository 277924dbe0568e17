"""What a provider of instances is asked, and the module that follows from it: the same for all.

A cloud is three calls. Each is made from a thread, may take `CALL_S_MAX`, and may be made again:
to create what is there, or destroy what is not, changes nothing.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from haptera.kinds import instance
from haptera.kinds.instance import Exist
from haptera.sdk import PARENT, HapteraError, Module, Policy, Target
from haptera.sdk.terms import StepTerms

CALL_S_MAX: Final = 30.0
# A call that failed may have its effect so much later, no more.
LATE_S: Final = 3.0
# What is refused is not asked for again by itself: its pool decides what comes next.
ONCE: Final = Policy(1, backoff_ms=1_000, backoff_ms_max=1_000, cool_down_ms=3_600_000)
# Nothing is left behind for want of trying.
PERSISTENT: Final = Policy(1_000_000, backoff_ms=1_000, backoff_ms_max=30_000, cool_down_ms=1_000)
# The thread that makes a call ends with it.
CREATING: Final[StepTerms] = {
    "within_s": CALL_S_MAX,
    "late_s": LATE_S,
    "ends_with_call": True,
    "policy": ONCE,
}
DESTROYING: Final[StepTerms] = {**CREATING, "policy": PERSISTENT}


@dataclass(frozen=True, slots=True)
class ListedInstance:
    """An instance that a provider has: whose, and the attributes of the node that it is."""

    name: str
    owner: str
    attributes: Mapping[str, str]


class Provider(Protocol):
    """What a cloud can be asked. Whatever goes wrong is any exception."""

    def listed(self) -> Iterable[ListedInstance]:
        """All there are, or at least all of those that bear an owner's tag."""

    def create(self, name: str, owner: str, size: str) -> None:
        """Begin to make one, with its name and owner as tags.

        Raises:
            Refused: it says no; the words are those of a `RefusalWords`.
        """

    def destroy(self, name: str, owner: str) -> None:
        """Begin to end it; another owner's is left alone."""


@dataclass(frozen=True, slots=True)
class InstancePlace:
    """One instance, and who makes it."""

    target: Target
    provider: Provider

    @property
    def owner(self) -> str:
        owner = self.target.attributes.get(instance.owner.name)
        if owner is None:
            raise HapteraError("has no owner", where=str(self.target.entity), do="declare a pool")
        return owner


def provider_module(name: str, connect: Callable[[Target], Provider]) -> Module[InstancePlace]:
    """The module of this name, whose instances such a provider makes."""
    module = Module(
        name,
        connect=lambda target: InstancePlace(target, connect(target)),
        where={instance.provider: name},
        context=PARENT,
    )
    exist = module.serves(instance.exist)

    @exist.look(every_s=2, within_s=CALL_S_MAX, outcomes=(Exist.ABSENT, Exist.PRESENT))
    def look_exist(one: InstancePlace) -> Exist:
        for listed in one.provider.listed():
            if (listed.name, listed.owner) == (one.target.name, one.owner):
                one.target.note(instance.attributes_note(listed.attributes))
                return Exist.PRESENT
        return Exist.ABSENT

    @exist.step(Exist.ABSENT, Exist.PRESENT, **CREATING)
    def create(one: InstancePlace) -> None:
        size = str(one.target.values.get(instance.size.name, ""))
        one.provider.create(one.target.name, one.owner, size)

    @exist.step(Exist.PRESENT, Exist.ABSENT, **DESTROYING)
    def destroy(one: InstancePlace) -> None:
        one.provider.destroy(one.target.name, one.owner)

    return module
