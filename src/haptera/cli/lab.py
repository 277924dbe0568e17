"""`haptera lab`: a virtual cluster on this machine, brought to a site file, and shown."""

import asyncio
import contextlib
import signal
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, Final

import click

from haptera.api.shapes import Applied, SiteBody
from haptera.cli import live
from haptera.cli.client import Client, UnreachableError, find_client
from haptera.config.site import Site, load_site, read_text
from haptera.lab.layout import LabConfig, Places, octet, open_cluster
from haptera.lab.settings import lab_nodes
from haptera.lab.supervisor import open_lab
from haptera.model.errors import HapteraError

PARENT: Final = "haptera.daemon.parent:serve_process"
AGENT: Final = "haptera.daemon.agent:agent_process"
# H of a lab (DESIGN section 5).
HELLO_MS: Final = 1_000
# How long the parent may take until it serves, and how often it is asked.
READY_WITHIN_S: Final = 30.0
ASK_EVERY_S: Final = 0.05
CHECK: Final = "check.sh"
INTERRUPTED: Final = 0


def run(*, directory: Path, site: Path, once: bool) -> int:
    """Run the lab until interrupted; with `once`, until its check has passed or failed.

    Raises:
        HapteraError: the site file is wrong, another lab runs here…; nothing was started.
    """
    places = Places(directory.resolve())
    cluster = open_cluster(places)
    constants = {
        "x": str(octet(cluster)),
        "python": sys.executable,
        "site": str(site.resolve().parent),
    }
    wanted = load_site(site, constants)
    attributes = {
        one.entity.name: one.attributes for one in wanted.entities if one.entity.kind == "node"
    }
    config = LabConfig(
        places.directory,
        cluster,
        lab_nodes(attributes, wanted.lab),
        parent=PARENT,
        agent=AGENT,
        parent_arguments=_parent(wanted, constants),
    )
    return asyncio.run(_run(config, site, once=once))


def _parent(site: Site, constants: dict[str, str]) -> dict[str, Any]:
    return {
        "name": site.cluster,
        "modules": list(site.modules),
        "hello_ms": HELLO_MS,
        "constants": constants,
    }


async def _run(config: LabConfig, site: Path, *, once: bool) -> int:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    # The old file names the tokens and, perhaps, the address of a parent that is gone.
    config.places.client.unlink(missing_ok=True)
    async with open_lab(config):
        client = await _ready(config)
        await asyncio.to_thread(_apply, client, site)
        click.echo(f"status page: {client.page}")
        work = _check(config, site) if once else _show(client)
        return await _until(stopped, work)


async def _until(stopped: asyncio.Event, work: Coroutine[Any, Any, int]) -> int:
    """The work's result, or what an interrupt makes of it."""
    working = asyncio.create_task(work)
    waiting = asyncio.create_task(stopped.wait())
    await asyncio.wait({working, waiting}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    if working.done():
        return working.result()
    working.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await working
    return INTERRUPTED


async def _ready(config: LabConfig) -> Client:
    """The client of the lab's own parent, once that has made the file for it.

    Raises:
        HapteraError: it has not within its time; its log says why.
    """
    try:
        async with asyncio.timeout(READY_WITHIN_S):
            while True:
                with contextlib.suppress(UnreachableError):
                    return find_client(config.places.client, config.directory)[0]
                await asyncio.sleep(ASK_EVERY_S)
    except TimeoutError:
        raise HapteraError(
            f"the parent does not serve after {READY_WITHIN_S:g} s",
            where=str(config.places.parent / "serve.log"),
            do="see there what it says",
        ) from None


def _apply(client: Client, site: Path) -> None:
    body = SiteBody(read_text(site), str(site), dict(client.constants))
    client.ask("POST", "/v1/apply", Applied, body=body)


async def _show(client: Client) -> int:
    await live.show(client)
    return 0


async def _check(config: LabConfig, site: Path) -> int:
    """Run the check that lies beside the site file, on this lab."""
    process = await asyncio.create_subprocess_exec(
        "bash", str(site.parent / CHECK), str(config.directory), stdin=asyncio.subprocess.DEVNULL
    )
    try:
        return await process.wait()
    except asyncio.CancelledError:
        process.terminate()
        await process.wait()
        raise
