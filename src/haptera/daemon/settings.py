"""What one parent is started with."""

from typing import Final

import msgspec

from haptera.runtime.controllers import ControllerPlace
from haptera.runtime.places import ModulePlace

API_PORT: Final = 4270
HELLO_MS: Final = 5_000


class Settings(msgspec.Struct, frozen=True):
    """One parent: where its files are, where it is reached, what it is called, what it runs.

    The API is served on `address`, which must be of this machine only, and on a Unix `socket`, by
    default beside the `client` file, which lets a CLI in; `let_in` says who may use it besides
    root and the parent's own user. A first start takes `cluster` as the cluster's UUID, or makes
    one. A `site` file is applied at the start.
    """

    directory: str
    address: str
    client: str
    name: str
    cluster: str | None = None
    modules: tuple[str, ...] = ("jobs", "labnode", "service")
    controllers: tuple[ControllerPlace, ...] = ()
    own: tuple[ModulePlace, ...] = ()
    hello_ms: int = HELLO_MS
    api_port: int = API_PORT
    constants: dict[str, str] = {}
    site: str | None = None
    socket: str | None = None
    let_in: tuple[str, ...] = ()
