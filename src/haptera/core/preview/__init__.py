"""What unwritten changes would start."""
