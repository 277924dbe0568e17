"""The page on plans: its session is what a real parent answers, its limits are the code's."""

import re
import shlex
from http import HTTPStatus
from pathlib import Path

import pytest

from haptera.api.planning import UNPLANNED
from haptera.cli.plan_file import PLAN_BYTES_MAX
from haptera.core.outcomes import FOLLOWED_MAX
from haptera.model.plan import RADIUS_PERCENT, UNASKED_MAX
from tests.cli.rig import client_of, served, typed

PAGE = (Path(__file__).resolve().parents[2] / "docs/reference/plans.md").read_text("utf-8")
ADDRESS = "127.99.67.1"
SITE = """\
cluster: hall
modules: [labnode, service]
nodes: {"rack1n[01-16]": {platform: labnode, bmc: "127.99.67.9:9", address: 127.99.67.8}}
"""
DESIRED = {"on": "rack1n[01-16]", "off": "rack1n[01-16]", "one": "rack1n03"}


def masked(text: str) -> str:
    """Digests are of the modules' parts, too, which change when these do."""
    return re.sub(r"\b[0-9a-f]{12}\b", "HEX", text)


@pytest.mark.net
@pytest.mark.slow
def test_the_session_is_what_is_printed(tmp_path: Path) -> None:
    (tmp_path / "site.yaml").write_text(SITE)
    (tmp_path / "none.yaml").write_text("".join(SITE.splitlines(keepends=True)[:2]))
    for name, nodes in DESIRED.items():
        power = "off" if name == "off" else "on"
        text = f'{SITE}desired: {{"{nodes}": {{power: {power}}}}}\n'
        (tmp_path / f"{name}.yaml").write_text(text)
    blocks = "".join(re.findall(r"```text session\n(.*?)```", PAGE, re.DOTALL))
    session = re.findall(r"^\$ haptera (.*)\n((?:(?!\$ ).*\n)*)", blocks, re.MULTILINE)
    assert len(session) > 5
    with served(tmp_path, "--site", tmp_path / "site.yaml", address=ADDRESS):
        for words, printed in session:
            _, out, errors = typed(*shlex.split(words), folder=tmp_path, client=client_of(tmp_path))
            assert masked(out + errors) == masked(printed), words


def test_the_limits_are_those_of_the_code() -> None:
    assert f"Past {FOLLOWED_MAX} states of one group (`FOLLOWED_MAX`)" in PAGE
    assert f"More than {RADIUS_PERCENT} % of the nodes, and more than one," in PAGE
    assert UNASKED_MAX == 1
    assert f"of at most {PLAN_BYTES_MAX >> 20} MiB" in PAGE
    assert set(re.findall(r"\| (4\d\d)\b", PAGE)) == {
        str(one.value) for one in (*UNPLANNED, HTTPStatus.PRECONDITION_FAILED)
    }
