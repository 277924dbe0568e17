"""The table of stages in CONTRIBUTING.md is made from what runs measured."""

from tests.gate.recording import BEGIN, CONTRIBUTING, END, StageTook, with_table

HEAD = "| run | stage | min:s |\n|---|---|---|\n"


def test_a_run_replaces_its_own_rows_and_leaves_those_of_others():
    page = f"a\n{BEGIN}{HEAD}| `test` | old | 9:00 |\n| `nightly` | long | 3:00 |\n{END}b\n"
    made = with_table(page, {"test": [StageTook("computing", 241), StageTook("whole", 600)]})
    rows = (
        "| `test` | computing | 4:01 |\n| `test` | whole | 10:00 |\n| `nightly` | long | 3:00 |\n"
    )
    assert made == f"a\n{BEGIN}{HEAD}{rows}{END}b\n"
    assert with_table(made, {}) == made


def test_the_page_has_a_place_for_the_table():
    text = CONTRIBUTING.read_text("utf-8")
    assert with_table(text, {}) == text
