"""Places replicas on nodes that share no fault group, exactly, by branch and bound.

Nodes that share a fault group exclude each other, so the replicas of a group are an independent
set of the nodes' conflict graph; of all such sets the least loaded one is chosen. Greedy choice
fails where fault groups overlap. Land, Doig, "An Automatic Method of Solving Discrete Programming
Problems", Econometrica 28(3), 1960.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

# Candidates that one search tries; past that its best answer is taken, and said not to be proven.
TRIES_MAX: Final = 20_000
# After so many candidates in a row it is asked again whether the rest still promises more.
BOUND_EACH: Final = 16


@dataclass(frozen=True, slots=True)
class Spot:
    """A node that may run a replica: its fault groups by dimension (rack, pdu…), and its load."""

    name: str
    groups: Mapping[str, frozenset[str]]
    load: int = 0


@dataclass(frozen=True, slots=True)
class Placement:
    """Which node each rank runs on, and what had to be given up for it.

    `shared` are the dimensions in which replicas may share a group, for no assignment avoids it;
    `moved` the ranks that lived elsewhere; `unplaced` those for which there is no node.
    """

    nodes: Mapping[int, str]
    shared: tuple[str, ...] = ()
    moved: tuple[int, ...] = ()
    unplaced: tuple[int, ...] = ()
    proven: bool = True


def place(
    ranks: Sequence[int],
    sites: Iterable[Spot],
    living: Mapping[int, str],
    dimensions: Sequence[str],
) -> Placement:
    """Give each rank a node; those that live stay where they are, unless it takes a move.

    First no two replicas share a group of any dimension; where no assignment has that, the last
    dimension is given up, then the one before. Then as few as possible move, then the load is
    least, then names decide. `living` names nodes that are among the sites.
    """
    sites = sorted(sites, key=lambda one: (one.load, one.name))
    by_name = {one.name: one for one in sites}
    stays = {rank: by_name[living[rank]] for rank in ranks if living.get(rank) in by_name}
    wanted = min(len(ranks), len(sites))
    for kept in range(len(dimensions), -1, -1):
        found = _least_moves(wanted, sites, stays, dimensions[:kept])
        if found is not None:
            chosen, moved, proven = found
            return _told(ranks, chosen, stays, tuple(dimensions[kept:]), moved, proven=proven)
    raise AssertionError("without dimensions any nodes will do")


def _told(
    ranks: Sequence[int],
    chosen: Sequence[Spot],
    stays: Mapping[int, Spot],
    shared: tuple[str, ...],
    moved: Collection[int],
    *,
    proven: bool,
) -> Placement:
    nodes = {rank: one.name for rank, one in stays.items() if rank not in moved}
    free = iter(one.name for one in chosen if one.name not in nodes.values())
    for rank in ranks:
        if rank not in nodes and (name := next(free, None)) is not None:
            nodes[rank] = name
    unplaced = tuple(rank for rank in ranks if rank not in nodes)
    return Placement(dict(sorted(nodes.items())), shared, tuple(sorted(moved)), unplaced, proven)


def _least_moves(
    wanted: int, sites: Sequence[Spot], stays: Mapping[int, Spot], dimensions: Sequence[str]
) -> tuple[Sequence[Spot], Collection[int], bool] | None:
    """The nodes chosen, the ranks that leave theirs, and whether that is proven to be best."""
    masks = _masks(sites, dimensions)
    for count in range(len(stays) + 1):
        best: _Search | None = None
        leaving: tuple[int, ...] = ()
        for moved in combinations(sorted(stays), count):
            fixed = [one for rank, one in stays.items() if rank not in moved]
            search = _Search(wanted, masks, dimensions, [masks[one.name] for one in fixed])
            search.run([one for one in sites if one.name not in {two.name for two in fixed}])
            if search.best is not None and (best is None or search.load < best.load):
                best, leaving = search, moved
                best.best = [*fixed, *search.best]
        if best is not None and best.best is not None:
            return best.best, leaving, best.tries < TRIES_MAX
    return None


def _masks(sites: Iterable[Spot], dimensions: Sequence[str]) -> dict[str, int]:
    """For each node the bits of its groups; a node shares its own with no other."""
    bits: dict[tuple[str, str], int] = {}
    masks = {}
    for one in sites:
        groups = [
            (dimension, name) for dimension in dimensions for name in one.groups.get(dimension, ())
        ]
        masks[one.name] = sum(1 << bits.setdefault(group, len(bits)) for group in groups)
    return masks


class _Search:
    """Depth first over candidates by load, cut where the rest cannot be better or enough."""

    def __init__(
        self,
        wanted: int,
        masks: Mapping[str, int],
        dimensions: Sequence[str],
        fixed: Sequence[int],
    ) -> None:
        self._wanted = wanted - len(fixed)
        self._dimensions = dimensions
        self._masks = masks
        self._fixed = fixed
        self.best: list[Spot] | None = None
        self.load = 0
        self.tries = 0

    def run(self, sites: Sequence[Spot]) -> None:
        """Find the least loaded nodes that exclude neither each other nor the fixed ones."""
        taken = 0
        for mask in self._fixed:
            if taken & mask:
                return
            taken |= mask
        fitting = [one for one in sites if not self._masks[one.name] & taken]
        # Of nodes with the same groups the least loaded one does for all.
        alike = {self._masks[one.name] or one.name: one for one in reversed(fitting)}
        self._choose([], 0, sorted(alike.values(), key=lambda one: (one.load, one.name)))

    def _choose(self, chosen: list[Spot], load: int, sites: Sequence[Spot]) -> None:
        missing = self._wanted - len(chosen)
        if missing <= 0:
            if self.best is None or load < self.load:
                self.best, self.load = list(chosen), load
            return
        for number, one in enumerate(sites):
            rest = sites[number:]
            # Loads only rise from here on: what is next bounds all that is left to choose.
            if self.best is not None and load + missing * one.load >= self.load:
                return
            if number % BOUND_EACH == 0 and not self._promises(load, missing, rest):
                return
            self.tries += 1
            if self.tries >= TRIES_MAX:
                return
            mask = self._masks[one.name]
            after = [two for two in rest[1:] if not self._masks[two.name] & mask]
            if missing - 1 <= len(after):
                self._choose([*chosen, one], load + one.load, after)

    def _promises(self, load: int, missing: int, rest: Sequence[Spot]) -> bool:
        """Whether the rest may hold enough, and less loaded than the best so far.

        In a dimension where each node has a group, each choice takes a group of its own: the
        least loaded node of each group, and as many groups as are missing, are a lower bound.
        """
        for dimension in self._dimensions:
            least: dict[str, int] = {}
            for one in rest:
                groups = one.groups.get(dimension)
                if not groups:
                    break
                for name in groups:
                    least.setdefault(name, one.load)
            else:
                if len(least) < missing:
                    return False
                bound = load + sum(sorted(least.values())[:missing])
                if self.best is not None and bound >= self.load:
                    return False
        return len(rest) >= missing
