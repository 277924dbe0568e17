"""Virtual clusters made of process trees."""
