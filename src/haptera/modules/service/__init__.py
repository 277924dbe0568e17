"""Services: real commands in sessions of their own, each with a keeper that outlives us."""
