"""An agent's journal in its run directory: it survives the process, not the machine."""

import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import msgspec

from haptera.core.state.side import PARENT
from haptera.model.changes import CloseIntent, OpenIntent, Stored
from haptera.model.effects import SaveDesired, Write
from haptera.model.errors import Code, HapteraError
from haptera.model.events import Unwritten, Written
from haptera.model.intent import Intent
from haptera.runtime.enrolment.enrol import Enrolment
from haptera.runtime.identity.lock import Lock, take
from haptera.runtime.identity.pki import Key, key_pem, new_key, parse_key
from haptera.runtime.identity.private import private_directory, write_private
from haptera.runtime.store.sessions import SavedSession
from haptera.sdk.uplink import CHANNELS, UPLINK, Uplink

Content = TypeVar("Content")
Deliver = Callable[[Written | Unwritten], None]

_log = logging.getLogger(__name__)


class _Intents(msgspec.Struct, frozen=True):
    revision: int = 0
    open: tuple[Intent, ...] = ()


class Journal:
    """One agent's hold on its run directory; files are written at once, for they are small.

    `deliver` gets the answer to each `submit` before that returns (hand in one that posts).
    """

    def __init__(self, directory: Path, deliver: Deliver) -> None:
        """Take the directory, made where there is none.

        Raises:
            HapteraError: another process has it, or what is there cannot be read.
        """
        self._directory = private_directory(directory)
        self._deliver = deliver
        self._lock: Lock = take(directory / "agent")
        try:
            self._intents = self._read("intents.json", _Intents) or _Intents()
            self._desired = self._read("desired.json", SaveDesired) or SaveDesired(0, 0, ())
            self._enrolment = self._read("session.json", Enrolment)
        except BaseException:
            self._lock.release()
            raise

    def close(self) -> None:
        self._lock.release()

    def load(self) -> Stored:
        enrolment = self._enrolment
        return Stored(
            self._desired.epoch,
            self._desired.revision,
            list(self._desired.entities),
            list(self._intents.open),
            {} if enrolment is None else {PARENT: enrolment.session.agreement.incarnation},
        )

    def submit(self, write: Write) -> None:
        """Keep or drop intents; an agent's desired state is its parent's to change."""
        try:
            after = _applied(self._intents, write)
            self._write("intents.json", after)
        except (HapteraError, OSError) as error:
            self._deliver(Unwritten(write.ticket, f"{error}; nothing was changed"))
            return
        self._intents = after
        self._deliver(Written(write.ticket, after.revision))

    def keep(self, desired: SaveDesired) -> None:
        """Keep what was last desired, whole: without its parent the agent goes on with it."""
        self._write_unawaited("desired.json", desired)

    def enrolment(self) -> Enrolment | None:
        """What a previous process of this boot got; None where the node must enrol."""
        return self._enrolment

    def save_enrolment(self, enrolment: Enrolment) -> None:
        """Keep what was granted, before the first hello: from then on it is not granted again.

        Raises:
            HapteraError: it could not be written.
        """
        try:
            self._write("session.json", enrolment)
        except OSError as error:
            raise HapteraError(
                f"the session cannot be kept: {error.strerror}",
                where=str(self._directory),
                do="free some space there; the token is still valid",
                code=Code.STORAGE_FAILED,
            ) from error
        self._enrolment = enrolment

    def save_session(self, session: SavedSession) -> None:
        """Keep the parent's boot-id and address."""
        assert self._enrolment is not None
        self._enrolment = replace(self._enrolment, session=session)
        self._write_unawaited("session.json", self._enrolment)

    def save_certificate(self, certificate: bytes) -> None:
        """Keep a renewed certificate."""
        assert self._enrolment is not None
        self._enrolment = replace(self._enrolment, certificate=certificate)
        self._write_unawaited("session.json", self._enrolment)

    def keep_identity(self, certificate: bytes) -> Path:
        """Put key and certificate where TLS reads them; returns the file that holds both."""
        for folder in self._folders:
            write_private(folder / "identity.pem", key_pem(self.key()) + certificate)
        return self._directory / "identity.pem"

    def keep_uplink(self, host: str, port: int) -> None:
        """Put the parent's address where modules read it, beside the identity that they show."""
        assert self._enrolment is not None
        for folder in self._folders:
            identity = str((folder / "identity.pem").absolute())
            said = Uplink(host, port, self._enrolment.ca.decode("ascii"), identity)
            self._write_unawaited(str((folder / UPLINK).relative_to(self._directory)), said)

    @property
    def _folders(self) -> tuple[Path, Path]:
        """The folders where modules read the node's identity; `channels` has its own copy."""
        return self._directory, private_directory(self._directory / CHANNELS)

    def key(self) -> Key:
        """The node's key in this boot: the same one for each try to enrol, also after a crash.

        Raises:
            HapteraError: the file with it cannot be read.
        """
        place = self._directory / "key.pem"
        try:
            if not place.exists():
                write_private(place, key_pem(new_key()))
            return parse_key(place.read_bytes())
        except (OSError, ValueError) as error:
            raise HapteraError(
                "contains no key",
                where=str(place),
                do="remove the run directory, boot the node",
                code=Code.STORAGE_UNREADABLE,
            ) from error

    def _read(self, name: str, shape: type[Content]) -> Content | None:
        place = self._directory / name
        try:
            return msgspec.json.decode(place.read_bytes(), type=shape)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, RecursionError) as error:
            raise HapteraError(
                "cannot be read",
                where=str(place),
                do="remove the run directory, boot the node",
                code=Code.STORAGE_UNREADABLE,
            ) from error

    def _write_unawaited(self, name: str, content: object) -> None:
        """What this process has in memory anyway: a full directory must not end it."""
        try:
            self._write(name, content)
        except OSError as error:
            _log.warning("%s/%s: not kept: %s", self._directory, name, error.strerror)

    def _write(self, name: str, content: object) -> None:
        write_private(self._directory / name, msgspec.json.encode(content))


def _applied(intents: _Intents, write: Write) -> _Intents:
    kept = {intent.id: intent for intent in intents.open}
    for change in write.changes:
        match change:
            case OpenIntent(intent) if intent.id not in kept and not intent.enrols:
                kept[intent.id] = intent
            case CloseIntent(intent_id):
                kept.pop(intent_id, None)
            case OpenIntent(intent):
                raise HapteraError(f"intent {intent.id} is open already, or enrols")
            case _:
                raise HapteraError("the desired state of an agent is changed at its parent")
    return _Intents(intents.revision + len(write.changes), tuple(kept.values()))
