"""Public fakes: one module under the real engine, a cluster with a seeded network and clock."""
