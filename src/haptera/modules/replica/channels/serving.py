"""The channels of a replica on its node: its socket, its lease, and the way to its carrier."""

import asyncio
import contextlib
import logging
import os
import secrets
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

from haptera.app.channel_talk import frame
from haptera.app.lease import LEASE_TIME, epoch_of, opened
from haptera.keeping import keeper
from haptera.keeping.services import UNBEGUN, Service
from haptera.kinds import replica
from haptera.kinds.group import Recover, numbered, parse_compare, parse_hears
from haptera.kinds.replica import TrialCounts
from haptera.modules.replica.channels.carrier import CarrierError
from haptera.modules.replica.channels.comparison import (
    AS_IT_IS,
    NOTHING_COUNTED,
    TrialComparison,
)
from haptera.modules.replica.channels.door import channels_door
from haptera.modules.replica.channels.session import ChannelPlan, ChannelSession
from haptera.modules.replica.sockets import session_of
from haptera.sdk import HapteraError, Target
from haptera.sdk.uplink import CHANNELS, uplink

# In a replica's folder, which its program may write in: which process of it has begun on its
# channels. A link that leads nowhere, so that nothing is opened there.
BEGUN: Final = "begun"
# The same way, of one version of what is desired: how what a trial says compares with what its
# leader says. So the counts outlive the module's process.
COMPARED: Final = "compared"
TOLD_EVERY_S: Final = 5.0

_log = logging.getLogger(__name__)


def is_carried(target: Target) -> bool:
    """True of a replica that has channels."""
    return target.values.get(replica.carriers.name) is not None


def is_on_trial(target: Target) -> bool:
    """True of a replica that runs another version beside its group."""
    return target.values.get(replica.voice.name) == replica.TRIAL


@contextlib.asynccontextmanager
async def channels_socket(one: Service, lease_file: Path) -> AsyncIterator[None]:
    """Serve a replica's program, as long as this lasts; nothing where it has no channels.

    What it says is compared where it is a trial's.
    """
    if not is_carried(one.target):
        yield
        return
    comparison = _comparison(one) if is_on_trial(one.target) else None

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await _serve(one, lease_file, reader, writer, comparison)
        except CarrierError as error:
            if one.unbegun is not None:
                _write(one, BEGUN, f"{UNBEGUN}{error}")
            raise

    one.home.make()
    async with channels_door(one.home.path, serve):
        telling = asyncio.create_task(_tell(one, comparison))
        try:
            yield
        finally:
            telling.cancel()


def _comparison(one: Service) -> TrialComparison:
    """A comparison that goes on where an earlier process of the module has come to."""
    text = one.target.values.get(replica.compare.name)
    how = AS_IT_IS if text is None else parse_compare(str(text))
    return TrialComparison(how, TrialCounts.of(compared_text(one)) or NOTHING_COUNTED)


async def _tell(one: Service, comparison: TrialComparison | None) -> None:
    """Note how a trial compares now and then, and log what differs as far as it is kept."""
    logged = 0
    while comparison is not None:
        with contextlib.suppress(OSError):  # its program has put something in the place of that
            _write(one, COMPARED, f"{one.target.digest} {comparison}")
        for differs in comparison.kept[logged:]:
            said = (differs.at, differs.trial, differs.leader)
            _log.warning("%s: at %s the trial says %r, and the leader %r", one.target.entity, *said)
        logged = len(comparison.kept)
        await asyncio.sleep(TOLD_EVERY_S)


def compared_text(one: Service) -> str | None:
    """The comparison of a replica on trial; None where it is none, or nothing is known."""
    if not is_on_trial(one.target):
        return None
    try:
        digest, _, text = os.readlink(one.home.path / COMPARED).partition(" ")
    except OSError:
        return None
    return text if digest == one.target.digest else None


async def _serve(
    one: Service,
    lease_file: Path,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    comparison: TrialComparison | None,
) -> None:
    if (leader := session_of(one.home, writer)) is None:
        raise ConnectionError("this is not a process of the replica")
    # Imported only where there are channels: nodes without them do not have it.
    try:
        from haptera.modules.replica.channels.nats_carrier import nats_carrier
    except ModuleNotFoundError as error:
        why = f"{one.target.node} lacks the package {error.name}: install haptera[channels] there"
        writer.write(frame({"op": "failed", "why": why}))
        return
    servers = str(one.target.values[replica.carriers.name]).split(",")
    lease_file.parent.mkdir(parents=True, exist_ok=True)
    async with nats_carrier(servers, identity_shown(one.target.run_dir)) as carrier:
        with opened(lease_file) as lease:
            times = one.target.run_dir / LEASE_TIME
            await ChannelSession(
                _plan(one),
                carrier,
                lambda: epoch_of(lease, leader, times),
                reader,
                writer,
                lambda: _begun(one),
                comparison if _is_current(one) else None,
            ).serve()


def _is_current(one: Service) -> bool:
    """True where the process was started by what is desired: one that is to be replaced is not."""
    record = one.home.record()
    return record is not None and record.digest == one.target.digest


def _plan(one: Service) -> ChannelPlan:
    values = one.target.values
    group, rank = numbered(one.target.name)
    starts = int(keeper.read_state(str(one.home.path / keeper.STATE))["starts"][0])
    return ChannelPlan(
        group,
        rank,
        int(values["placement"]),
        starts,
        parse_hears(str(values.get(replica.hears.name) or "")),
        values.get(replica.voice.name) == replica.ALONE,
        Recover(str(values.get(replica.recover.name) or Recover.EMPTY)),
    )


def _begun(one: Service) -> None:
    """Note which process has what it needs; a look tells that it is ready."""
    if (record := one.home.record()) is not None:
        _write(one, BEGUN, str(record.service))


def _write(one: Service, name: str, said: str) -> None:
    draft = one.home.path / f"{name}.{secrets.token_hex(8)}"
    draft.symlink_to(said)
    draft.replace(one.home.path / name)


def identity_shown(run_dir: Path) -> ssl.SSLContext:
    """As this node, to the node that has the address that is called: its certificate says so.

    Raises:
        CarrierError: the node has no identity yet.
    """
    try:
        said = uplink(run_dir / CHANNELS)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.load_verify_locations(cadata=said.ca)
        context.load_cert_chain(said.identity)
    except (OSError, HapteraError) as error:
        raise CarrierError(f"this node has no identity for its carrier: {error}") from error
    return context
