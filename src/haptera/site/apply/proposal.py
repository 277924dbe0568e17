"""A site as it is proposed: read in any process, and then what it makes of what is stored."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from haptera.core.desired.ownership import Claim
from haptera.model.changes import Change, StoredEntity
from haptera.model.entity import EntityId
from haptera.model.errors import Code, ConflictError, HapteraError, InputError, LimitError, each
from haptera.model.parts import Setting
from haptera.rest.problems import SiteFault, fault
from haptera.rest.schemas import DifferenceView, SiteFile
from haptera.site.apply.changes import changes
from haptera.site.apply.difference import difference
from haptera.site.model.settings import check_secrets
from haptera.site.model.site import Site, SiteEntity, parse_site
from haptera.site.syntax.sources import SITE_BYTES_MAX

# What makes code run, by the name it has in a site: its place, or the words of its command.
RunCode = Mapping[str, str]


class SiteQuestion(msgspec.Struct, frozen=True):
    """Files to be read as a site of this cluster; `settings` are those that modules declare."""

    files: list[SiteFile]
    constants: dict[str, str]
    cluster: str
    settings: dict[str, list[Setting]]


class Entity(msgspec.Struct, frozen=True, array_like=True):
    """One entity as a site wants it."""

    entity: EntityId
    attributes: dict[str, str]
    desired: dict[str, str | int]


class SiteRead(msgspec.Struct, frozen=True, tag="read"):
    """What was read, without the places of it."""

    entities: list[Entity]
    code: dict[str, str]
    started: list[str]


class SiteRefused(msgspec.Struct, frozen=True, tag="refused"):
    """Why nothing is made of it."""

    wrong: list[SiteFault]


_questions = msgspec.msgpack.Decoder(SiteQuestion)
_answers = msgspec.msgpack.Decoder(SiteRead | SiteRefused)


class Proposal:
    """A site that was read. What it makes of what is stored takes up to seconds."""

    def __init__(self, cluster: str, read: SiteRead) -> None:
        entities = tuple(SiteEntity(*msgspec.structs.astuple(one)) for one in read.entities)
        self._site = Site(cluster, entities, (), {})
        self.code: RunCode = read.code
        # The modules and controllers that a parent starts with.
        self.started = read.started

    @property
    def kinds(self) -> list[str]:
        """The kind of its entities."""
        return sorted({one.entity.kind for one in self._site.entities})

    def changes(self, current: Sequence[StoredEntity], claim: Claim) -> tuple[Change, ...]:
        """What it changes of what is stored.

        Raises:
            HapteraError: it is in another owner's way.
        """
        return changes(self._site, current, claim)

    def difference(self, current: Sequence[StoredEntity]) -> list[DifferenceView]:
        """Where it wants other than what is stored, or no longer wants what it owns."""
        return [*difference(self._site, current)]


def started_with(site: Site) -> list[str]:
    """The modules and controllers that a parent of this site starts with, by name."""
    own = [one.name for one in site.own]
    return [*site.modules, *own, *(one.name for one in site.controllers)]


def ask(question: SiteQuestion) -> bytes:
    """A question as bytes.

    Raises:
        HapteraError: the files are larger than a site may be.
    """
    if sum(len(one.text.encode(errors="replace")) for one in question.files) > SITE_BYTES_MAX:
        raise LimitError(
            f"a site takes {SITE_BYTES_MAX} bytes at most",
            where=question.files[0].name,
            do="use node-sets",
        )
    return msgspec.msgpack.encode(question)


def answer(question: bytes) -> bytes:
    """Read the files: the part that may take any time and memory."""
    asked = _questions.decode(question)
    try:
        site = _read(asked)
    except HapteraError as error:
        return msgspec.msgpack.encode(SiteRefused([*map(fault, each(error))]))
    entities = [
        Entity(one.entity, dict(one.attributes), dict(one.desired)) for one in site.entities
    ]
    return msgspec.msgpack.encode(SiteRead(entities, dict(code_of(site)), started_with(site)))


def understood(question: SiteQuestion, said: bytes) -> Proposal:
    """What was answered.

    Raises:
        HapteraError: something is wrong with the site.
    """
    found = _answers.decode(said)
    if isinstance(found, SiteRead):
        return Proposal(question.cluster, found)
    errors = [
        HapteraError(one.what, where=one.where, do=one.do, code=one.code) for one in found.wrong
    ]
    raise InputError(errors)


def code_of(site: Site) -> Iterable[tuple[str, str]]:
    """What of a site makes code run: its own modules and controllers."""
    for module in site.own:
        yield (
            module.name,
            " ".join([module.context, module.place or module.declares or "", *module.command]),
        )
    for controller in site.controllers:
        yield controller.name, controller.place


def _read(asked: SiteQuestion) -> Site:
    site = parse_site(asked.files, asked.constants)
    if site.cluster != asked.cluster:
        raise ConflictError(
            f"this is a site of cluster {site.cluster}; this parent has cluster {asked.cluster}",
            where=asked.files[0].name,
            do="apply it to its own cluster, or correct its name",
            code=Code.WRONG_CLUSTER,
        )
    check_secrets(site, asked.settings)
    return site
