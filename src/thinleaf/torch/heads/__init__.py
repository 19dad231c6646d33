"""A tree in the place of a network's output layer (paper 001, section 5.3.1)."""
