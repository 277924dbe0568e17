"""A class compiled to bit states, operators, and what knowledge rests on."""
