"""The pages of promises: each planted bug that they name exists, and each clock that is read."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_each_planted_bug_that_a_page_names_exists() -> None:
    page = (ROOT / "docs/explain/groups.md").read_text(encoding="utf-8")
    named = set(re.findall(r"\(`(\w+)`\)", page))
    assert named
    assert named - {one.stem for one in (ROOT / "tests/mutants").glob("*.patch")} == set()


def test_the_page_of_clocks_names_each_file_that_reads_one() -> None:
    page = (ROOT / "docs/explain/clocks.md").read_text(encoding="utf-8")
    package = ROOT / "src/haptera"
    reads = re.compile(
        r"clock_gettime|time\.(?:time|monotonic)(?:_ns)?\(|datetime\.now|SO_TIMESTAMPNS"
        r"|setitimer|/proc/uptime|\.st_mtime"
    )
    readers = {
        str(path.relative_to(package))
        for path in package.rglob("*.py")
        if reads.search(path.read_text(encoding="utf-8"))
    }
    assert readers
    assert {name for name in readers if f"`{name}`" not in page} == set()
