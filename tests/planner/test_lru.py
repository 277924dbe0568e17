"""What is kept is bounded by how much it is in all, not only by how many there are."""

from haptera.planner.search.lru import SizedLRU


def asked(kept: SizedLRU[str, str], words: str) -> str:
    """Those of these words that had to be worked out."""
    worked_out: list[str] = []

    def work_out(word: str) -> str:
        worked_out.append(word)
        return word

    for word in words.split():
        assert kept.get(word, lambda word=word: work_out(word)) == word
    return " ".join(worked_out)


def test_what_is_kept_is_not_worked_out_again() -> None:
    assert asked(SizedLRU(9, 9, len), "a b a b") == "a b"


def test_of_too_many_those_go_that_were_not_asked_for_the_longest() -> None:
    assert asked(SizedLRU(2, 9, len), "a b a c a b") == "a b c b"


def test_of_too_much_in_all_so_many_go_that_it_fits() -> None:
    assert asked(SizedLRU(9, 5, len), "aa bb cccc cccc aa bb cccc") == "aa bb cccc aa bb cccc"
    assert asked(SizedLRU(9, 5, len), "aa bb c aa bb c dd bb c aa") == "aa bb c dd aa"


def test_the_last_one_is_kept_however_large_it_is() -> None:
    assert asked(SizedLRU(9, 3, len), "large large a large") == "large a large"
