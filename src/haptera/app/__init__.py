"""What a replica's program asks haptera: who it is, whether it leads, and under which epoch.

    replica = GroupReplica.of_environment()
    with replica.leading() as epoch, Fence("orders.epoch").passed(epoch):
        ...  # here no other replica acts

It uses the standard library only, and reads two small files that the node's agent keeps; any
language can read them (docs/reference/groups.md).
"""

from haptera.app.fence import Fence, StaleEpochError
from haptera.app.lease import Lease, NotLeaderError
from haptera.app.replica import GroupReplica

__all__ = ["Fence", "GroupReplica", "Lease", "NotLeaderError", "StaleEpochError"]
