"""A node is told the secrets that modules on it are to have, and no others."""

from pathlib import Path

import pytest

from haptera.model.changes import Declare, SetDesired
from haptera.model.declared.secrets import parse_reference
from haptera.model.entity import EntityId
from haptera.model.errors import HapteraError
from haptera.runtime.network.peer_messages import SecretTold
from haptera.runtime.processes.secrets import SecretStore
from tests.daemon.channel_rig import rig

pytestmark = pytest.mark.net

HERE, ELSEWHERE = (EntityId("module", "service", node) for node in ("n01", None))


async def test_only_what_a_module_on_the_node_is_to_have_is_told(tmp_path: Path) -> None:
    async with rig(tmp_path) as one:
        # The rig's parent keeps its secrets in its own folder.
        kept = SecretStore(tmp_path)
        kept.put("mine", b"hunter2\n")
        kept.put("other", b"hunter3\n")
        for entity, name in ((HERE, "mine"), (HERE, "lost"), (ELSEWHERE, "other")):
            table = one.parent_engine.table
            table.apply(Declare(entity, {}, "site"), 9)
            settings = f'{{"key":{{"secret":"{name}"}},"all":[{{"secret":"lost"}}]}}'
            if name != "lost":
                table.apply(SetDesired(entity, "settings", settings, "site"), 10)

        assert await one.agent.find("service", parse_reference("mine")) == "hunter2"
        kept.allow("mine", ["labnode", "service@n02"])
        for name, why in (
            ("mine", "secret mine: module:service@n01 may not use it"),
            ("other", "no module on n01 is to have the secret other"),
            ("lost", "secret lost: it is not set: haptera secret set lost"),
        ):
            with pytest.raises(HapteraError, match=why):
                await one.agent.find("service", parse_reference(name))


def test_an_answer_does_not_show_what_it_tells() -> None:
    assert "hunter2" not in repr(SecretTold("hunter2"))
