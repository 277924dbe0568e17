"""The fragments of news become a section of the changelog, above what there is."""

import runpy
from pathlib import Path

from tests.release.rig import ROOT

GATHER = runpy.run_path(str(ROOT / "tools" / "changelog"))["main"]


def write_fragment(root: Path, name: str, text: str) -> None:
    (root / "news").mkdir(exist_ok=True)
    (root / "news" / name).write_text(text)


def test_fragments_are_gathered_by_kind_and_deleted(tmp_path: Path) -> None:
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## 1.0.0, 2027-01-01\n\n- Old.\n")
    write_fragment(tmp_path, "2.slow.fixed.md", "It is\nfast.\n")
    write_fragment(tmp_path, "3.new.added.md", "It is there.\n")
    write_fragment(tmp_path, "README.md", "How to.")
    GATHER("1.1.0", "2027-02-01", tmp_path)
    assert (tmp_path / "CHANGELOG.md").read_text() == (
        "# Changelog\n\n## 1.1.0, 2027-02-01\n\n### Added\n\n- It is there.\n"
        "\n### Fixed\n\n- It is fast.\n\n## 1.0.0, 2027-01-01\n\n- Old.\n"
    )
    assert [one.name for one in (tmp_path / "news").iterdir()] == ["README.md"]


def test_what_is_written_of_a_version_already_stays(tmp_path: Path) -> None:
    text = "# Changelog\n\n## 1.1.0, not released yet\n\nMuch.\n\n## 1.0.0, 2027-01-01\n\n- Old.\n"
    (tmp_path / "CHANGELOG.md").write_text(text)
    write_fragment(tmp_path, "3.new.added.md", "It is there.\n")
    GATHER("1.1.0", "2027-02-01", tmp_path)
    assert (tmp_path / "CHANGELOG.md").read_text() == (
        "# Changelog\n\n## 1.1.0, 2027-02-01\n\nMuch.\n\n### Added\n\n- It is there.\n"
        "\n## 1.0.0, 2027-01-01\n\n- Old.\n"
    )
