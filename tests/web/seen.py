"""A cluster as the overview has to show it: racks, causes, owners, told over sockets."""

from haptera.model.answers.views import Condition, LinkView, ObservedView
from haptera.model.changes import Declare, SetDesired
from haptera.model.entity import EntityId, node_id
from haptera.queue.entry import Holder, Submission
from haptera.queue.job import JobSpec, JobState, Size
from tests.api.job_desk import NOW

NODES = [f"rack{rack}n{number}" for rack in range(1, 5) for number in range(1, 5)]
REFUSES = "switch_on: the BMC of {} does not answer"
CHAIN = [
    LinkView("redfish.switch_on", "switches it on", "parent", disruptive=True),
    LinkView("agent.look", "looks for the agent", "self", expect="up"),
]


def web(node):
    return EntityId("service", "web", node)


def changes(names=NODES, attributes=lambda name: {"rack": name.partition("n")[0]}):
    for name in names:
        yield Declare(node_id(name), attributes(name), "site")
        yield SetDesired(node_id(name), "power", "on", "site")


def power(value):
    return {"power": ObservedView(value, known=True, method="read", by="bmc", age_ms=900)}


def tell(backend):
    """Eleven nodes are on, three are stuck for one reason, one waits, one is held by a user."""
    for name in NODES[3:6]:
        why = REFUSES.format(name)
        backend.say(
            node_id(name),
            condition=Condition.STUCK,
            why=why,
            observed=power("off"),
            chain=CHAIN,
            unblock="whoever looks after the BMC",
            again_in_ms=4000,
            error="connection timed out",
        )
    backend.say(
        node_id(NODES[8]),
        condition=Condition.WAITING,
        why="a budget is spent",
        observed=power("off"),
    )
    backend.write(SetDesired(node_id(NODES[9]), "power", "off", "user:eve"))
    backend.say(node_id(NODES[9]), observed=power("on"))


def starts(parent, name, *nodes, count=None):
    """A job on each of these nodes; an array of them, with a count."""

    def on_nodes():
        desk, spec = parent.backend.jobs, JobSpec(("sleep", "60"), Size(1, 0))
        jobs = desk.queue.submit(
            Submission(owner="user:bob", name=name, spec=spec, count=count), NOW
        )
        for job, node in zip(jobs, nodes, strict=True):
            desk.queue.lock(job, desk.queue.holders.setdefault(node, Holder(node)))
        return desk.noted(jobs)

    return parent.do(on_nodes)


def ends(parent, job, now=NOW, state=JobState.COMPLETE, status=0):
    def at_once():
        desk = parent.backend.jobs
        desk.queue.end(desk.queue.job(job.id), state, now, status=status)
        desk.noted([job])

    parent.do(at_once)
