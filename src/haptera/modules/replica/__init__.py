"""Replicas of groups: services with a rank, and the leases that one of each group leads by."""
