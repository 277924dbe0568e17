"""Services: start, stop and replace a command on this node, and see how it fares."""

from haptera.keeping.home import home_of
from haptera.keeping.services import KEEPS, Service, serve
from haptera.kinds import service
from haptera.sdk import SELF, Module, Target


def connect(target: Target) -> Service:
    return Service(target, home_of(target.run_dir, target.name))


module = Module("service", connect=connect, context=SELF, needs=KEEPS, writes=("/",))
serve(module, service.run, service.applied)
