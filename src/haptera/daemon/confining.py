"""Which modules of a parent are confined, how, and what is said of that at its start."""

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

import haptera
from haptera.daemon.settings import ParentSettings
from haptera.modules import BUNDLED
from haptera.modules.netboot import content as netboot_content
from haptera.modules.netboot import strangers
from haptera.runtime.identity.private import private_directory
from haptera.runtime.processes.confinement import (
    Confinement,
    landlock_version,
    uid_of,
    unreachable,
)

# What comes with haptera and mounts file systems, which nobody may whom Landlock confines.
UNCONFINED: Final = frozenset({"image"})
# Folders of the parent's own that these serve from, or write for it, as root: they listen at ports
# of the system's.
SHARED: Final[Mapping[str, tuple[str, ...]]] = {
    "netboot": (netboot_content.FOLDER, strangers.FOLDER)
}
FOLDER: Final = "modules"


def confinements(settings: ParentSettings) -> Callable[[str], Confinement | None]:
    """What each module and controller of this parent is kept from."""
    home = Path(settings.directory)
    folders = home.parent / FOLDER
    own = _has_users(settings) and _obstacle(settings, folders) is None
    if own:
        folders.mkdir(mode=0o711, exist_ok=True)
        for one in (folders, home.parent):
            one.chmod(0o711)  # Their users pass through; what lies there is for its owner only.
    hidden = (str(home), settings.client, str(folders))

    def confinement(name: str) -> Confinement | None:
        if name in UNCONFINED and name in BUNDLED:
            return None
        folder, code = str(folders / name), _of_code(settings)
        if name in SHARED and name in BUNDLED:
            shared = [private_directory(home / one) for one in SHARED[name]]
            return Confinement(hidden, folder, code, shared=tuple(map(str, shared)))
        uid = uid_of(name) if own and name not in (settings.keep_user or ()) else None
        return Confinement(hidden, folder, code, uid)

    return confinement


def _has_users(settings: ParentSettings) -> bool:
    return settings.keep_user is not None and os.geteuid() == 0


def confinement_told(settings: ParentSettings) -> Iterator[str]:
    """What of that holds and what does not, in sentences for the log."""
    folders = Path(settings.directory).parent / FOLDER
    can = "cannot" if landlock_version() else "CAN"
    hidden = f"{can} reach this parent's files"
    obstacle = _obstacle(settings, folders)
    if not _has_users(settings):
        yield f"modules run as this user, and {hidden}; of this user's others they can"
    elif obstacle is not None:
        yield f"modules run as root, for other users cannot read {obstacle}; they {hidden}"
    else:
        yield f"modules run as users of their own, and {hidden}"
    if _has_users(settings) and (kept := sorted(settings.keep_user or ())):
        yield f"as root run: {', '.join(kept)}"
    if not landlock_version():
        yield "this kernel has no Landlock, which hides files from modules; Linux 5.13 has it"


def _obstacle(settings: ParentSettings, folders: Path) -> Path | None:
    """What a user of its own could not read of what its module is run from."""
    paths = [Path(os.__file__), Path(haptera.__file__), folders.parent.parent]
    paths += map(Path, _of_code(settings))
    there = (path.resolve() for path in paths if path.exists())
    return next((one for path in there if (one := unreachable(path)) is not None), None)


def _of_code(settings: ParentSettings) -> tuple[str, ...]:
    """The folders that modules and controllers of the site's own lie in."""
    folders = [one.folder for one in settings.own] + [one.folder for one in settings.controllers]
    return tuple(sorted({one for one in folders if one}))
