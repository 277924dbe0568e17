"""Systems: images that run on a node, each replaced as a whole while its successor is ready."""
