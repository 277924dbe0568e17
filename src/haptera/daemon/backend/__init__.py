"""The answers of a parent to its API, by subject: each file has one part of `api.backend`."""
