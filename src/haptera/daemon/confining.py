"""What each module of a daemon is kept from, by what it declares, and what is said of that."""

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import haptera
from haptera.app.lease import LEASES
from haptera.daemon.settings import ParentSettings
from haptera.keeping.gate import JOBS
from haptera.model.errors import HapteraError
from haptera.model.parts import Context, Manifest, Privilege
from haptera.modules import BUNDLED
from haptera.modules.netboot import content as netboot_content
from haptera.modules.netboot import strangers
from haptera.modules.system.staging import IMAGES_OF_JOBS
from haptera.runtime.identity.sealing import key_file
from haptera.runtime.processes.confinement.confinement import (
    Confine,
    Confinement,
    closed_devices,
    landlock_version,
    uid_of,
    unreachable,
)
from haptera.runtime.processes.places import ModulePlace
from haptera.sdk.failures import OPEN_DEVICE
from haptera.sdk.uplink import CHANNELS

FOLDER: Final = "modules"
# Folders of the daemon's own in which these, which come with haptera, keep what outlives them.
SHARED: Final[Mapping[str, tuple[str, ...]]] = {
    "image": ("images",),
    "jobs": (JOBS,),
    "netboot": (netboot_content.FOLDER, strangers.FOLDER),
    "replica": ("replicas", LEASES, JOBS, CHANNELS),
    "service": ("services", JOBS),
    "system": ("systems", "images", IMAGES_OF_JOBS, JOBS),
}
# Needs that take the daemon's own user.
OF_THE_DAEMON: Final = frozenset({Privilege.ROOT, Privilege.NAMESPACES, Privilege.MOUNTS})

# How many devices are named that a module cannot open.
CLOSED_SHOWN_MAX: Final = 8

# What a module declares; None: it is only asked for that.
Declared = Callable[[str], Manifest | None]


@dataclass(frozen=True, slots=True)
class Grounds:
    """What the modules of one daemon have around them: what is hidden, and where they may be.

    `home` is the daemon's own folder, and `folders` holds one for each module, beside it. Where
    `has_users`, each is a user of its own, but for those in `kept`; `code` are folders that modules
    lie in. On a node some `host` programs of people. At a parent none does: its API takes whoever
    cannot be raised (sudo) for a module.
    """

    home: Path
    folders: Path
    hidden: tuple[str, ...]
    code: tuple[str, ...]
    has_users: bool
    kept: tuple[str, ...] = ()
    host: bool = False

    @property
    def obstacle(self) -> Path | None:
        """What a user of its own could not read of what its module is run from."""
        paths = [Path(os.__file__), Path(haptera.__file__), self.home.parent.parent]
        paths += map(Path, self.code)
        there = (path.resolve() for path in paths if path.exists())
        return next((one for path in there if (one := unreachable(path)) is not None), None)


def grounds_of_parent(settings: ParentSettings) -> Grounds:
    """Those of a parent: its state, its keys, and what modules keep are hidden."""
    home = Path(settings.directory)
    folders = home.parent / FOLDER
    key = key_file()
    hidden = (str(home), settings.client, str(folders), *(() if key is None else (str(key),)))
    own = [one.folder for one in settings.own] + [one.folder for one in settings.controllers]
    has_users = settings.keep_user is not None and os.geteuid() == 0
    return Grounds(home, folders, hidden, _folders(own), has_users, settings.keep_user or ())


def grounds_of_agent(home: Path, own: tuple[ModulePlace, ...]) -> Grounds:
    """Those of an agent: its key, its session, and what modules keep are hidden."""
    # Above it lies what is not haptera's, such as /run.
    folders = home.with_name(f"{home.name}-{FOLDER}")
    hidden, code = (str(home), str(folders)), _folders([one.folder for one in own])
    return Grounds(home, folders, hidden, code, os.geteuid() == 0, host=True)


def confinements(grounds: Grounds, declared: Declared) -> Confine:
    """What each module and controller of a daemon is kept from.

    Raises:
        HapteraError: as root, a module would be kept from nothing at all.
    """
    own = grounds.has_users and grounds.obstacle is None
    if grounds.has_users and not own and not landlock_version():
        raise HapteraError(
            "modules could access everything that root can: other users cannot read"
            f" {grounds.obstacle}, and this kernel has no Landlock",
            do="install Python and haptera where all users read them (not below /root)",
        )
    if own:
        grounds.folders.mkdir(mode=0o711, exist_ok=True)
        for one in (grounds.folders, grounds.home.parent):
            if one.stat().st_uid == os.geteuid() and one.stat().st_mode & 0o7 == 0:
                one.chmod(0o711)  # Their users pass through; what lies there is its owner's only.

    def confinement(name: str) -> Confinement | None:
        manifest = declared(name)
        needs = () if manifest is None else manifest.needs
        if name in grounds.kept:
            needs = (*needs, Privilege.ROOT)
        shared = SHARED.get(name, ()) if name in BUNDLED else ()
        is_own = own and not shared and not OF_THE_DAEMON & {*needs}
        return Confinement(
            grounds.hidden,
            str(grounds.folders / name),
            grounds.code,
            uid_of(name) if is_own else None,
            tuple(str(_made(grounds.home / one)) for one in shared),
            needs,
            () if manifest is None else manifest.writes,
            grounds.host and Privilege.ROOT in needs,
        )

    return confinement


def confinement_told(grounds: Grounds, declared: Mapping[str, Manifest]) -> Iterator[str]:
    """What of that holds and what does not, in sentences for the log."""
    can = "cannot" if landlock_version() else "CAN"
    hidden = f"{can} reach this daemon's files"
    if not grounds.has_users:
        yield f"modules run as this user, and {hidden}; they can reach this user's other files"
    elif grounds.obstacle is not None:
        yield (
            f"modules run as root without capabilities, because other users cannot read"
            f" {grounds.obstacle}; they {hidden}"
        )
    else:
        yield f"modules run as users of their own, and {hidden}"
    if grounds.has_users and grounds.kept:
        yield f"these run as root: {', '.join(sorted(grounds.kept))}"
    for name, manifest in sorted(declared.items()):
        if manifest.beyond:
            yield f"module {name} needs: {manifest.beyond}"
    yield from devices_told(grounds, declared)
    if not landlock_version():
        yield "this kernel has no Landlock, which hides files from modules; Linux 5.13 has it"


def _made(folder: Path) -> Path:
    """A folder of the daemon's own, which is for its owner only."""
    folder.mkdir(exist_ok=True)
    return folder


def devices_told(grounds: Grounds, declared: Mapping[str, Manifest]) -> Iterator[str]:
    """The devices that modules which need some cannot open as their own users, and a way out."""
    confine = confinements(grounds, declared.get)
    side = Context.SELF if grounds.host else Context.PARENT
    for name, manifest in sorted(declared.items()):
        needs = {*manifest.needs}
        is_own = manifest.context is side and not OF_THE_DAEMON & needs
        found = confine(name) if is_own and Privilege.DEVICES in needs else None
        closed = closed_devices(found.uid) if found is not None and found.uid is not None else []
        if closed:
            names = [*map(str, closed[:CLOSED_SHOWN_MAX])]
            if left := len(closed) - len(names):
                names.append(f"{left} more")
            yield (
                f"module {name} cannot open {', '.join(names)}: its user may not; if it needs one"
                f" of them, {OPEN_DEVICE}"
            )


def _folders(of_code: list[str]) -> tuple[str, ...]:
    return tuple(sorted({one for one in of_code if one}))
