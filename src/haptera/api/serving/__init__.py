"""Serving requests before they reach a route: connections, headers, idempotency keys."""
