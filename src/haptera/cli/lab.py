"""`haptera lab`: a virtual cluster on this machine, brought to a site file, and shown."""

import asyncio
import contextlib
import secrets
import signal
from collections.abc import Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import msgspec

from haptera.cli.main import INTERRUPTED, OK
from haptera.cli.output.differences import lines
from haptera.cli.output.live import live
from haptera.cli.output.printing import say
from haptera.cli.output.words import printable
from haptera.client import Access, Client, RefusedError, calls, find
from haptera.daemon.cluster import check_cluster
from haptera.lab.bridge import PORT, Bridge, check_here, open_network
from haptera.lab.layout import BMC_SECRET, LabConfig, Places, octet, open_cluster
from haptera.lab.machine_bmc import Language
from haptera.lab.settings import lab_bridge, lab_cloud, lab_machines, lab_nodes
from haptera.lab.supervisor import open_lab
from haptera.minos.build import LIST, build
from haptera.model.errors import Code, HapteraError, UnreadableError
from haptera.rest.schemas import SiteBody
from haptera.runtime.identity.private import private_directory, write_private
from haptera.runtime.processes.secrets import SecretStore
from haptera.site.model.site import Site, load_site
from haptera.site.syntax.sources import constants_of, folder_of, gather
from haptera.site.syntax.template import LAB_OCTET

PARENT: Final = "haptera.daemon.parent.parent:serve_process"
AGENT: Final = "haptera.daemon.agent:agent_process"
# H of a lab.
HELLO_MS: Final = 1_000
# How long the parent may take until it serves, and how often it is asked.
READY_WITHIN_S: Final = 30.0
ASK_EVERY_S: Final = 0.05
# How often it is seen whether there is another parent, once this one lets us in no more.
_LOOK_EVERY_S: Final = 1.0
# A parent that ended this often before it served will not come up.
STARTS_MAX: Final = 3
CHECK: Final = "check.sh"
TO_TRY: Final = "  open it: a red cell tells why; colour by power, search condition=stuck"
# By which the parent's secret `bmc` opens the BMCs of virtual machines.
BMC_USER: Final = "haptera"
# What `--vms N` stands for; `haptera export` writes it for a site of one's own.
_MACHINES: Final = """\
cluster: machines
modules:
  jobs: {{}}
  minos: {{}}
  {language}:
    settings: {{user: haptera, password: {{secret: bmc}}, graceful_s: 2, {more}}}
  netboot:
    settings: {{interface: br0, address: 10.99.0.1/24}}
nodes:
  n[1-{count}]:
    platform: {language}
    boot_from: network
    mac: "52:54:00:00:01:{{n:02x}}"
    address: "10.99.0.{{n+10}}"
    bmc: "127.{{x}}.2.{{index}}:623"
desired:
  n[1-{count}]: {{power: on, agent: up}}
lab:
  bridge: {{address: 10.99.0.1/24}}
  memory_mb: 384
  uefi: {uefi}
"""
# ipmi_sim knows no better suite.
_MORE: Final = {
    Language.IPMI: "cipher_suite: 3, record_consoles: true",
    Language.REDFISH: "auth: session",
}
BMC_PASSWORD_BYTES: Final = 8


def run(*, directory: Path, site: Path, once: bool, radius_percent: int) -> int:
    """Run the lab until interrupted; with `once`, until its check has passed or failed.

    Raises:
        HapteraError: the site file is wrong, another lab runs here…; nothing was started.
    """
    gather([site])  # A name mistyped must leave nothing behind.
    if not directory.is_dir():
        raise UnreadableError("the folder does not exist", where=str(directory), do="make it first")
    places = Places(directory.resolve())
    cluster = open_cluster(places)
    constants = {LAB_OCTET: str(octet(cluster)), **constants_of(site)}
    wanted = load_site(site, constants)
    check_cluster(places.parent, wanted.cluster)
    attributes = {
        one.entity.name: one.attributes for one in wanted.entities if one.entity.kind == "node"
    }
    bridge = lab_bridge(wanted.lab)
    config = LabConfig(
        places.directory,
        cluster,
        lab_nodes(attributes, wanted.lab),
        parent=PARENT,
        agent=AGENT,
        parent_arguments={**_parent(wanted, constants), "radius_percent": radius_percent},
        machines=lab_machines(attributes, wanted.lab),
        bmc_user=BMC_USER,
        cloud=lab_cloud(wanted.lab),
    )
    if bridge is not None:
        config = _on_bridge(config, bridge)
    return asyncio.run(_run(config, site, once=once))


def site_of_machines(directory: Path, count: int, language: Language, *, uefi: bool) -> Path:
    """A site file of so many virtual machines, and what they boot, where there is none yet.

    Raises:
        HapteraError: this machine cannot run virtual machines.
    """
    check_here([language], uefi=uefi)
    places = Places(directory.resolve())
    private_directory(places.root)
    minos = private_directory(places.parent) / "minos"
    if not (minos / LIST).exists():
        say("builds the minOS that they boot, once")
        build(minos, ("virtio_pci", "virtio_net"), None)
    site = private_directory(places.lab) / "machines.yaml"
    named = f"n[1-{count}]" if uefi else '""'
    text = _MACHINES.format(count=count, language=language, more=_MORE[language], uefi=named)
    site.write_text(text, encoding="ascii")
    return site


def _on_bridge(config: LabConfig, bridge: Bridge) -> LabConfig:
    """The same, reached by its machines at a bridge in a network namespace of its own.

    Raises:
        HapteraError: this machine cannot run virtual machines.
    """
    check_here(
        {one.language for one in config.machines}, uefi=any(one.uefi for one in config.machines)
    )
    secrets_of_parent = SecretStore(private_directory(config.places.parent))
    if BMC_SECRET not in secrets_of_parent.names():
        secrets_of_parent.put(BMC_SECRET, secrets.token_hex(BMC_PASSWORD_BYTES).encode())
    write_private(config.places.bmc_password, secrets_of_parent.content(BMC_SECRET))
    open_network(bridge, [PORT.format(number) for number in range(len(config.machines))])
    there = {"address": str(bridge.address.ip), "ways": {"api": config.parent_address}}
    return replace(config, parent_arguments={**config.parent_arguments, **there})


def _parent(site: Site, constants: dict[str, str]) -> dict[str, Any]:
    return {
        "name": site.cluster,
        "modules": list(site.modules),
        "controllers": [msgspec.structs.asdict(one) for one in site.controllers],
        "own": [msgspec.to_builtins(one) for one in site.own],
        "hello_ms": HELLO_MS,
        "constants": constants,
    }


async def _run(config: LabConfig, site: Path, *, once: bool) -> int:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    before = _content(config.places.client)
    async with open_lab(config):
        outcome = await _until(stopped, _work(config, site, before, once=once))
    # The lab has ended first, and orderly.
    if isinstance(outcome, HapteraError):
        raise outcome
    # Only a check can be cut short; a lab to look at ends by Ctrl-C.
    if outcome is None:
        return INTERRUPTED if once else OK
    return outcome


async def _work(config: LabConfig, site: Path, before: bytes | None, *, once: bool) -> int:
    access = await _ready(config, before)
    await asyncio.to_thread(_apply, access, site)
    say(f"status page: {access.page}")
    if not once:
        say(TO_TRY)
    return await (_check(config, site) if once else _show(access, config.places.client))


async def _until(
    stopped: asyncio.Event, work: Coroutine[Any, Any, int]
) -> int | HapteraError | None:
    """The work's result, or what is wrong; None where it was interrupted."""
    working = asyncio.create_task(work)
    waiting = asyncio.create_task(stopped.wait())
    await asyncio.wait({working, waiting}, return_when=asyncio.FIRST_COMPLETED)
    interrupted = not working.done()
    waiting.cancel()
    working.cancel()
    try:
        return await working
    except HapteraError as error:
        return error
    except asyncio.CancelledError:
        if interrupted:
            return None
        raise


async def _ready(config: LabConfig, before: bytes | None) -> Access:
    """How to ask the lab's own parent, once that has made the file for it.

    The file from `before` names a parent that is gone.

    Raises:
        HapteraError: it has not within its time, or it dies again and again; its log says why.
    """
    places = config.places
    started: set[bytes | None] = set()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(READY_WITHIN_S):
            while len(started) <= STARTS_MAX:
                if _content(places.client) != before:
                    return find(places.client).access
                started.add(_content(places.parent / "parent.pid"))
                await asyncio.sleep(ASK_EVERY_S)
    log = places.parent / "serve.log"
    last = (_content(log) or b"").decode(errors="replace").splitlines()[-1:]
    raise HapteraError(
        f"the parent does not start: {printable(last[0]) if last else 'no output'}",
        where=str(log),
        do="fix this, then start the lab again",
    )


def _content(file: Path) -> bytes | None:
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return None


def _apply(access: Access, site: Path) -> None:
    """Apply the site; where others own some of it since, leave all as it is, and say what differs.

    Raises:
        HapteraError: it is wrong in itself.
    """
    body = SiteBody([*gather([site])], access.constants)
    with Client(access) as client:
        try:
            client.ask(calls.apply(body))
        except RefusedError as error:
            if error.code != Code.OWNED:
                raise
            say(f"the state is unchanged: {site} is not applied, because others own some of it")
            for line in lines(client.ask(calls.diff(body)).differences):
                say(f"  {line}")
            say(f"to apply all of the file: haptera apply --take {site}")


async def _show(access: Access, client: Path) -> int:
    """Show the cluster; where its parent lets us in no more, the lab goes on without that."""
    while True:
        before = _content(client)
        try:
            await live.show(access)
        except HapteraError as error:
            say(f"no longer shown: {error}; the lab continues, Ctrl-C ends it")
        # Each parent makes a token of its own when it starts.
        while _content(client) == before:  # noqa: ASYNC110  a file is waited for
            await asyncio.sleep(_LOOK_EVERY_S)
        access = find(client).access


async def _check(config: LabConfig, site: Path) -> int:
    """Run the check that lies beside the site file, on this lab."""
    process = await asyncio.create_subprocess_exec(
        "bash",
        str(folder_of(site) / CHECK),
        str(config.directory),
        stdin=asyncio.subprocess.DEVNULL,
    )
    try:
        return await process.wait()
    except asyncio.CancelledError:
        process.terminate()
        await process.wait()
        raise
