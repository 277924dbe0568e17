"""What modules and services write is read by mightier daemons: as files, and nothing else."""

import asyncio
import os

import pytest

from haptera.daemon.logs import Logs
from haptera.daemon.queue.agent_side import FAILED, AgentQueue
from haptera.keeping.gate import JOBS
from haptera.keeping.home import home_of
from haptera.model.entity import EntityId
from haptera.model.errors import HapteraError
from haptera.modules.netboot.strangers import FILE_BYTES_MAX, read_strangers, strangers_file
from haptera.runtime.network.peer_messages import LogAsked, LogTold, Unable

WEB = EntityId("service", "web", "n1")


def link(place, key):
    place.symlink_to(key)


def pipe(place, _key):
    os.mkfifo(place)


def folder(place, _key):
    place.mkdir()


MADE = pytest.mark.parametrize("make", [link, pipe, folder])


def secret(tmp_path):
    key = tmp_path / "key.pem"
    key.write_text("hunter2")
    return key


@MADE
def test_a_service_does_not_have_its_agent_tell_another_file_as_its_log(tmp_path, make):
    output = home_of(tmp_path, "web").output
    output.parent.mkdir(parents=True)
    make(output, secret(tmp_path))
    answer = Logs(tmp_path, ()).answer(LogAsked(WEB), [WEB])
    assert isinstance(answer, Unable)
    assert "hunter2" not in answer.text


def test_what_a_service_wrote_is_told(tmp_path):
    output = home_of(tmp_path, "web").output
    output.parent.mkdir(parents=True)
    output.write_text("it runs")
    answer = Logs(tmp_path, ()).answer(LogAsked(WEB), [WEB])
    assert isinstance(answer, LogTold)
    assert answer.text == b"it runs"


def endless(place, _key):
    place.write_bytes(b"[" + b" " * FILE_BYTES_MAX + b"]")


@pytest.mark.parametrize("make", [link, pipe, folder, endless])
def test_the_module_of_boots_has_its_parent_read_no_other_file_and_no_endless_one(tmp_path, make):
    file = strangers_file(tmp_path)
    file.parent.mkdir()
    make(file, secret(tmp_path))
    with pytest.raises(HapteraError, match="cannot be read") as told:
        read_strangers(tmp_path)
    assert "hunter2" not in str(told.value)


async def said_of_itself(run_dir):
    """The reason, as an agent gives it to its parent, for which its node takes no jobs."""
    told = asyncio.get_running_loop().create_future()

    async def ask(_parent, request, _within_s):
        told.set_result(request.failed)
        await asyncio.Event().wait()

    running = asyncio.ensure_future(AgentQueue(ask, lambda: True, run_dir, "n1").run())
    try:
        return await told
    finally:
        running.cancel()


@pytest.mark.timeout(30)
@MADE
async def test_a_node_says_nothing_of_itself_by_what_is_no_file(tmp_path, make):
    (tmp_path / JOBS).mkdir()
    make(tmp_path / JOBS / FAILED, secret(tmp_path))
    assert await said_of_itself(tmp_path) is None


async def test_of_what_a_program_says_of_its_node_the_beginning_is_told(tmp_path):
    (tmp_path / JOBS).mkdir()
    (tmp_path / JOBS / FAILED).write_bytes(b"its disk\n\x1bfails \xff" * 100_000)
    assert (await said_of_itself(tmp_path)).startswith("its disk ?fails ")
