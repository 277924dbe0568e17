"""What is written durably, as values; one `Write` holds some, committed together or not at all."""

from enum import StrEnum

import msgspec

from haptera.model.entity import EntityId
from haptera.model.intent import Intent
from haptera.model.parts import EnrolmentLevel
from haptera.model.token_scope import Scope


class Declare(msgspec.Struct, frozen=True, gc=False, tag="declare"):
    """An entity exists, with these attributes; a node also gets its UUID, once."""

    entity: EntityId
    attributes: dict[str, str]
    owner: str


class Undeclare(msgspec.Struct, frozen=True, gc=False, tag="undeclare"):
    """An entity is no longer there; its desired values go with it."""

    entity: EntityId


class SetDesired(msgspec.Struct, frozen=True, gc=False, tag="set"):
    """A variable or plain datum of an entity should have this value."""

    entity: EntityId
    name: str
    value: str | int
    owner: str


class UnsetDesired(msgspec.Struct, frozen=True, gc=False, tag="unset"):
    """Nothing is desired any more of this variable."""

    entity: EntityId
    name: str


class OpenIntent(msgspec.Struct, frozen=True, gc=False, tag="open"):
    """A step is meant; where it enrols, a token is made that reaches its node at this level.

    It is good for as long as the boot is waited for.
    """

    intent: Intent
    level: EnrolmentLevel | None = None
    good_for_ms: int = 600_000


class CloseIntent(msgspec.Struct, frozen=True, gc=False, tag="close"):
    """The outcome of this intent was read, or it never began."""

    id: str
    begun: bool = True


class Cause(StrEnum):
    """Why a write was refused; nothing of it holds."""

    INVALID = "invalid"  # it names what is not there, or cannot be
    OPEN_SECRET = "open secret"  # it has a secret in it that should be named only
    FORBIDDEN = "forbidden"  # it changes what is run, and its author may not
    BUSY = "busy"  # others write so much that nothing could be made of what is desired now
    STALE = "stale"  # what is desired has changed since the revision that it was made for
    STORAGE = "storage"  # it could not be made durable: a full disk


class Author(msgspec.Struct, frozen=True, gc=False):
    """Who asked for changes (`user:NAME`, `controller:NAME`, `site`), and why, in their words.

    What they `may` decides about fields that are code: nothing, where nobody says so. One who is
    `limited` to some entities changes none of an entity that is on no node.
    """

    who: str
    why: str | None = None
    may: Scope = Scope.READ
    limited: bool = False


Change = Declare | Undeclare | SetDesired | UnsetDesired | OpenIntent | CloseIntent


class Desired(msgspec.Struct, frozen=True, gc=False):
    """One desired value with its owner (`site`, `user:NAME`, `controller:NAME`)."""

    value: str | int
    owner: str


class StoredEntity(msgspec.Struct, gc=False):
    """What the store holds of one entity; `revision` numbers its last change."""

    entity: EntityId
    attributes: dict[str, str]
    owner: str
    desired: dict[str, Desired]
    revision: int


class Disruption(msgspec.Struct, frozen=True, gc=False):
    """A disruptive step that may have begun within the last hour, whatever came of it.

    `began_at` counts in the machine's boot named `kernel_boot`, as an intent's does.
    """

    entity: EntityId
    began_at: int
    kernel_boot: str


class Stored(msgspec.Struct):
    """All that an engine starts from; `enrolled` are the nodes that did so since their last boot.

    That is, since a boot that this cluster's parents began.
    """

    epoch: int
    revision: int
    entities: list[StoredEntity]
    intents: list[Intent]
    incarnations: dict[str, int]
    disruptions: list[Disruption] = []
    enrolled: list[str] = []
