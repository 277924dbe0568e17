"""The lease of a cluster's parent in etcd: taken, renewed, and the end of who cannot renew it."""

import asyncio
import contextlib
import logging
import re
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from haptera.core.safety.tenure import LeaseChoice, LeaseRecord, LeaseSeeker, Tenure, choose
from haptera.core.state.limits import S
from haptera.daemon.cluster import read_cluster
from haptera.daemon.tree.etcd import Etcd
from haptera.daemon.tree.replicas import read_beside, term_of
from haptera.model.errors import Code, HapteraError
from haptera.runtime.clock import now_ns

# How often a lease is renewed in its length, and how much before its end a parent that could not
# begins to close its files.
RENEWALS: Final = 5
CLOSE_S: Final = 1
TRY_AGAIN_S: Final = 1.0
_NUMBER: Final = re.compile(r"[0-9]{1,19}")

_log = logging.getLogger(__name__)


class _Granted(msgspec.Struct, frozen=True):
    """etcd writes numbers of 64 bits as texts, and leaves out what is 0."""

    ID: str
    TTL: str = "0"


class _Renewed(msgspec.Struct, frozen=True):
    result: _Granted


class _KeyValue(msgspec.Struct, frozen=True):
    value: bytes = b""
    mod_revision: str = "0"


class _Range(msgspec.Struct, frozen=True):
    kvs: tuple[_KeyValue, ...] = ()


class _Response(msgspec.Struct, frozen=True):
    response_range: _Range = _Range()


class _Done(msgspec.Struct, frozen=True):
    succeeded: bool = False
    responses: tuple[_Response, ...] = ()


class LeaseInEtcd:
    """One seeker's part: `tenure` says how long it may act."""

    def __init__(self, etcd: Etcd, cluster: str, own: LeaseSeeker) -> None:
        self._etcd = etcd
        self.length_s = etcd.lease_s
        self._own = own
        self._holder = f"{etcd.prefix}/{cluster}/parent".encode()
        self._term = f"{etcd.prefix}/{cluster}/term".encode()
        self._id = ""
        self.tenure = Tenure()
        self.lost: HapteraError | None = None

    def take(self) -> str | None:
        """Take the lease if nobody else has it; else who does.

        Raises:
            HapteraError: etcd cannot be asked, or a later term has begun.
        """
        holder, term = self._look()
        found = _record(holder, term)
        match choose(self._own, found):
            case LeaseChoice.WAIT:
                return f"{found.holder} holds the lease"
            case LeaseChoice.GIVE_UP:
                raise HapteraError(
                    f"holds the store of term {self._own.known};"
                    f" {found.begun_by} has begun term {found.term}",
                    where=self._holder.decode(),
                    do="follow that parent: haptera standby --dir DIR --listen ADDRESS",
                    code=Code.CONFLICT,
                )
            case LeaseChoice.TAKE:
                return None if self._put(holder, term) else "another one was faster"

    def is_held(self) -> bool:
        """Whether anybody holds it.

        Raises:
            HapteraError: etcd cannot be asked.
        """
        return bool(self._look()[0].value)

    def renew(self) -> None:
        """Hold it for its whole length once more.

        Raises:
            HapteraError: etcd cannot be asked, or the lease is over.
        """
        asked_at = now_ns()
        renewed = self._etcd.ask("/v3/lease/keepalive", {"ID": self._id}, _Renewed).result
        if renewed.TTL == "0":
            raise HapteraError("the lease in etcd is over", where=self._holder.decode())
        if self._id != renewed.ID:
            raise HapteraError("etcd renewed another lease", where=self._holder.decode())
        self._granted(asked_at, renewed)

    async def begin(self, stopped: asyncio.Event) -> None:
        """Wait until the lease is held, or this process is stopped.

        Raises:
            HapteraError: a later term has begun.
        """
        said: str | None = None
        while not stopped.is_set() and self.tenure.left_ns(now_ns()) == 0:
            try:
                why = await asyncio.to_thread(self.take)
            except HapteraError as error:
                if error.code is Code.CONFLICT:
                    raise
                why = str(error)
            if why is not None and why != said:
                _log.warning("waits to be the parent: %s", why)
            said = why
            if why is not None:
                await _pause(stopped)
        if not stopped.is_set():
            self.end_with_it()

    async def keep(self, stopped: asyncio.Event) -> None:
        """Renew until cancelled; where that fails for too long, the parent stops."""
        while self.tenure.left_ns(now_ns()) > CLOSE_S * S:
            left_s = self.tenure.left_ns(now_ns()) / S
            await asyncio.sleep(min(self.length_s / RENEWALS, left_s / 2))
            try:
                await asyncio.to_thread(self.renew)
            except HapteraError as error:
                left_s = self.tenure.left_ns(now_ns()) / S
                _log.warning("cannot renew its lease, which ends in %.1f s: %s", left_s, error)
            self.end_with_it()
        self.lost = HapteraError(
            "could not renew its lease in etcd: it stops, and its standby may take over",
            where=self._holder.decode(),
            do="see that etcd answers, then start it again",
        )
        stopped.set()

    def end_with_it(self) -> None:
        """Have the kernel end this process with its tenure, whatever it is doing then.

        A process that is stopped (SIGSTOP, the debugger) past that time is ended before it runs
        another instruction: the signal is pending as it continues.
        """
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, max(1e-6, self.tenure.left_ns(now_ns()) / S))

    def _look(self) -> tuple[_KeyValue, _KeyValue]:
        ranges = [{"request_range": {"key": key}} for key in (self._holder, self._term)]
        done = self._etcd.ask("/v3/kv/txn", {"success": ranges}, _Done)
        kvs = [one.response_range.kvs for one in done.responses]
        if len(kvs) != len(ranges):
            what = "etcd answers something else than what was asked"
            raise HapteraError(what, where=self._holder.decode())
        holder, term = (one[0] if one else _KeyValue() for one in kvs)
        return holder, term

    def _put(self, holder: _KeyValue, term: _KeyValue) -> bool:
        """Take the lease if nothing has changed since it was looked at."""
        asked_at = now_ns()
        granted = self._etcd.ask("/v3/lease/grant", {"TTL": self.length_s}, _Granted)
        mine, name = self._own, self._own.name.encode()
        texts = ((self._holder, name, granted.ID), (self._term, b"%d %b" % (mine.term, name), "0"))
        puts = [
            {"request_put": {"key": key, "value": text, "lease": lease}}
            for key, text, lease in texts
        ]
        compare = [
            {"key": key, "target": "MOD", "result": "EQUAL", "mod_revision": seen.mod_revision}
            for key, seen in ((self._holder, holder), (self._term, term))
        ]
        done = self._etcd.ask("/v3/kv/txn", {"compare": compare, "success": puts}, _Done)
        if done.succeeded:
            self._granted(asked_at, granted)
        return done.succeeded

    def _granted(self, asked_at: int, granted: _Granted) -> None:
        if not _NUMBER.fullmatch(granted.TTL) or int(granted.TTL) == 0:
            raise HapteraError("etcd grants no length of time", where=self._holder.decode())
        self._id = granted.ID
        # On any answer, it acts no longer than it asked for.
        self.tenure.renewed(asked_at, min(int(granted.TTL), self.length_s) * S)


def lease_in_etcd(files: Sequence[str], home: Path, name: str, later: int) -> LeaseInEtcd | None:
    """What a parent, or its standby one term `later`, contends for; None where no etcd is named.

    Raises:
        HapteraError: a file is wrong, or this is no cluster's directory yet.
    """
    if not files:
        return None
    cluster = read_cluster(home)
    if cluster is None:
        raise HapteraError("is of no cluster yet", where=str(home), do="let it follow first")
    known = term_of(read_beside(home))
    return LeaseInEtcd(Etcd(files, home), cluster.name, LeaseSeeker(name, known, known + later))


def _record(holder: _KeyValue, term: _KeyValue) -> LeaseRecord:
    number, _, begun_by = term.value.decode("utf-8", "replace").partition(" ")
    if not _NUMBER.fullmatch(number):
        return LeaseRecord(holder.value.decode("utf-8", "replace") or None)
    return LeaseRecord(holder.value.decode("utf-8", "replace") or None, int(number), begun_by)


async def _pause(stopped: asyncio.Event) -> None:
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(stopped.wait(), TRY_AGAIN_S)
