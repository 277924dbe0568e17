"""Merge patches (RFC 7396) of entities: what they change, of what is there now."""

from collections.abc import Iterator
from dataclasses import dataclass

from haptera.api.backend import Backend, Desires, Queries
from haptera.api.requests.endpoint import check_limit
from haptera.api.writes.limits import check_reach
from haptera.core.desired.ownership import Claim, declare, desire
from haptera.kinds import KINDS
from haptera.model.changes import Change, Declare, StoredEntity
from haptera.model.declared.desired_check import did_you_mean
from haptera.model.entity import EntityId, parse_entity
from haptera.model.errors import Code, ConflictError, HapteraError
from haptera.rest.schemas import EntityPatch
from haptera.selectors.selector import Selector


@dataclass(frozen=True, slots=True)
class Patcher:
    """Patches for one caller: as whom, whether they take what is another's, within what."""

    backend: Backend
    owner: str
    claim: Claim
    within: Selector | None = None

    def changes(self, patch: EntityPatch) -> tuple[Change, ...]:
        """What a patch changes now; what is so already is no change.

        Raises:
            HapteraError: it is for another version, or cannot be; nothing of it counts.
        """
        held = self._held(patch.entity)
        if self.within is not None:
            check_reach(self.within, held, patch, self.claim)
        tag = tag_of(self.backend.desires, held.revision)
        if not _matches(patch.if_match, tag):
            raise HapteraError(
                f"{patch.entity} changed: it is {tag} now",
                where="the header If-Match, or if_match",
                do="read it again, then decide again",
                code=Code.CHANGED,
            )
        try:
            desired = (*self._desired(held, patch),)
            begun = self._begun(held) if desired else ()
            return (*begun, *self._attributes(held, patch), *desired)
        except ConflictError as error:
            do = f"{error.do}, or take it (--take, take=1)"
            raise ConflictError(error.what, do=do, code=Code.OWNED) from None

    def tag(self, text: str) -> str | None:
        """The ETag of an entity as it is now; None where it is gone."""
        entity = parse_entity(text)
        there = self.backend.desires.declared(entity) or self.backend.queries.entity(entity)
        return None if there is None else tag_of(self.backend.desires, there.revision)

    def _begun(self, held: StoredEntity) -> tuple[Change, ...]:
        """An entity of the cluster's is there once something is desired of it."""
        new = held.owner == "" and self.backend.queries.entity(held.entity) is None
        return (Declare(held.entity, {}, self.owner),) if new else ()

    def _attributes(self, held: StoredEntity, patch: EntityPatch) -> Iterator[Change]:
        if not patch.attributes:
            return
        merged: dict[str, str | None] = {**held.attributes, **patch.attributes}
        wanted = {name: text for name, text in merged.items() if text is not None}
        before = None if self.claim is Claim.TAKE else held.owner or None
        yield from declare(KINDS, held.entity, held.attributes, wanted, (before, self.owner))

    def _desired(self, held: StoredEntity, patch: EntityPatch) -> Iterator[Change]:
        kind = KINDS[held.entity.kind]
        yield from desire(kind, held.entity, held.desired, patch.desired, self.owner, self.claim)

    def _held(self, text: str) -> StoredEntity:
        """What is stored of an entity; nothing is of one that is there without being declared."""
        entity = parse_entity(text)
        check_limit(entity, self.within)
        stored = self.backend.desires.declared(entity)
        if stored is not None:
            return stored
        view = self.backend.queries.entity(entity)
        if view is None and _may_begin(entity):
            return StoredEntity(entity, {}, "", {}, 0)
        if view is None:
            raise missing(self.backend.queries, entity, self.within)
        return StoredEntity(entity, {}, "", {}, view.revision)


def _may_begin(entity: EntityId) -> bool:
    kind = KINDS.get(entity.kind)
    return entity.node is None and kind is not None and kind.of_cluster


def tag_of(desires: Desires, revision: int) -> str:
    """The ETag of an entity that was changed last by this revision."""
    return f'"{desires.epoch}.{revision}"'


def missing(queries: Queries, entity: EntityId, within: Selector | None = None) -> HapteraError:
    """There is none: with a guess which was meant, of those that a limited token may see."""
    near = queries.nearest(entity)
    if near is not None and within is not None and not queries.means(within, parse_entity(near)):
        near = None
    guess, kind = did_you_mean(near), entity.kind
    see = f"see which there are: haptera get {kind}, or GET /v1/entities?kind={kind}"
    return HapteraError(f"there is no {entity}", do=f"{guess}{see}", code=Code.NOT_FOUND)


def _matches(wanted: str | None, tag: str) -> bool:
    """Whether a list of tags, as If-Match has it, has this one."""
    if wanted is None:
        return True
    return any(one.strip() in ("*", tag) for one in wanted.split(","))
