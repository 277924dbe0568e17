"""The two sides of the queue: a parent's, which gives jobs out, and an agent's, which runs them."""
