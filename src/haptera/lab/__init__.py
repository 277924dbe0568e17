"""Virtual clusters made of process trees, and of virtual machines."""
