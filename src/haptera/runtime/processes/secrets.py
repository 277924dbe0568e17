"""Secrets: read where they are kept, put into settings on the way to a module's process only."""

import asyncio
import logging
import os
import stat
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Final, assert_never

import msgspec

from haptera.kinds import module
from haptera.model.declared.secrets import (
    SECRET,
    Keeper,
    Reference,
    filled,
    is_secret_name,
    references,
    resolved,
)
from haptera.model.effects import Call, Start, Stop
from haptera.model.entity import EntityId
from haptera.model.errors import Code, HapteraError
from haptera.model.events import Event, Exited, Failed
from haptera.runtime.identity.private import open_unlinked, private_directory, write_durable
from haptera.runtime.identity.sealing import VARIABLE, Sealer, is_sealed
from haptera.runtime.processes.process import ModuleProcesses
from haptera.sdk.boundary import Boundary
from haptera.sdk.target import Boot
from haptera.selectors.selector import Selector, parse_selector

SECRET_BYTES_MAX: Final = 4_096
# A sealed one is longer: a third, for its text, and what it is sealed with.
SEALED_BYTES_MAX: Final = 2 * SECRET_BYTES_MAX
# Where `file:` references may lead on the module's machine, and the variable that says otherwise.
FILES_FOLDER: Final = "/etc/haptera/secrets"
FILES_VARIABLE: Final = "HAPTERA_SECRET_FILES"
# How a variable is called that `env:` references may name: no other was meant for modules.
VARIABLES_PREFIX: Final = "HAPTERA_SECRET_"
# How many selectors may say who may name one secret.
USERS_MAX: Final = 64
# How long a module's start waits for what its settings name.
FOUND_WITHIN_S: Final = 30.0

# A parent that starts tells how many it has sealed, for each of them is synced.
TOLD_EACH: Final = 1_000

# What stands for the slash of a name in that of its file.
_SLASH: Final = ":"

_log = logging.getLogger(__name__)

# The value of a secret, for a module of this name.
Find = Callable[[str, Reference], Awaitable[str]]


class SecretStore:
    """The secrets that a parent keeps, one a file, in a folder for its owner only.

    They are sealed by `sealer`, where this process was given a key. A second folder has for each
    the selectors of who may name it; without a file there, all may.
    """

    def __init__(self, home: Path) -> None:
        """The secrets below a parent's folder.

        Raises:
            HapteraError: what was given as keys is none.
        """
        self.sealer = Sealer.given()
        self._folder = home / "secrets"
        self._users = home / "secret-users"

    @classmethod
    def open(cls, home: Path) -> "SecretStore":
        """Those of a parent that starts, all sealed with the first of the keys that it was given.

        Of those that cannot be, the log tells; who names one is not started, for that reason.
        """
        store = cls(home)
        unsealed = sealed = 0
        for name in store.names():
            try:
                content = store._stored(name)
                if store.sealer.is_due(content):
                    store.put(name, store.sealer.opened(content, f"secret {name}"))
                    sealed += 1
                    if sealed % TOLD_EACH == 0:
                        _log.info("sealed %d secrets with the first key", sealed)
                else:
                    unsealed += not is_sealed(content)
            except HapteraError as error:
                _log.warning("%s", error)
        if unsealed:
            text = "%d of the secrets are stored unsealed: %s names no file of keys"
            _log.warning(text, unsealed, VARIABLE)
        return store

    def names(self) -> list[str]:
        if not self._folder.is_dir():
            return []
        found = (one.name for one in self._folder.iterdir() if one.suffix != ".new")
        return sorted(name.replace(_SLASH, "/") for name in found)

    def put(self, name: str, value: bytes) -> None:
        """Keep one, in place of what it was.

        Raises:
            HapteraError: it is too long, or no text, or looks sealed, or cannot be written.
        """
        if is_sealed(value):
            raise HapteraError(f"secret {name} is sealed already", do="give what was sealed")
        _text(value, f"secret {name}")
        private_directory(self._folder)
        write_durable(self._folder / _file_of(name), self.sealer.sealed(value))

    def allow(self, name: str, users: Sequence[str]) -> None:
        """Have only the modules that these selectors mean name a secret: `labnode`, `*@rack1n*`.

        Raises:
            HapteraError: one of them is no selector of modules by their names.
        """
        if len(users) > USERS_MAX:
            raise HapteraError(
                f"at most {USERS_MAX} selectors", do="use node-sets", code=Code.LIMIT
            )
        texts = [_user(text).text for text in users]
        private_directory(self._users)
        write_durable(self._users / _file_of(name), msgspec.json.encode(texts))

    def users(self, name: str) -> list[str] | None:
        """Who may name a secret; None: all modules.

        Raises:
            HapteraError: what says so cannot be read.
        """
        try:
            return msgspec.json.decode((self._users / _file_of(name)).read_bytes(), type=list[str])
        except FileNotFoundError:
            return None
        except (OSError, ValueError, RecursionError) as error:
            what = f"secret {name}: its list of users cannot be read: {error}"
            raise HapteraError(what, do=f"haptera secret allow {name} MODULE") from None

    def check_user(self, name: str, user: EntityId) -> None:
        """See that an entity of a module may name a secret.

        Raises:
            HapteraError: it may not.
        """
        users = self.users(name)
        if users is None or any(_user(text).could_mean(user) for text in users):
            return
        raise HapteraError(
            f"secret {name}: {user} may not use it",
            do=f"haptera secret allow {name} MODULE",
            code=Code.FORBIDDEN,
        )

    def remove(self, name: str) -> None:
        """Keep it no longer.

        Raises:
            HapteraError: there is none of this name.
        """
        try:
            (self._folder / _file_of(name)).unlink()
        except FileNotFoundError:
            raise HapteraError(
                f"there is no secret {name!r}", do="haptera secret list", code=Code.NOT_FOUND
            ) from None
        (self._users / _file_of(name)).unlink(missing_ok=True)

    def read(self, user: EntityId, reference: Reference) -> str:
        """The value of a secret, for an entity of a module.

        Raises:
            HapteraError: it cannot be had.
        """
        if reference.keeper is Keeper.PARENT:
            self.check_user(reference.name, user)
            none = f"it is not set: haptera secret set {reference}"
            return _text(self.content(reference.name, none=none), f"secret {reference}")
        return read_here(reference)

    def content(self, name: str, *, none: str | None = None) -> bytes:
        """What was stored as this secret; where there is none of this name, `none` says so.

        Raises:
            HapteraError: it cannot be had.
        """
        return self.sealer.opened(self._stored(name, none), f"secret {name}")

    def _stored(self, name: str, none: str | None = None) -> bytes:
        return _read(self._folder / _file_of(name), f"secret {name}", SEALED_BYTES_MAX, none=none)

    def read_at_parent(self, name: str, reference: Reference) -> str:
        """As `read`, for a module of this name that runs at the parent."""
        return self.read(EntityId(module.kind.name, name, None), reference)

    async def find_at_parent(self, name: str, reference: Reference) -> str:
        """As `read_at_parent`, for who may have to wait."""
        return self.read_at_parent(name, reference)


def read_here(reference: Reference) -> str:
    """The value of a secret that this machine keeps.

    Raises:
        HapteraError: it cannot be had.
    """
    match reference.keeper:
        case Keeper.FILE:
            what = f"secret {reference}"
            path = _below(Path(reference.name), reference)
            return _text(_read(path, what, SECRET_BYTES_MAX + 2), what)
        case Keeper.ENVIRONMENT:
            if not reference.name.startswith(VARIABLES_PREFIX):
                raise HapteraError(
                    f"secret {reference}: its name does not begin with {VARIABLES_PREFIX}",
                    do=f"start the daemon with it as {VARIABLES_PREFIX}{reference.name}",
                )
            value = os.environ.get(reference.name)
            if value is None:
                raise HapteraError(f"secret {reference}: it is not set for the daemon")
            return value
        case Keeper.PARENT:
            raise HapteraError(f"secret {reference}: only the parent keeps it")
        case _:
            assert_never(reference.keeper)


class Starter:
    """Starts modules whose settings name secrets once these are found; all others at once.

    A secret of each entity is put into the settings of each call, by `read`, where there is one.
    Needs a running loop.
    """

    def __init__(
        self,
        processes: ModuleProcesses,
        find: Find,
        deliver: Callable[[list[Event]], None],
        read: Callable[[str, Reference], str] | None = None,
    ) -> None:
        self._read = read
        # Settings that name secrets of each entity, all others in their places.
        self._holed: dict[tuple[str, int], Any] = {}
        self._processes = processes
        self._find = find
        self._deliver = deliver
        self._waiting: dict[tuple[str, int], asyncio.Task[None]] = {}

    def start(self, start: Start) -> None:
        settings = msgspec.json.decode(start.settings) if start.settings else {}
        named = [one for one in dict.fromkeys(references(settings)) if not one.has_holes]
        if not any(references(settings)):
            self._processes.start(start)
            return
        task = asyncio.get_running_loop().create_task(self._start(start, settings, named))
        self._waiting[start.module, start.process] = task

    def call(self, call: Call, boot: Boot | None = None) -> None:
        """Call a module, with the secrets of the entity if its settings name any."""
        settings, own = self._holed.get((call.module, call.process)), None
        with Boundary(f"the secrets of {call.entity} for module {call.module}") as found:
            own = None if settings is None else self._own(call, settings)
        if found.fault is not None:
            self._deliver([Failed(call.id, found.fault, refused=True)])
        else:
            self._processes.call(call, boot, own)

    def _own(self, call: Call, settings: Any) -> Any:
        """The settings with the secrets of one entity.

        Raises:
            HapteraError: one cannot be had.
        """
        if self._read is None:
            raise HapteraError("secrets of each entity are for modules that run at the parent")
        entity = call.entity
        about = {**call.attributes, "name": entity.name, "node": entity.node or ""}
        named = dict.fromkeys(references(settings))
        values = {one: self._read(call.module, filled(one, about)) for one in named}
        return resolved(settings, values)

    def stop(self, stop: Stop) -> None:
        """End a process; one that is still to be started never is."""
        self._holed.pop((stop.module, stop.process), None)
        waiting = self._waiting.pop((stop.module, stop.process), None)
        if waiting is None:
            self._processes.stop(stop)
            return
        waiting.cancel()
        gone: list[Event] = [Exited(stop.module, "it was not started", stop.process)]
        asyncio.get_running_loop().call_soon(self._deliver, gone)

    @property
    def waiting(self) -> int:
        """How many modules wait for their secrets."""
        return len(self._waiting)

    def close(self) -> None:
        for task in self._waiting.values():
            task.cancel()

    async def _start(self, start: Start, settings: Any, named: list[Reference]) -> None:
        late = f"its secrets were not found within {FOUND_WITHIN_S:.0f} s"
        with Boundary(f"the secrets of module {start.module}") as found:
            async with asyncio.timeout(FOUND_WITHIN_S):
                values = {one: await self._find(start.module, one) for one in named}
        if found.fault is not None:
            self._fail(start, late if isinstance(found.error, TimeoutError) else found.fault)
        else:
            self._waiting.pop((start.module, start.process), None)
            holed = [one for one in references(settings) if one.has_holes]
            if holed:
                stay = {one: {SECRET: str(one)} for one in holed}
                self._holed[start.module, start.process] = resolved(settings, values | stay)
            # Each call brings what is the entity's own.
            text = msgspec.json.encode(resolved(settings, values | dict.fromkeys(holed, "")))
            self._processes.start(msgspec.structs.replace(start, settings=text.decode()))

    def _fail(self, start: Start, text: str) -> None:
        self._waiting.pop((start.module, start.process), None)
        self._deliver([Exited(start.module, f"was not started: {text}", start.process)])


def _file_of(name: str) -> str:
    """The name of a secret's file.

    Raises:
        HapteraError: no secret could be called so.
    """
    if not is_secret_name(name):
        raise HapteraError(f"{name!r} is not a name for a secret", do="write NAME or GROUP/NAME")
    return name.replace("/", _SLASH)


def _user(text: str) -> Selector:
    """Which modules may name a secret.

    Raises:
        HapteraError: it is no selector, or goes by what changes.
    """
    selector = parse_selector(f"{module.kind.name}:{text.removeprefix(f'{module.kind.name}:')}")
    if not selector.by_name:
        what = f"{text!r} selects by state, which changes"
        raise HapteraError(what, do="name modules: labnode, or service@rack1n*")
    return selector


def _below(path: Path, reference: Reference) -> Path:
    """The file that is meant, links followed, if it is in the folder of secrets.

    Raises:
        HapteraError: it is elsewhere.
    """
    folder = os.environ.get(FILES_VARIABLE, FILES_FOLDER)
    try:
        found = path.resolve()
        inside = found.is_relative_to(Path(folder).resolve())
    except (OSError, RuntimeError) as error:
        raise HapteraError(f"secret {reference}: {error}") from None
    if not inside:
        raise HapteraError(
            f"secret {reference}: it is not below {folder}",
            do=f"move it there, or start the daemon with another folder as {FILES_VARIABLE}",
        )
    return found


def _read(path: Path, what: str, bytes_max: int, *, none: str | None = None) -> bytes:
    """The content of a file that is nobody else's; where there is none, `none` says so."""
    try:
        with open_unlinked(path) as file:
            state, content = os.fstat(file.fileno()), file.read(bytes_max)
    except OSError as error:
        said = none if isinstance(error, FileNotFoundError) else None
        raise HapteraError(f"{what}: {said or error.strerror}") from None
    if state.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise HapteraError(f"{what}: others can read its file; chmod 600 it")
    if state.st_uid not in (0, os.geteuid()):
        raise HapteraError(f"{what}: its file belongs to user {state.st_uid}; give it to root")
    return content


def _text(value: bytes, what: str) -> str:
    """A secret without its last line end."""
    try:
        text = value.decode().removesuffix("\n")
    except UnicodeDecodeError:
        raise HapteraError(f"{what} is not UTF-8 text", do="encode it, as Base64 say") from None
    if not text or len(value) > SECRET_BYTES_MAX:
        size = f"{SECRET_BYTES_MAX} bytes at most"
        raise HapteraError(f"{what} is empty, or too long", do=f"give it {size}")
    return text
