"""What people and programs receive: views of entities, plans, findings, graphs, the past."""
