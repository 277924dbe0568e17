"""Sites read by real worker processes: bounded in memory, time and answers, and as in a thread."""

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from haptera.core.desired.ownership import Claim
from haptera.model.errors import Code, HapteraError, InputError
from haptera.rest.schemas import SiteFile
from haptera.runtime.processes.forking import PRELOAD, LoopZygote, exec_zygote
from haptera.site import Sites
from haptera.site.apply.site_process import BOUNDS, readers
from tests.kills.processes import names_below
from tests.lab.rig import until

pytestmark = pytest.mark.net

SITE = """\
cluster: quick
nodes: {"n[1-3]": {platform: labnode, rack: "r{1}"}}
services: {web: {command: sleep, port: 80}}
desired: {"n[1-2]": {power: "on"}, web@n1: {run: running}}
"""
# 4 MB of a list without end: 30 s of a core, and 350 MB.
LARGE = "cluster: quick\nlab: [" + "1," * 1_900_000 + "]\n"


@asynccontextmanager
async def reading(tmp_path, **bounds):
    """Sites that workers read, none of which is left."""
    zygote = LoopZygote(lambda: exec_zygote(PRELOAD))
    workers = readers(zygote, tmp_path, replace(BOUNDS, **bounds))
    try:
        async with asyncio.timeout(60):
            yield Sites("quick", work=workers.ask)
            await until(lambda: not busy())
    finally:
        zygote.close()


def busy():
    """Whether a worker is there."""
    return "reader" in names_below()


def of(text):
    return [SiteFile("site.yaml", text)]


async def test_a_worker_reads_what_a_thread_reads(tmp_path):
    async with reading(tmp_path) as sites:
        by_worker = await sites.read(of(SITE), {})
        by_thread = await Sites("quick").read(of(SITE), {})
        made = by_worker.changes([], Claim.LEAVE)
        assert len(made) > 5
        assert made == by_thread.changes([], Claim.LEAVE)
        assert by_worker.difference([]) == by_thread.difference([])


async def test_what_is_wrong_comes_back_with_its_places(tmp_path):
    async with reading(tmp_path) as sites:
        with pytest.raises(InputError) as refused:
            await sites.read(of("cluster: quick\nnodez: {}\nnodes: {n1: {rak: x}}\n"), {})
        told = [(one.what, one.where) for one in refused.value.errors]
        assert told == [
            ("unknown key nodez", "site.yaml:2:1"),
            ("a node has no attribute 'rak'", "site.yaml:3:19"),
        ]
        with pytest.raises(InputError) as foreign:
            await sites.read(of("cluster: other\n"), {})
        assert foreign.value.code == Code.WRONG_CLUSTER


@pytest.mark.parametrize(
    ("bounds", "told"),
    [
        ({"memory_bytes_max": 96 << 20}, "reader was ended: .*(more than 96 MiB|memory)"),
        # Enough for the small one after it, on a busy machine too.
        ({"within_s": 4.0}, "reader was ended: no answer within 4 s"),
    ],
)
async def test_what_takes_too_much_ends_its_own_process_and_nothing_else(tmp_path, bounds, told):
    async with reading(tmp_path, **bounds) as sites:
        with pytest.raises(HapteraError, match=told):
            await sites.read(of(LARGE), {})
        # The next one is read as if nothing had been.
        assert (await sites.read(of("cluster: quick\n"), {})).code == {}


async def test_an_answer_has_a_limit(tmp_path):
    async with reading(tmp_path, answer_bytes_max=64 << 10) as sites:
        nodes = 'cluster: quick\nnodes: {"n[1-9999]": {platform: labnode}}\n'
        with pytest.raises(HapteraError, match=r"reader was ended: .*File too large"):
            await sites.read(of(nodes), {})


async def test_more_than_a_site_may_be_is_not_even_begun(tmp_path):
    async with reading(tmp_path) as sites:
        with pytest.raises(HapteraError, match="a site takes 4194304 bytes at most"):
            await sites.read(of("#" * 7_000_000), {})


async def test_one_that_nobody_waits_for_any_more_is_ended(tmp_path):
    async with reading(tmp_path) as sites:
        task = asyncio.create_task(sites.read(of(LARGE), {}))
        await until(busy)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
