"""Changes of desired state: who may make them, and how they are checked and written."""
