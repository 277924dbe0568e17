"""What is named from outside is opened only where nobody else may have changed it."""

import os
from pathlib import Path

import pytest

from haptera.model.errors import HapteraError
from haptera.sdk.owned_files import owned

ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files to others")
NOBODY = 65_534


@pytest.fixture(name="conf")
def _conf(tmp_path: Path) -> Path:
    (tmp_path / "etc").mkdir(mode=0o755)
    conf = tmp_path / "etc/slurm.conf"
    conf.write_text("PluginDir=/usr/lib\n")
    conf.chmod(0o644)
    return conf


def test_what_only_its_owner_may_write_is_opened(conf: Path, tmp_path: Path) -> None:
    assert owned(str(conf)) == conf
    assert owned(str(tmp_path / "etc")) == tmp_path / "etc"
    link = tmp_path / "link"
    link.symlink_to("etc/../etc/slurm.conf")
    assert owned(str(link)) == conf


@pytest.mark.parametrize("mode", [0o646, 0o664])
def test_what_others_may_write_is_refused(conf: Path, mode: int) -> None:
    conf.chmod(mode)
    with pytest.raises(HapteraError, match="others than its owner may write"):
        owned(str(conf))


def test_what_lies_where_others_may_put_another_is_refused(conf: Path) -> None:
    conf.parent.chmod(0o777)
    with pytest.raises(HapteraError, match=r"may write \S*/etc "):
        owned(str(conf))
    conf.parent.chmod(0o1777)
    assert owned(str(conf)) == conf


@ROOT
@pytest.mark.parametrize("whose", ["file", "folder", "link", "folder of a link"])
def test_what_belongs_to_others_or_leads_through_theirs_is_refused(
    conf: Path, tmp_path: Path, whose: str
) -> None:
    links = tmp_path / "links"
    links.mkdir()
    (links / "one").symlink_to(conf)
    given = {"file": conf, "folder": conf.parent, "link": links / "one", "folder of a link": links}
    os.chown(given[whose], NOBODY, NOBODY, follow_symlinks=False)
    with pytest.raises(HapteraError, match=f"belongs to user {NOBODY}"):
        owned(str(links / "one"))


def test_what_is_no_file_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe", 0o600)
    for name, text in (("pipe", "no regular file"), ("none", "No such file"), ("a\0b", "null")):
        with pytest.raises(HapteraError, match=text):
            owned(str(tmp_path / name))
    (tmp_path / "round").symlink_to("round")
    with pytest.raises(HapteraError, match="too many links"):
        owned(str(tmp_path / "round"))
