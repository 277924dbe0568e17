"""What other tools know of a cluster, read as a site, with remarks on what has no place there."""
