"""A daemon's log: a flood of entries is told in few, and its file has a size."""

import logging

from haptera.runtime.log import ALIKE_MAX, ALL_MAX, PERIOD_NS, SORTS_MAX, BoundedHandler, Sparing


class Kept(logging.Handler):
    def __init__(self, now):
        super().__init__()
        self.addFilter(Sparing(now))
        self.lines = []

    def emit(self, record):
        self.lines.append(record.getMessage())


class Clock:
    def __init__(self):
        self.ns = 0

    def __call__(self):
        return self.ns


def entry(text, line=1, *arguments):
    return logging.LogRecord("x", logging.WARNING, "x.py", line, text, arguments, None)


def test_a_flood_of_one_sort_is_told_in_few_and_then_counted():
    clock = Clock()
    kept = Kept(clock)
    for number in range(1_000):
        kept.handle(entry("from %s", 1, number))
    kept.handle(entry("something else", 2))
    clock.ns += PERIOD_NS
    kept.handle(entry("from %s", 1, "here"))
    kept.handle(entry("from %s", 1, "there"))
    assert kept.lines == [
        *(f"from {number}" for number in range(ALIKE_MAX)),
        "something else",
        f"from here ({1_000 - ALIKE_MAX} more were left out)",
        "from there",
    ]


def test_of_all_sorts_there_are_so_many_in_a_period():
    kept = Kept(Clock())
    for line in range(2 * SORTS_MAX):
        kept.handle(entry("one", line))
    assert len(kept.lines) == ALL_MAX


def logged(stream, size_bytes_max, count):
    handler = BoundedHandler(stream, size_bytes_max)
    for number in range(count):
        handler.handle(entry("%04d", 1, number))


def test_a_file_that_is_appended_to_is_set_aside_at_its_size(tmp_path):
    path = tmp_path / "serve.log"
    with path.open("a") as stream, path.open("a") as other:
        logged(stream, 100, 45)
        other.write("another process\n")
        other.flush()
    assert (tmp_path / "serve.log.1").read_text() == "".join(f"{n:04d}\n" for n in range(20, 40))
    last = "".join(f"{n:04d}\n" for n in range(40, 45))
    assert path.read_text() == f"{last}another process\n"


def test_what_a_shell_truncated_is_left_alone(tmp_path):
    path = tmp_path / "serve.out"
    with path.open("w") as stream:
        logged(stream, 100, 45)
    assert len(path.read_text().splitlines()) == 45
    assert [one.name for one in tmp_path.iterdir()] == ["serve.out"]
