"""Parents above and below, and standbys: who follows whose store, and who reports to whom."""
