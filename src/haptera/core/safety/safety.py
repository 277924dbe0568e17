"""Whether a disruptive step may run now, and if not, what stands in its way."""

from collections.abc import Callable, Collection, Iterable, Mapping

from haptera.core.act.contradiction import contested
from haptera.core.modules.gates import has_no_agent, recovers
from haptera.core.safety.budget_rules import BudgetRules, group_of, is_away, is_serving, is_to_serve
from haptera.core.safety.budgets import Budgets
from haptera.core.safety.evidence import Evidence
from haptera.core.safety.gate import HEEDS_H
from haptera.core.safety.pace import Pace
from haptera.core.safety.permits import ANSWER_WITHIN_NS, PERMIT_AGAIN_NS, Permits
from haptera.core.safety.predecessor import Predecessor
from haptera.core.safety.room import LEVEL_H, ROOM, Lender, RoomAsks, RoomLoans, Untold
from haptera.core.safety.unrest import Unrest
from haptera.core.state.entity.verdict import Lacking
from haptera.core.state.limits import MS, OVERRIDE_NS
from haptera.core.state.row import EntityState
from haptera.core.state.side import Side
from haptera.core.state.table import EntityTable
from haptera.core.state.timers import Timers
from haptera.core.state.turn import Turn
from haptera.core.sync.neighbours import Neighbours
from haptera.core.sync.peers import DOWN_AFTER, SUSPECT_AFTER, Peer
from haptera.core.sync.presence import may_boot
from haptera.kinds.node import Busy, Power, busy, power
from haptera.kinds.rules.budget import Per
from haptera.model.changes import Disruption
from haptera.model.entity import EntityId
from haptera.model.facts import Method
from haptera.model.intent import Intent
from haptera.model.messages import Ask, Permit
from haptera.model.parts import Context, Step
from haptera.planner.domain.domain import Domain
from haptera.planner.domain.pieces import Pieces


class Safety:
    """Brake, evidence, budget and permit of each disruptive step; `check` says what is lacking.

    What a step needs is taken before its intent, and left when its outcome is known.
    """

    def __init__(
        self,
        side: Side,
        table: EntityTable,
        timers: Timers,
        evidence: Evidence,
        permits: Permits,
        near: Neighbours,
        next_id: Callable[[], str],
    ) -> None:
        self._side = side
        self._table = table
        self._timers = timers
        self._permits = permits
        self._evidence = evidence
        self._rules = rules = BudgetRules(table)
        self._budgets = Budgets(rules.size, rules.declared, rules.instances, rules.away)
        self.asks = RoomAsks(side, near.room_permits, next_id)
        self._untold = Untold()
        lender = Lender(side, timers, self._budgets, rules.where, self.asks, self._untold)
        self.loans = RoomLoans(lender, near.peer, permits)
        self.subtrees = RoomLoans(lender, near.parent_below, None)
        self.unrest = Unrest(timers, rules.size)
        self._pace = Pace()
        self.predecessor = Predecessor(timers)
        self._wants: EntityId | None = None
        self._near, self._peer = near, near.peer
        self._next_id = next_id
        self._refused: dict[EntityId, tuple[int, str]] = {}
        self._asked: dict[EntityId, tuple[str, int]] = {}
        # Who waits for an agent to be heard, by node.
        self._silent_ones: dict[str, dict[EntityId, None]] = {}
        # Until when nodes need not permit anything, for an admin said so.
        self._overridden: dict[str, int] = {}
        # Whose place and permit were used: the next step on them needs its own.
        self._spent: set[EntityId] = set()

    def check(self, turn: Turn, row: EntityState, domain: Domain, step: Step) -> Lacking | None:
        """What stands in the way of this step now; None: it may begin, as `row.asking` says.

        What can be done is done (a look, an ask, a place). Numbers are of docs/explain/acting.md.
        """
        node = self._table.node_of(row)
        if row.work.stepping is None and row.id in self._spent:
            self.leave(turn, row.id)
        if row.kind.serves is not None and (node is not None or row.kind.of_cluster):
            return self._unserved(row, node, step, turn.now)
        if node is None:
            return Lacking("it is on no node that could permit it: no-permit")
        asked = self._asked_for(node, turn.now)
        absent = (
            self._held_up(row, node, turn.now)  # 1 to 3
            or self._refused_lately(row, node, turn.now)  # 4
            or _contested(row)  # 5
            or _contested(node)
            or self._evidence.never_permitted(node, asked)  # 6
            or (self._silent(row, node, turn.now) if Context.SELF in asked else None)
            or self._evidence.unknown(row, node, step, {*asked, self._side.context})  # 7
        )
        if absent is not None:
            return absent
        self._wants = row.id
        # 8, 9: what is asked already goes on being asked while it is looked at once more.
        row.asking = self._standing(row, step)
        lacking = self._full(row, step, turn.now) or self._evidence.unseen(turn, row, domain, step)
        if lacking is not None:
            return lacking
        if row.asking is None:
            row.asking = self._permits.ask_for(row.id, self._next_id(), step)
        self._permits.put(turn, row.id, row.asking)
        return self._unpermitted(row, asked, turn.now)  # 10

    def reconsider(self, row: EntityState) -> None:
        """The entity is decided on anew: it needs no permit until that is found again."""
        row.asking = None

    def boots_later(self, row: EntityState, now: int) -> bool:
        """Whether others boot first; if not, it is this one's turn, and taken."""
        at = self._pace.turn_at(now, row.id, group_of(self._table.node_of(row)))
        if at > now:
            self._timers.soonest(("decide", row.id), at)
            return True
        self._pace.take(row.id)
        return False

    def begins(self, row: EntityState, intent: Intent) -> None:
        """Its module is called."""
        self._spent.add(row.id)
        self.asks.begins(row.id)
        self._budgets.begin(row.id, self._rules.where(row.id), intent.began_at)

    def takes_up(self, turn: Turn, intent: Intent, step: Step) -> None:
        """This step may have begun in an earlier process: it has its place, and asks on."""
        self._budgets.take(intent.entity, self._rules.where(intent.entity))
        self._spent.add(intent.entity)
        if intent.entity.node is not None:
            ask = self._permits.ask_for(intent.entity, intent.id, step)
            if Per.SERVICE not in self._rules.where(intent.entity):
                self._permits.put(turn, intent.entity, ask)
            self.asks.takes_up(intent.id, intent.entity, ask.late_ms)

    def remember(self, disruption: Disruption, now: int) -> None:
        """This step of an earlier process counts in the budgets of this hour."""
        same = disruption.kernel_boot == self._side.kernel_boot
        at = disruption.began_at if same else now
        self._budgets.begin(disruption.entity, self._rules.where(disruption.entity), at)

    def heard(self, turn: Turn, node: str) -> None:
        """This neighbour is there: who waits to ask it goes on, and so does what it asks."""
        turn.dirty.update(self._silent_ones.pop(node, ()))
        turn.dirty.update(self._permits.entities(node))
        turn.dirty.update(self.asks.entities())
        if self._side.node is None:
            self.loans.tend(turn, node)

    def heard_below(self, turn: Turn, parent: str) -> None:
        """A parent below has reported, or is silent: lend it room, or take it back."""
        self.subtrees.tend(turn, parent)

    def recall(
        self, incarnations: Mapping[str, int], late_ms: Callable[[Context], int], now: int
    ) -> None:
        """An earlier process may have lent room to these nodes' agents, and to parents below.

        It was for steps that take so long where they run, late effects included.
        """
        if self._side.node is not None:
            return
        quiet_until = now + HEEDS_H * self._side.hello_ns
        over_at = quiet_until + late_ms(Context.SELF) * MS
        self._untold.expect(incarnations, self._peer, quiet_until, over_at)
        levels = self._near.charge.levels()
        quiet_until += len(levels) * LEVEL_H * self._side.hello_ns
        over_at = quiet_until + max(map(late_ms, Context)) * MS
        directly = dict.fromkeys(sorted(levels[0])) if levels else {}
        self._untold.expect(directly, self._near.parent_below, quiet_until, over_at)

    def unsure(self, now: int) -> str | None:
        """Why it is not known yet what is under way below."""
        return self._untold.why(now)

    def succeed(self, steps: Iterable[Step], now: int) -> int:
        """Another parent may have begun any of these until now; returns until when they may work.

        Until then nothing disruptive begins; and any node may boot.
        """
        for row in self._table:
            may_boot(row)
        return self.predecessor.begin(steps, now)

    def needs_a_person(self, node: EntityState, now: int) -> bool:
        """Whether its agent has to permit what disturbs it, is silent, and may be so for good."""
        if recovers(node) or Context.SELF not in self._asked_for(node, now):
            return False
        peer, kept = self._peer(node.id.name), self._near.keeps(node.id.name)
        return kept and (peer is None or not peer.fresh(now, self._side.hello_ns))

    def rounds(self, entities: Iterable[EntityId]) -> Pieces[int | None]:
        """In how many rounds the budgets let these be disturbed, at the least; None: in none."""
        return self._budgets.rounds((one, self._rules.where(one)) for one in entities)

    def release(self, turn: Turn, node: str | None = None) -> None:
        """Let go on what the brake has stopped; or what waits for the permit of a node."""
        if node is not None:
            self._overridden[node] = turn.now + OVERRIDE_NS
            self.unrest.forgive(node)
            on_it = [row.id for row in self._table.on(node)]
            self._refused = {one: put for one, put in self._refused.items() if one not in on_it}
            turn.dirty.update(on_it)
            return
        self.unrest.release(turn)

    def settle(self, turn: Turn, row: EntityState) -> None:
        """It was decided on: it keeps what its step needs, and leaves the rest to others."""
        wants, self._wants = self._wants == row.id, None
        if row.work.refused is not None:
            self._budgets.take_back(row.id, self._rules.where(row.id), row.work.refused)
        stepping = row.work.stepping
        if stepping is not None and stepping.step.disruptive:
            return
        if not wants and not (is_away(row) and self._budgets.holds(row.id)):
            self.leave(turn, row.id)
        elif row.asking is None and row.id.node is not None:
            self._permits.put(turn, row.id, None)
        if self.loans.asked(row.id):
            self.loans.tend(turn, str(row.id.node))
        for parent in self.subtrees.askers(row.id):
            self.subtrees.tend(turn, parent)

    def leave(self, turn: Turn, entity: EntityId) -> None:
        """Nothing disruptive is under way on this entity, or meant."""
        if not self.loans.asked(entity):
            self._budgets.leave(turn, entity)
        if not self._budgets.holds(entity):
            self.asks.leave(entity)
        self._asked.pop(entity, None)
        self._spent.discard(entity)
        if entity.node is not None:
            self._permits.put(turn, entity, None)

    def _unserved(
        self, row: EntityState, node: EntityState | None, step: Step, now: int
    ) -> Lacking | None:
        """Who is served by it goes without meanwhile, which only so many may at once."""
        if not (is_to_serve(row) and is_serving(row)):
            return None
        if (absent := self._held_up(row, node, now) or _contested(row)) is not None:
            return absent
        self._wants = row.id
        return self._full(row, step, now)

    def _held_up(self, row: EntityState, node: EntityState | None, now: int) -> Lacking | None:
        if now < (until := self.predecessor.held_until):
            self._timers.soonest(("decide", row.id), until)
            return Lacking(
                "this parent was promoted: steps of the former parent may still take effect",
                "the end of the time in which the former parent's steps may take effect",
                until,
            )
        return self.unrest.holds(row, node, now)

    def _refused_lately(self, row: EntityState, node: EntityState, now: int) -> Lacking | None:
        """A node that refused is left alone for a while, unless it has become free since."""
        again_at, text = self._refused.get(row.id, (0, ""))
        fact = node.belief.known.get(busy.name)
        free = fact is not None and fact.value == Busy.FREE
        if free and node.belief.found_at[busy.name] > again_at - PERMIT_AGAIN_NS:
            again_at = now
        if again_at <= now:
            self._refused.pop(row.id, None)
            return None
        self._timers.soonest(("decide", row.id), again_at)
        return Lacking(text, _permit_of(row), again_at)

    def _full(self, row: EntityState, step: Step, now: int) -> Lacking | None:
        where = self._rules.where(row.id)
        text = self._budgets.hold(row.id, where, now)
        # The parents above have no budget for an entity that is on no node.
        if text is None and not self._side.is_root and row.id.node is not None:
            self._timers.soonest(("decide", row.id), now + self._side.hello_ns)
            return self.asks.lacking(row.id, self._permits.ask_for(row.id, "", step).late_ms, now)
        if text is None:
            return None
        if (at := self._budgets.room_at(row.id, where, now)) is not None:
            self._timers.soonest(("decide", row.id), at)
        return Lacking(text, ROOM, at)

    def _silent(self, row: EntityState, node: EntityState, now: int) -> Lacking | None:
        """A node that is not there cannot be asked, and takes nobody's place meanwhile."""
        if self._side.node is not None:
            return None
        peer = self._peer(node.id.name)
        if peer is not None and peer.fresh(now, self._side.hello_ns):
            return None
        self._silent_ones.setdefault(node.id.name, {})[row.id] = None
        if peer is not None and recovers(node):
            down_at = peer.silent_since + DOWN_AFTER * self._side.hello_ns
            self._timers.soonest(("decide", row.id), max(down_at, now + MS))
        agent = f"the agent of {node.id.name}"
        way_out = "" if recovers(node) else f", or haptera override {node.id.name} --why TEXT"
        return Lacking(f"{agent} is silent: no-permit", f"{agent}, to be heard{way_out}")

    def _unpermitted(
        self, row: EntityState, asked: Collection[Context], now: int
    ) -> Lacking | None:
        """What those who are asked have to say against it, or that they have said nothing yet."""
        said = [self._permits.said_here(row.id)] if self._side.context in asked else []
        if self._side.context is Context.PARENT and Context.SELF in asked:
            said.append(self._permits.said(row.id, now))
        refused = next((one for one in said if one is not None and not one.granted), None)
        if all(said) and refused is None:
            return None
        return Lacking(self._unsaid(row, refused, now), _permit_of(row))

    def _unsaid(self, row: EntityState, refused: Permit | None, now: int) -> str:
        """How far asking has come, in words."""
        name = row.id.node
        if refused is not None:
            return self._put_off(row, f"{name} does not permit it: {refused.text}", now)
        if (draining := self._permits.draining(row.id)) is not None:
            return f"{name} is being drained: {draining}"
        if now - self._asked_at(row, now) >= ANSWER_WITHIN_NS:
            return self._put_off(row, f"{name} has not answered the request for its permit", now)
        self._timers.soonest(("decide", row.id), now + self._side.hello_ns // 5)
        return f"{name} is asked for its permit"

    def _asked_for(self, node: EntityState, now: int) -> Collection[Context]:
        """On which sides gates are asked for it: on none where nothing runs that can be hurt."""
        if now < self._overridden.get(node.id.name, 0):
            return ()
        peer = self._peer(node.id.name)
        # We booted it, it boots closed, and it has not enrolled since. But where one reading of
        # power misled us, it has run all the while; one that never enrolled has no jobs of ours.
        booted = _not_heard_since(peer, node.work.booted_at) and (
            node.work.booted_surely or peer is None
        )
        if booted or self._has_no_power(node, now):
            return ()
        if self._side.context is Context.SELF:
            return (Context.SELF,)
        # An agent that is there is asked, whatever is declared.
        if has_no_agent(node) and peer is None:
            return (Context.PARENT,)
        if (recovers(node) or has_no_agent(node)) and self._down(peer, now):
            return (Context.PARENT,)
        return (Context.PARENT, Context.SELF)

    def _put_off(self, row: EntityState, text: str, now: int) -> str:
        """Leave this node its peace for a while, and its place to others."""
        self._refused[row.id] = now + PERMIT_AGAIN_NS, text
        self._timers.soonest(("decide", row.id), now + PERMIT_AGAIN_NS)
        row.asking = self._wants = None
        return text

    def _asked_at(self, row: EntityState, now: int) -> int:
        """Since when the node has been asked this."""
        assert row.asking is not None
        asked, at = self._asked.get(row.id, ("", 0))
        if asked != row.asking.id:
            self._asked[row.id] = row.asking.id, now
            return now
        return at

    def _has_no_power(self, node: EntityState, now: int) -> bool:
        fact = node.belief.known.get(power.name)
        if fact is None or fact.method is not Method.READ or fact.value != Power.OFF:
            return False
        return (now - fact.at) * 10 <= SUSPECT_AFTER * self._side.hello_ns

    def _down(self, peer: Peer | None, now: int) -> bool:
        return peer is not None and now - peer.silent_since >= DOWN_AFTER * self._side.hello_ns

    def _standing(self, row: EntityState, step: Step) -> Ask | None:
        """What is asked for this step already."""
        if row.work.stepping is not None:
            return self._permits.ask_for(row.id, row.work.stepping.intent.id, step)
        asked = self._permits.ask_of(row.id)
        return asked if asked is not None and asked.step == step.path else None

    def rebudget(self, turn: Turn) -> None:
        """A budget was declared, changed or taken away."""
        self._budgets.wake_all(turn)


def _contested(row: EntityState) -> Lacking | None:
    text = contested(row)
    return None if text is None else Lacking(text, "readings that agree")


def _permit_of(row: EntityState) -> str:
    return f"the permit of {row.id.node}"


def _not_heard_since(peer: Peer | None, booted_at: int | None) -> bool:
    if booted_at is None:
        return False
    return peer is None or peer.heard_at is None or peer.heard_at < booted_at
