"""The files of a site: which are read, in which order, and what cannot be."""

from pathlib import Path

import pytest

from haptera.model.entity import EntityId
from haptera.model.errors import InputError
from haptera.rest.schemas import SiteFile
from haptera.site import gather, parse_site
from haptera.site.syntax.sources import FILES_MAX, SITE_BYTES_MAX


def write(folder, **texts):
    for name, text in texts.items():
        place = folder / name.replace("__", "/").replace("_", ".")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)


def names(folder, *paths):
    return [Path(one.name).relative_to(folder).as_posix() for one in gather([*paths])]


def errors_of(read):
    with pytest.raises(InputError) as raised:
        read()
    assert all(error.do for error in raised.value.errors)
    return [(error.where, error.what) for error in raised.value.errors]


def test_a_folder_is_its_site_files_in_the_order_of_their_names(tmp_path):
    write(tmp_path, b_yaml="", a_yml="", c_yml="", d_txt="", _e_yaml="", f__g_yaml="")

    assert names(tmp_path, tmp_path) == ["a.yml", "b.yaml", "c.yml"]


def test_what_a_file_includes_comes_after_it_and_each_file_is_read_once(tmp_path):
    write(
        tmp_path,
        top_yaml="include: [parts, last.yaml]",
        last_yaml="include: top.yaml",
        parts__one_yaml="include: ../other.yaml",
        parts__two_yaml="include: [one.yaml, ../parts]",
        other_yaml="",
    )
    files = ["top.yaml", "parts/one.yaml", "parts/../other.yaml", "parts/two.yaml", "last.yaml"]

    assert names(tmp_path, tmp_path / "top.yaml", tmp_path / "other.yaml") == files


def test_what_cannot_be_read_is_told_all_of_it_where_it_is_named(tmp_path):
    write(tmp_path, top_yaml="cluster: a\ninclude: [none.yaml, empty,\n  bad.yaml]\n")
    (tmp_path / "empty").mkdir()
    (tmp_path / "bad.yaml").write_bytes(b"cluster: \xff\n")
    top, lost = tmp_path / "top.yaml", tmp_path / "lost.yaml"

    assert errors_of(lambda: gather([top, lost])) == [
        (f"{top}:2:11", f"{tmp_path}/none.yaml cannot be read: No such file or directory"),
        (f"{top}:2:22", f"no site file is in {tmp_path}/empty"),
        (f"{tmp_path}/bad.yaml", "byte 10 is not UTF-8"),
        (str(lost), "cannot be read: No such file or directory"),
    ]


def test_a_site_is_no_larger_than_is_read_at_once(tmp_path):
    half = "#" * (SITE_BYTES_MAX // 2)
    write(tmp_path, a_yaml=half, b_yaml=half, c_yaml="#")

    assert errors_of(lambda: gather([tmp_path])) == [
        (f"{tmp_path}/c.yaml", f"a site takes {SITE_BYTES_MAX} bytes at most")
    ]


def test_a_chain_of_files_is_followed_to_the_last_that_may_be_and_no_further(tmp_path):
    for number in range(FILES_MAX + 1):
        (tmp_path / f"{number}.yaml").write_text(f"include: {number + 1}.yaml\n")

    assert errors_of(lambda: gather([tmp_path / "0.yaml"])) == [
        (f"{tmp_path}/{FILES_MAX - 1}.yaml:1:10", f"a site has {FILES_MAX} files at most")
    ]


def test_several_files_say_together_what_one_could(tmp_path):
    write(
        tmp_path,
        a_yaml="cluster: c\nnodes: {'n[1-2]': {platform: x}}\npolicies: [{for: n1, attempts: 1}]\n",
        b_yaml="nodes: {'n[1-2]': {rack: 'r{1}'}}\nservices: {web: {port: 80}}\n"
        "policies: [{for: n2, attempts: 2}]\n",
        c_yaml="desired: {web@n2: {run: running}}\nbudgets:\n",
    )
    site = parse_site(gather([tmp_path]), {})
    by_id = {str(one.entity): one for one in site.entities}

    assert by_id["node:n2"].attributes == {"platform": "x", "rack": "r2"}
    assert by_id["service:web@n2"].desired == {"run": "running", "port": 80}
    assert by_id["policy:site-1"].desired == {"of": "n1", "attempts": 1, "rank": 1}
    assert by_id["policy:site-2"].desired == {"of": "n2", "attempts": 2, "rank": 2}
    assert EntityId("node", "n1", "n1") in {one.entity for one in site.entities}


@pytest.mark.parametrize(
    ("one", "other", "errors"),
    [
        (
            "cluster: c\n",
            "\ncluster: c\n",
            [("b.yaml:2:1", "cluster is given twice, here and at a.yaml:1:1")],
        ),
        (
            "cluster: c\nservices: {web: {port: 1}}\n",
            "services: {web: {port: 1}}\n",
            [("b.yaml:1:12", "the key web is given already, at a.yaml:2:12")],
        ),
        (
            "cluster: c\nnodes: {n1: {rack: a}}\n",
            "nodes:\n  n1:\n    rack: a\n",
            [("b.yaml:3:5", "rack of node:n1 is given twice, here and at a.yaml:2:14")],
        ),
        (
            "cluster: c\nbudgets: [{per: node, share: 1}]\n",
            "budgets: {x: {per: node, share: 1}}\n",
            [("b.yaml:1:1", "budgets is given twice, here and at a.yaml:2:1")],
        ),
        ("cluster: [\n", "b: c: d\n", [
            (
                "a.yaml:2:1",
                "while parsing a flow node (line 2): did not find expected node content",
            ),
            ("b.yaml:1:5", "mapping values are not allowed in this context"),
        ]),
    ],
)  # fmt: skip
def test_what_two_files_say_twice_is_told_with_both_places(one, other, errors):
    files = [SiteFile("a.yaml", one), SiteFile("b.yaml", other)]

    assert errors_of(lambda: parse_site(files, {})) == errors


def test_a_file_that_was_sent_without_what_it_includes_is_refused():
    files = [SiteFile("a.yaml", "cluster: c\ninclude: b.yaml\n")]

    assert errors_of(lambda: parse_site(files, {})) == [
        ("a.yaml:2:10", "b.yaml was not sent along")
    ]
    assert parse_site([SiteFile("a.yaml", files[0].text, included=True)], {}).cluster == "c"


def test_toml_is_refused_by_its_name(tmp_path):
    write(tmp_path, a_toml="cluster = 'c'")
    file = tmp_path / "a.toml"

    assert errors_of(lambda: parse_site(gather([file]), {})) == [(str(file), "TOML is not read")]
