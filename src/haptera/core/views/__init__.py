"""What people and programs receive."""
