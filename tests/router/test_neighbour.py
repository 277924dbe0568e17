import random
from itertools import islice

from bgp.messages import Update
from neighbour import changes, networks, route

COUNT = 50


def test_each_change_is_one() -> None:
    prefixes = networks(COUNT)
    seen = dict.fromkeys(prefixes, route(0))
    for update in islice(changes(prefixes, random.Random(1)), 2_000):
        (prefix,) = update.withdrawn + update.announced
        if update.withdrawn:
            del seen[prefix]
        else:
            assert seen.get(prefix) != update.attributes
            seen[prefix] = update.attributes
    assert 0 < len(seen) < COUNT
    assert len(set(networks(20_000))) == 20_000
    assert str(networks(20_000)[-1]) == "10.78.31.0/24"


def test_the_same_chance_makes_the_same_changes() -> None:
    def drawn() -> list[Update]:
        return list(islice(changes(networks(COUNT), random.Random(1)), 100))

    assert drawn() == drawn()
