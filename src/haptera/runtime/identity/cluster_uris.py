"""The names in certificates of a cluster, by which each side knows who holds one."""

from uuid import UUID


def parent_uri(cluster: UUID) -> str:
    return f"haptera://{cluster}/parent"


def images_uri(cluster: UUID) -> str:
    return f"haptera://{cluster}/images"


def api_uri(cluster: UUID) -> str:
    return f"haptera://{cluster}/api"


def client_uri(cluster: UUID, token: str) -> str:
    """Whose a certificate is: all that is held of a token, by its id, holds of it too."""
    return f"haptera://{cluster}/client/{token}"


def node_uri(cluster: UUID, node: UUID) -> str:
    """Who a node is: a name may change, the UUID does not."""
    return f"haptera://{cluster}/node/{node}"


def any_node_uri(cluster: UUID) -> str:
    """What all nodes of a cluster are called, for servers that know callers by one name."""
    return f"haptera://{cluster}/node"


def boot_uri(cluster: UUID, node: UUID, incarnation: int) -> str:
    """Which boot of a node it is."""
    return f"{node_uri(cluster, node)}/incarnation/{incarnation}"
