"""The way in for those who fetch images: HTTPS, for nodes and parents below."""

import contextlib
import ssl
from collections.abc import Collection, Iterator

import msgspec

from haptera.api.requests.order import ServingLimits, ServingOrder
from haptera.api.routes.images import Images
from haptera.api.serving.server import Server, listen
from haptera.core.state.table import EntityTable
from haptera.daemon.channels.parent_channel import ParentChannel
from haptera.daemon.parts import ARTEFACTS_PORT
from haptera.daemon.queue.parent_side import ParentQueue
from haptera.daemon.settings import ParentSettings
from haptera.kinds import image, module
from haptera.model.answers.views import Condition
from haptera.model.entity import EntityId
from haptera.model.errors import HapteraError
from haptera.modules.image.module import ImageSettings
from haptera.modules.image.module import module as image_module
from haptera.modules.image.store import MB, store_of
from haptera.runtime.clock import wall_s
from haptera.runtime.identity.pki import Authority, issue_images
from haptera.runtime.identity.private import write_private
from haptera.runtime.network.tls import Certificate, server_context, signs_images
from haptera.sdk.uplink import UPLINK, Uplink

_MODULE = EntityId(module.kind.name, image.kind.name, None)


def image_servers(
    settings: ParentSettings,
    authority: Authority,
    channel: ParentChannel,
    table: EntityTable,
    jobs: ParentQueue,
) -> Iterator[Server]:
    """The servers of images, to nodes also of those of their jobs, where this parent makes any.

    Raises:
        HapteraError: the address is in use.
    """
    if image.kind.name not in settings.modules:
        return
    issue_images(authority, wall_s())
    store = store_of(authority.directory)
    jobs.has_image = lambda reference: store.signed(reference) is not None
    if settings.parent_name is None:
        (store.path / UPLINK).unlink(missing_ok=True)

    def wanted(certificate: Certificate) -> Collection[str] | None:
        if signs_images(certificate, authority.cluster):
            return None  # a parent below
        node = channel.admit(certificate)
        return () if node is None else [*channel.images_of(node), *jobs.images_of(node)]

    def is_made(name: str) -> bool:
        row = table.get(EntityId(image.kind.name, name, None))
        return row is not None and row.stance.condition is Condition.ACTING

    images = Images(store, wanted, ServingOrder(lambda: limits_of(table)), is_made)
    shown = channel.certificate
    tls = shown.shown_by(server_context(shown.identity, authority.ca_pem, ssl.CERT_REQUIRED))
    yield Server(images.app(), listen(settings.address, ARTEFACTS_PORT), tls)


def limits_of(table: EntityTable) -> ServingLimits:
    """How fast images may be sent, as the settings of their module have it now."""
    row = table.get(_MODULE)
    said = "{}" if row is None else str(row.plain().get(module.settings.name, "{}"))
    given = ImageSettings()
    with contextlib.suppress(HapteraError):  # the module says so itself
        given = image_module.settings(msgspec.json.decode(said))
    rate = given.rate_mb_s
    return ServingLimits(given.at_once, None if rate is None else rate * MB)


def keep_above(authority: Authority, host: str) -> None:
    """Have the module for images take them over from the parent above, which is reached there."""
    folder = store_of(authority.directory).path
    if folder.exists():
        signer = str((folder / "signer.pem").absolute())
        said = Uplink(host, ARTEFACTS_PORT, authority.ca_pem.decode("ascii"), signer)
        write_private(folder / UPLINK, msgspec.json.encode(said))
