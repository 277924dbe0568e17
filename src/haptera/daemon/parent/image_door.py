"""The way in for nodes that fetch images: HTTPS, for those whom the authority certified."""

import ssl
from collections.abc import Iterator

from haptera.api.routes.images import Images
from haptera.api.serving.server import Server, listen
from haptera.daemon.channels.parent_channel import ParentChannel
from haptera.daemon.parts import ARTEFACTS_PORT
from haptera.daemon.settings import ParentSettings
from haptera.kinds import image
from haptera.modules.image.store import store_of
from haptera.runtime.clock import wall_s
from haptera.runtime.identity.pki import Authority, issue_images
from haptera.runtime.network.tls import server_context


def image_servers(
    settings: ParentSettings, authority: Authority, channel: ParentChannel
) -> Iterator[Server]:
    """What serves images to nodes, where this parent has the module that makes them.

    Raises:
        HapteraError: the address is in use.
    """
    if image.kind.name not in settings.modules:
        return
    issue_images(authority, wall_s())
    images = Images(store_of(authority.directory), channel.admit, channel.images_of)
    shown = channel.certificate
    tls = shown.shown_by(server_context(shown.identity, authority.ca_pem, ssl.CERT_REQUIRED))
    yield Server(images.app(), listen(settings.address, ARTEFACTS_PORT), tls)
