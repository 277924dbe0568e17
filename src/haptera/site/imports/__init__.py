"""What other tools know of a cluster, read as a site; what of it has no place there is told."""
