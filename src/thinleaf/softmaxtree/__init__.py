"""Softmax trees, fixed and adaptive: objective, node solvers, TAO and growth (papers 000, 001)."""
