"""The names in certificates of a cluster, by which each side knows who holds one."""

from uuid import UUID


def parent_uri(cluster: UUID) -> str:
    return f"haptera://{cluster}/parent"


def images_uri(cluster: UUID) -> str:
    return f"haptera://{cluster}/images"


def api_uri(cluster: UUID) -> str:
    return f"haptera://{cluster}/api"


def client_uri(cluster: UUID, token: str) -> str:
    """The token of a certificate: limits of its id are limits of the certificate, too."""
    return f"haptera://{cluster}/client/{token}"


def node_uri(cluster: UUID, node: UUID) -> str:
    """The identity of a node: a name may change, the UUID does not."""
    return f"haptera://{cluster}/node/{node}"


def any_node_uri(cluster: UUID) -> str:
    """The one name of all nodes of a cluster, for servers that know callers by it."""
    return f"haptera://{cluster}/node"


def boot_uri(cluster: UUID, node: UUID, incarnation: int) -> str:
    """The boot of a node, as a number."""
    return f"{node_uri(cluster, node)}/incarnation/{incarnation}"
