"""From a task and a state the cheapest plan, or proof that there is none."""
